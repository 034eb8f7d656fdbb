/* SPDX-License-Identifier: GPL-2.0-only */
/* Receiver policy: its state in each connection, and its entry point. */
#ifndef MSSFRAC_RX_H
#define MSSFRAC_RX_H

#include <linux/types.h>
#include <linux/win_minmax.h>

struct mssfrac_conn;
struct sock;

/* The socket lock protects every field. */
struct mssfrac_rx {
	struct minmax seg;	/* bytes; largest recent mean of a segment */
	u32 seen_nxt;		/* rcv_nxt at the last measurement */
	u32 seen_segs;		/* data_segs_in at the last measurement */
	u32 ssthresh;		/* bytes; rcv_ssthresh at its last change */
	u32 still_since;	/* data_segs_in at that change */
	u8 seen:1,		/* seen_nxt and seen_segs are valid */
	   steady:1;		/* ssthresh is: windows may be raised */
};

/* Socket lock held, any context. */
u32 mssfrac_rx_window(struct sock *sk, u32 stock);
u32 mssfrac_rx_mss(const struct sock *sk, const struct mssfrac_conn *conn);

#endif /* MSSFRAC_RX_H */
