/* SPDX-License-Identifier: GPL-2.0-only */
/* The sender's segment size, for mssfrac_cc.ko. */
#ifndef MSSFRAC_SEGMENT_H
#define MSSFRAC_SEGMENT_H

#include <linux/types.h>

struct sock;

/*
 * Bytes; @stock, the kernel's, if no smaller one is in force.  Socket and RCU
 * locked.
 */
u32 mssfrac_segment_in_force(const struct sock *sk, u32 stock);
void mssfrac_segment_exit(void);

#endif /* MSSFRAC_SEGMENT_H */
