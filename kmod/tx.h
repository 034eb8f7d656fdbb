/* SPDX-License-Identifier: GPL-2.0-only */
/* Sender policy: its state in each connection, reasons, entry points. */
#ifndef MSSFRAC_TX_H
#define MSSFRAC_TX_H

#include <linux/types.h>

struct mssfrac_conn;
struct sock;

/* Why the sender's state changed (tracepoint mssfrac:align). */
enum mssfrac_tx_why {
	MSSFRAC_WHY_ROUND,	/* no change; a round trip ended */
	MSSFRAC_WHY_NO_LIMIT,	/* a round trip ended that the window did not limit */
	MSSFRAC_WHY_SIZED,	/* full-sized segments leave a part of the window */
	MSSFRAC_WHY_STEP,	/* the size follows the window, or tx_steady */
	MSSFRAC_WHY_REVERTED,	/* stock used as much of the window, or more */
	MSSFRAC_WHY_MOVED,	/* full-sized segments fill the window now */
	MSSFRAC_WHY_STALL,	/* sized for a window below one MSS */
	MSSFRAC_WHY_MSS,	/* path MTU or options changed */
	MSSFRAC_WHY_NUDGE,	/* a segment a round waits for its ACK */
};

/* The socket lock protects every field. */
struct mssfrac_tx {
	u32 seg;		/* bytes; segment size in force, 0: stock */
	u32 small_seg;		/* bytes; size for windows below one MSS */
	u32 mss_cache;		/* the kernel's, when seg was chosen */
	u32 pmtu_cookie;	/* likewise */
	u32 base_wnd;		/* bytes; largest window since stock segments began */
	u16 held;		/* rounds that went well since the last wait */
	u16 wait;		/* rounds until the next size, or nudge */
	u8 seen;		/* enum mssfrac_tx_why: once, and not twice yet */
	u8 unfilled;		/* low 4 bits: the last rounds, in stock */
	u8 stock_used;		/* 1/256 of the window; before seg was chosen */
	u8 backoff:4,		/* binary logarithm of the last wait */
	   stalled:1,		/* waiting on a window below one MSS */
	   eager:1,		/* has stalled before: do not wait again */
	   nudge:1;		/* halve what is sent next */
};

/* Socket lock held, any context. */
u32 mssfrac_tx_mss(struct sock *sk, u32 stock);
u32 mssfrac_tx_size(const struct mssfrac_conn *conn);

#endif /* MSSFRAC_TX_H */
