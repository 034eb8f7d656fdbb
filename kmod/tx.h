/* SPDX-License-Identifier: GPL-2.0-only */
/* Sender policy: its state in each connection, and its entry points. */
#ifndef MSSFRAC_TX_H
#define MSSFRAC_TX_H

#include <linux/types.h>

struct sock;

/* The socket lock protects every field. */
struct mssfrac_tx {
	u32 seg;		/* bytes; segment size in force, 0: stock */
	u32 small_seg;		/* bytes; size for windows below one MSS */
	u32 mss_cache;		/* the kernel's, when seg was chosen */
	u32 round_end;		/* sequence that ends the round trip */
	u32 round_wnd;		/* bytes; largest window offered in it */
	u32 last_una;		/* snd_una at the last round's end */
	u64 round_start;	/* us, tcp_mstamp */
	u32 epoch_rounds;	/* window-limited rounds in this epoch */
	u32 epoch_prompt;	/* of these, such as took min_rtt */
	u32 epoch_late;		/* and such as took clearly longer */
	u32 epoch_wnd;		/* bytes; smallest round_wnd in the epoch */
	u32 most_wnd;		/* bytes; largest round_wnd of all epochs */
	u64 epoch_start;	/* us, tcp_mstamp */
	u64 epoch_bytes;	/* acknowledged since */
	u64 last_rate;		/* bytes/s delivered in the epoch before */
	u64 base_rate;		/* bytes/s delivered with stock segments */
	u32 base_wnd;		/* bytes; the peer's window meanwhile */
	u64 best_rate;		/* bytes/s of best_seg, the best size tried */
	u32 best_seg;
	u32 own_segs;		/* MSS fit where our sizes are offered more than stock */
	u64 own_rate;		/* bytes/s of our size, just left to measure stock */
	u32 goal;		/* bytes; where a descent of tx_steady ends */
	u64 stall_start;	/* us, tcp_clock_us(): tcp_mstamp may be old */
	u32 steady_wnd;		/* bytes; epoch_wnd of the epoch before */
	u32 settle_seq;		/* data before it was cut for another size */
	u32 wait;		/* rounds until the next trial */
	u32 recheck;		/* rounds until stock is measured again */
	u16 backoff;		/* next wait after a failed trial, in rounds */
	u16 recheck_every;	/* next recheck, in rounds */
	u8 phase;		/* enum mssfrac_tx_phase */
	u8 round_open:1,	/* round_end is set */
	   settling:1,		/* settle_seq is not acknowledged yet */
	   stalled:1,		/* waiting on a window below one MSS */
	   eager:1,		/* has stalled before: do not wait again */
	   nudge:1,		/* halve what is sent next */
	   nudged:1,		/* did so, and nothing was gained since */
	   pardoned:1;		/* tried before its time, and nothing was gained since */
};

/* Socket lock held, any context. */
u32 mssfrac_tx_mss(struct sock *sk, u32 stock);
u32 mssfrac_tx_segment(struct sock *sk, u32 stock);
void mssfrac_tx_exit(void);

#endif /* MSSFRAC_TX_H */
