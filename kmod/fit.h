/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MSSFRAC_FIT_H
#define MSSFRAC_FIT_H
#include <linux/types.h>
struct mssfrac_conn;
struct mssfrac_tx;
struct sock;
struct tcp_sock;
void mssfrac_fit_stock(struct mssfrac_tx *tx);
u8 mssfrac_fit_round(struct sock *sk, struct mssfrac_conn *conn, u32 acked);
void mssfrac_fit_unlimited(struct sock *sk, struct mssfrac_conn *conn);
u32 mssfrac_tail_size(struct sock *sk, struct mssfrac_conn *conn, u32 mss);
#endif
