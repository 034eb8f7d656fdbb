/* SPDX-License-Identifier: GPL-2.0-only */
/* Congestion control "mssfrac". */
#ifndef MSSFRAC_CONG_H
#define MSSFRAC_CONG_H

#include <linux/types.h>

struct sock;

/* Bytes; the segment size in force, at least 1 (cc_main.c). */
u32 mssfrac_cong_segment(struct sock *sk);

int mssfrac_cong_register(void);
void mssfrac_cong_unregister(void);

#endif /* MSSFRAC_CONG_H */
