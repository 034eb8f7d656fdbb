/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which segment size the sender tries and keeps, decided after each round
 * trip: phases, reasons, entry points.  Socket lock held.
 */
#ifndef MSSFRAC_TRIAL_H
#define MSSFRAC_TRIAL_H

#include <linux/types.h>

struct mssfrac_conn;
struct mssfrac_tx;
struct sock;
struct tcp_sock;

enum mssfrac_tx_phase {
	MSSFRAC_TX_WATCH,	/* stock segments, measuring what they deliver */
	MSSFRAC_TX_SETTLE,	/* smaller segments; old ones still queued */
	MSSFRAC_TX_TRIAL,	/* smaller segments, measuring */
	MSSFRAC_TX_KEEP,	/* smaller segments, kept and still measured */
};

/* Why the sender's state changed (tracepoint mssfrac:align). */
enum mssfrac_tx_why {
	MSSFRAC_WHY_ROUND,	/* no change; a round trip ended */
	MSSFRAC_WHY_NO_LIMIT,	/* a round trip ended that the window did not limit */
	MSSFRAC_WHY_TRIAL,	/* part of a steady window goes unused */
	MSSFRAC_WHY_STEP,	/* tx_steady: one step of MSS/N further down */
	MSSFRAC_WHY_KEPT,	/* the trial delivered more */
	MSSFRAC_WHY_NO_GAIN,	/* the trial did not */
	MSSFRAC_WHY_LOST_GAIN,	/* kept, but delivers less than stock did */
	MSSFRAC_WHY_MOVED,	/* the window holds another count of MSS */
	MSSFRAC_WHY_RECHECK,	/* what stock delivers is old news */
	MSSFRAC_WHY_STALL,	/* sized for a window below one MSS */
	MSSFRAC_WHY_MSS,	/* path MTU or options changed */
	MSSFRAC_WHY_NUDGE,	/* a segment a round waits for its ACK */
};

u64 mssfrac_trial_round(const struct tcp_sock *tp, struct mssfrac_tx *tx,
			u32 acked);
void mssfrac_trial_unlimited(const struct tcp_sock *tp, struct mssfrac_tx *tx);
u8 mssfrac_trial_judge(struct sock *sk, struct mssfrac_conn *conn, u64 rate);
void mssfrac_trial_stock(const struct tcp_sock *tp, struct mssfrac_tx *tx);
void mssfrac_trial_forget(const struct tcp_sock *tp, struct mssfrac_tx *tx);

#endif /* MSSFRAC_TRIAL_H */
