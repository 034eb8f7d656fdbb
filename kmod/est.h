/* SPDX-License-Identifier: GPL-2.0-only */
/* The receiver's own estimate of the sender's segment size (rx_mss_est). */
#ifndef MSSFRAC_EST_H
#define MSSFRAC_EST_H

#include <linux/types.h>

struct mssfrac_conn;
struct sock;

int mssfrac_est_init(void);
void mssfrac_est_exit(void);
int mssfrac_est_want(void);
u32 mssfrac_est_mss(const struct sock *sk, const struct mssfrac_conn *conn);

#endif /* MSSFRAC_EST_H */
