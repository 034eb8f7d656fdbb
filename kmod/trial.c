// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decides when a smaller segment size is tried, kept and given up, for windows
 * of one MSS and more.  tx.c hands the size to the kernel.
 *
 * Whether full-sized segments waste a window depends on more than its size: on
 * the segments per GSO skb, on delayed ACKs and on TSO deferral.  So the policy
 * measures instead of assuming:
 *
 *   WATCH   Stock segments.  Measure the bytes delivered per second over an
 *           epoch of round trips that the peer's window limited.  Go on if part
 *           of the window is unused and another size would use it.
 *   SETTLE  Switch to that size.  Wait until the data that was segmented for
 *           the old size is acknowledged: a large send buffer can hold a
 *           hundred small windows, and its skbs leave odd segments.
 *   TRIAL   Measure again.  If the size is not clearly better and one segment
 *           per round trip is missing, nudge once (try_nudge()) and measure
 *           again.  Otherwise return to WATCH, and wait 16 times longer before
 *           the next trial.  With tx_steady the size descends by MSS/N at a
 *           time, each size is measured, and the best is kept: "incrementally
 *           decrease the MSS if the window is locked in a steady state"
 *           (SC2003 paper).
 *   KEEP    Keep the size and follow the window.  Return to WATCH to measure
 *           stock again in these cases: the size delivers less than stock did;
 *           the congestion window becomes the limit; full-sized segments fill
 *           the window; the window is so large that stock may deliver as much;
 *           and periodically.
 *
 * Everything here runs under the socket lock.
 */
#include <linux/math64.h>

#include "conn.h"
#include "trial.h"
#include "tx.h"
#include "window.h"

/* Round trips to measure for one verdict, and the least time they take. */
#define EPOCH_ROUNDS	12
#define EPOCH_MIN_US	(2 * USEC_PER_MSEC)
/* After so many round trips a size is judged even if old segments remain. */
#define SETTLE_ROUNDS	256
/* "Some round trips" are more than one in so many. */
#define SOME_ROUNDS	6
/* A prompt round trip is at most 1/32 above min_rtt, a late one 1/4 or more. */
#define PROMPT_SHIFT	5
#define LATE_SHIFT	2
/* A window is steady if it moved by 1/64 or less in an epoch. */
#define STEADY_SHIFT	6
/*
 * Rounding, a delayed ACK and the GSO skb each lose at most one segment.  A
 * connection that loses more is limited by something else: a CPU or a reader.
 */
#define LOST_SEGS	3
/* A trial is kept if it delivers at least 1/64 more. */
#define GAIN_SHIFT	6
/*
 * Give a size up if it is this far below stock after so many round trips.
 * Twice as far while segments of the old size are in the queue: their
 * remainders waste part of the window.
 */
#define HARM_ROUNDS	8
#define HARM_SHIFT	3
#define SETTLE_SHIFT	2
/*
 * Round trips from a failed trial to the next.  The first retry comes soon,
 * because a size may fail only by the phase of the receiver's ACKs.  Each later
 * wait is 16 times as long.
 */
#define BACKOFF_MIN	32
#define BACKOFF_FACTOR	16
#define BACKOFF_MAX	8192
/* Round trips until stock is measured again; doubles each time. */
#define RECHECK_MIN	512
#define RECHECK_MAX	32768

static void epoch_start(const struct tcp_sock *tp, struct mssfrac_tx *tx)
{
	tx->epoch_rounds = 0;
	tx->epoch_bytes = 0;
	tx->epoch_prompt = 0;
	tx->epoch_late = 0;
	tx->epoch_wnd = U32_MAX;
	tx->epoch_start = tp->tcp_mstamp;
}

/* A new phase.  After a new size, old segments are still in the queue. */
static void enter(const struct tcp_sock *tp, struct mssfrac_tx *tx, u8 phase,
		  u32 seg)
{
	if (tx->seg != seg) {
		tx->settle_seq = tp->write_seq;
		tx->settling = 1;
	}
	tx->phase = phase;
	tx->seg = seg;
	tx->nudge = 0;
	tx->steady_wnd = 0;
	epoch_start(tp, tx);
}

/* Bytes per second over the epoch; 0 while it is too short. */
static u64 epoch_rate(const struct tcp_sock *tp, const struct mssfrac_tx *tx)
{
	u64 us = tp->tcp_mstamp - tx->epoch_start;

	if (tx->epoch_rounds < EPOCH_ROUNDS || us < EPOCH_MIN_US)
		return 0;
	return div64_u64(tx->epoch_bytes * USEC_PER_SEC, us);
}

/* Does the size in force deliver clearly less than stock? */
static bool harmful(const struct tcp_sock *tp, const struct mssfrac_tx *tx)
{
	u64 us = tp->tcp_mstamp - tx->epoch_start;
	u32 shift = tx->settling ? SETTLE_SHIFT : HARM_SHIFT;
	u64 least = tx->base_rate - (tx->base_rate >> shift);

	return tx->phase != MSSFRAC_TX_WATCH &&
	       tx->epoch_rounds >= HARM_ROUNDS &&
	       tx->epoch_bytes * USEC_PER_SEC < least * us;
}

/* Half of sk_gso_max_size: the largest segment that fits twice in a GSO skb. */
static u32 half_chunk(const struct sock *sk)
{
	return sk_can_gso(sk) ? sk->sk_gso_max_size / 2 : U32_MAX;
}

/* The size for the epoch's window; the MSS where no size gains anything. */
static u32 wanted_segment(const struct sock *sk, const struct mssfrac_tx *tx,
			  const struct mssfrac_settings *set)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 mss = tp->mss_cache;
	u32 window = tx->epoch_wnd;
	u32 half = half_chunk(sk);
	u32 seg, fits;

	if (window < mss || window > tp->max_window)
		return mss;
	seg = mssfrac_paired_segment(window, mss, half, READ_ONCE(set->tx_frac),
				     READ_ONCE(set->seg_max));
	/*
	 * The congestion window counts segments.  It is the limit unless it
	 * holds one more than all of them.  Pairs allow larger segments.
	 */
	fits = window / (max(tcp_snd_cwnd(tp), 2U) - 1) & ~1U;
	if (seg < fits)
		seg = mss > half && fits <= half ? fits : mss;
	return seg;
}

/*
 * Do some round trips take min_rtt, and others clearly longer?  Then ACKs are
 * delayed in the longer ones.  A busy CPU or a queue would stretch all of them.
 */
static bool acks_wait(const struct mssfrac_tx *tx)
{
	u32 some = tx->epoch_rounds / SOME_ROUNDS;

	return tx->epoch_prompt > some && tx->epoch_late > some;
}

/*
 * Bytes per round trip at this rate.  A round trip takes little more than
 * min_rtt, or twice that where the last segment's ACK waits for the next
 * window.  In between, a CPU or a queue stretched it and the window is not the
 * limit, unless ACKs are delayed in only some round trips.
 */
static u64 window_used(const struct tcp_sock *tp, const struct mssfrac_tx *tx,
		       u64 rate)
{
	u64 rtt = div_u64(tp->tcp_mstamp - tx->epoch_start, tx->epoch_rounds);
	u32 min_rtt = tcp_min_rtt(tp);

	if (rtt < min_rtt + min_rtt / 8 || rtt > min_rtt + min_rtt / 2 ||
	    acks_wait(tx))
		rtt = min_rtt;
	return div_u64(rate * rtt, USEC_PER_SEC);
}

/*
 * Did each round trip use the whole window?  Then no size can fill it better,
 * even if a busy CPU made the round trips longer.
 */
static bool filled(const struct tcp_sock *tp, const struct mssfrac_tx *tx,
		   u32 window)
{
	u64 us = tp->tcp_mstamp - tx->epoch_start;
	u64 offered = (u64)window * tx->epoch_rounds;
	u32 min_rtt = tcp_min_rtt(tp);

	/* A longer one may be two, each with half of the window. */
	return !acks_wait(tx) &&
	       us <= (u64)(min_rtt + min_rtt / 2) * tx->epoch_rounds &&
	       tx->epoch_bytes >= offered - (offered >> GAIN_SHIFT);
}

static bool steady(const struct mssfrac_tx *tx)
{
	u32 moved = tx->epoch_wnd > tx->steady_wnd ?
		    tx->epoch_wnd - tx->steady_wnd :
		    tx->steady_wnd - tx->epoch_wnd;

	return moved <= tx->epoch_wnd >> STEADY_SHIFT;
}

/* Bytes per second that a size must deliver to be kept. */
static u64 worthwhile(const struct mssfrac_tx *tx)
{
	return tx->base_rate + (tx->base_rate >> GAIN_SHIFT);
}

/*
 * The receiver acknowledges every second segment, and a GSO skb as a whole.
 * The last segment of a window may have to wait for the first GSO skb of the
 * next one, and one ACK then covers both.  The window reopens for one segment
 * less, and the pattern repeats: n - 1 segments per round trip, even if n is
 * even.  Sending the next data in half-sized segments moves the last one.
 */
static bool try_nudge(const struct tcp_sock *tp, struct mssfrac_tx *tx)
{
	u64 us = tp->tcp_mstamp - tx->epoch_start;
	u64 used, full;

	if (tx->nudged || tx->seg >= tp->mss_cache || !us)
		return false;
	/* The pattern loses one segment, within a quarter of one. */
	used = div64_u64(tx->epoch_bytes * tcp_min_rtt(tp), us);
	full = used + tx->seg;
	if (full + tx->seg / 4 < tx->epoch_wnd ||
	    full > tx->epoch_wnd + tx->seg / 4)
		return false;
	tx->nudge = 1;
	tx->nudged = 1;
	epoch_start(tp, tx);
	return true;
}

/* Return to stock, and wait longer before the next trial. */
static void give_up(struct mssfrac_conn *conn, const struct tcp_sock *tp)
{
	struct mssfrac_tx *tx = &conn->tx;

	tx->backoff = clamp_t(u32, tx->backoff * BACKOFF_FACTOR,
			      BACKOFF_MIN, BACKOFF_MAX);
	tx->wait = tx->backoff;
	mssfrac_count(conn, tx_reverted, 1);
	enter(tp, tx, MSSFRAC_TX_WATCH, 0);
}

/*
 * A failed trial can leave a worse packet pattern behind than it found, and
 * permanently.  The next trial would do so again.
 */
static bool spoilt(const struct mssfrac_tx *tx, u64 rate)
{
	return tx->backoff && tx->backoff < BACKOFF_MAX &&
	       tx->epoch_wnd >= tx->base_wnd &&
	       rate < tx->base_rate - (tx->base_rate >> GAIN_SHIFT);
}

/*
 * Did the rate just fall?  Then the previous epoch did not measure stock:
 * remainders of another size may have been in the queue of an application that
 * wrote little.
 */
static bool fell(const struct mssfrac_tx *tx, u64 rate)
{
	return rate < tx->last_rate - (tx->last_rate >> HARM_SHIFT);
}

/*
 * Did the rate just rise?  The packet pattern sometimes improves within some
 * epochs without any change.  A trial would end that, perhaps permanently.
 */
static bool rose(const struct mssfrac_tx *tx, u64 rate)
{
	return rate > tx->last_rate + (tx->last_rate >> GAIN_SHIFT);
}

/*
 * Did the wait begin in a window of more or fewer segments than this one?  True
 * only once, because a window may alternate between two sizes.
 */
static bool outdated(const struct tcp_sock *tp, const struct mssfrac_tx *tx)
{
	return tx->wait && !tx->pardoned &&
	       tx->epoch_wnd / tp->mss_cache != tx->base_wnd / tp->mss_cache;
}

/* Is the unused part of @window no more than another size could add? */
static bool reachable(const struct tcp_sock *tp, const struct mssfrac_tx *tx,
		      u64 used, u32 window)
{
	return used + LOST_SEGS * tp->mss_cache > window &&
	       !filled(tp, tx, window);
}

/*
 * Does stock leave a part of the window that another size can use?
 *
 * Where a GSO skb holds one segment, ACKs may leave before the last segments
 * are read.  They advertise a window that is smaller by these, the sender fills
 * it, and no larger one follows.  The largest window ever advertised reveals
 * this if it is larger by a segment or more.
 */
static bool wastes(const struct sock *sk, const struct mssfrac_tx *tx, u64 rate,
		   u64 best)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 used = window_used(tp, tx, best);

	if (fell(tx, rate) || rose(tx, rate))
		return false;
	if (mssfrac_wasteful(used, tx->epoch_wnd))
		return reachable(tp, tx, used, tx->epoch_wnd);
	return tp->mss_cache > half_chunk(sk) &&
	       used + tp->mss_cache <= tx->most_wnd &&
	       reachable(tp, tx, used, tx->most_wnd);
}

static u8 judge_watch(struct sock *sk, struct mssfrac_conn *conn, u64 rate)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct mssfrac_settings *set = &conn->mn->set;
	struct mssfrac_tx *tx = &conn->tx;
	u32 seg = wanted_segment(sk, tx, set);
	u32 mss = tp->mss_cache;
	/* Stock rates vary: a trial must beat both of the last two. */
	u64 best = max(rate, tx->last_rate);
	/* Our size, left for this, was faster; the window may depend on it. */
	bool better = tx->own_rate > best + (best >> GAIN_SHIFT);

	if (!tx->wait && spoilt(tx, rate)) {
		tx->backoff = BACKOFF_MAX;
		tx->wait = BACKOFF_MAX;
	}
	if (outdated(tp, tx)) {
		tx->pardoned = 1;
		tx->wait = 0;
	}
	if (seg < mss && !tx->wait && steady(tx) &&
	    (better || wastes(sk, tx, rate, best))) {
		tx->own_rate = 0;
		tx->base_rate = best;
		tx->base_wnd = tx->epoch_wnd;
		if (tx->own_segs <= tx->base_wnd / mss)
			tx->own_segs = 0;
		tx->best_rate = 0;
		tx->nudged = 0;
		tx->goal = seg;
		if (READ_ONCE(set->tx_steady)) {
			seg = mssfrac_steady_start(tx->goal, mss, half_chunk(sk));
			seg = mssfrac_steady_step(seg, tx->goal, mss,
						  READ_ONCE(set->tx_frac));
		}
		mssfrac_count(conn, tx_trials, 1);
		enter(tp, tx, MSSFRAC_TX_SETTLE, seg);
		return MSSFRAC_WHY_TRIAL;
	}
	if (!better)
		tx->own_rate = 0;
	tx->steady_wnd = tx->epoch_wnd;
	tx->last_rate = rate;
	epoch_start(tp, tx);
	return MSSFRAC_WHY_ROUND;
}

static u8 judge_trial(struct sock *sk, struct mssfrac_conn *conn, u64 rate)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct mssfrac_tx *tx = &conn->tx;

	if (rate > tx->best_rate) {
		tx->best_rate = rate;
		tx->best_seg = tx->seg;
	}
	if (READ_ONCE(conn->mn->set.tx_steady) && tx->seg > tx->goal) {
		enter(tp, tx, MSSFRAC_TX_SETTLE,
		      mssfrac_steady_step(tx->seg, tx->goal, tp->mss_cache,
					  READ_ONCE(conn->mn->set.tx_frac)));
		return MSSFRAC_WHY_STEP;
	}
	if (tx->best_rate < worthwhile(tx)) {
		if (try_nudge(tp, tx))
			return MSSFRAC_WHY_NUDGE;
		give_up(conn, tp);
		return MSSFRAC_WHY_NO_GAIN;
	}
	tx->nudged = 0;
	tx->pardoned = 0;
	tx->recheck_every = clamp_t(u32, tx->recheck_every * 2, RECHECK_MIN,
				    RECHECK_MAX);
	tx->recheck = tx->recheck_every;
	mssfrac_count(conn, tx_kept, 1);
	enter(tp, tx, MSSFRAC_TX_KEEP, tx->best_seg);
	return MSSFRAC_WHY_KEPT;
}

static u8 judge_keep(struct sock *sk, struct mssfrac_conn *conn, u64 rate)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 step = mssfrac_step(tp->mss_cache, READ_ONCE(conn->mn->set.tx_frac));
	struct mssfrac_tx *tx = &conn->tx;
	u32 mss = tp->mss_cache;
	u32 segs = tx->base_wnd / mss;
	u32 segs_now = tx->epoch_wnd / mss;
	u32 seg;

	seg = wanted_segment(sk, tx, &conn->mn->set);
	if (seg == mss) {
		enter(tp, tx, MSSFRAC_TX_WATCH, 0);
		return MSSFRAC_WHY_MOVED;
	}
	/*
	 * Stock too would deliver more in a larger window: compare per segment.
	 * Do not if the window shrank: a receiver that acknowledges before it
	 * has read advertises half, and might not with stock segments.  Do not
	 * if it grew only because our segments are smaller.
	 */
	if (segs_now <= tx->own_segs)
		segs_now = segs;
	if (rate * segs < tx->base_rate * max(segs, segs_now)) {
		if (try_nudge(tp, tx))
			return MSSFRAC_WHY_NUDGE;
		if (rate >= tx->base_rate) {
			/* judge_watch() sees whether stock gets this window. */
			tx->own_segs = segs_now;
			tx->own_rate = rate;
			enter(tp, tx, MSSFRAC_TX_WATCH, 0);
			return MSSFRAC_WHY_MOVED;
		}
		give_up(conn, tp);
		return MSSFRAC_WHY_LOST_GAIN;
	}
	tx->nudged = 0;
	if (!tx->recheck) {
		/* The size has held for long: forget earlier failures. */
		tx->backoff = 0;
		tx->own_rate = rate;
		enter(tp, tx, MSSFRAC_TX_WATCH, 0);
		return MSSFRAC_WHY_RECHECK;
	}
	if (READ_ONCE(conn->mn->set.tx_steady)) {
		/* The best size was for another window: search again. */
		if (seg >= tx->goal + step || seg + step <= tx->goal) {
			enter(tp, tx, MSSFRAC_TX_WATCH, 0);
			return MSSFRAC_WHY_MOVED;
		}
	} else if (seg < tx->seg || seg >= tx->seg + step) {
		/* Follow the window, but not by a few bytes. */
		tx->seg = seg;
	}
	epoch_start(tp, tx);
	return MSSFRAC_WHY_ROUND;
}

/*
 * A round trip that the peer's window limited has ended: decide what to do, and
 * return the reason (enum mssfrac_tx_why).  @rate: bytes per second, from
 * mssfrac_trial_round().
 */
u8 mssfrac_trial_judge(struct sock *sk, struct mssfrac_conn *conn, u64 rate)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct mssfrac_tx *tx = &conn->tx;
	u8 why;

	if (tx->wait)
		tx->wait--;
	if (tx->recheck)
		tx->recheck--;

	if (harmful(tp, tx)) {
		why = tx->phase == MSSFRAC_TX_KEEP ? MSSFRAC_WHY_LOST_GAIN :
						     MSSFRAC_WHY_NO_GAIN;
		if (try_nudge(tp, tx))
			return MSSFRAC_WHY_NUDGE;
		give_up(conn, tp);
		return why;
	}
	if (tx->settling) {
		if (before(tp->snd_una, tx->settle_seq) &&
		    tx->epoch_rounds < SETTLE_ROUNDS)
			return MSSFRAC_WHY_ROUND;
		tx->settling = 0;
		if (tx->phase == MSSFRAC_TX_SETTLE)
			tx->phase = MSSFRAC_TX_TRIAL;
		epoch_start(tp, tx);
		return MSSFRAC_WHY_ROUND;
	}
	if (!rate)
		return MSSFRAC_WHY_ROUND;

	switch (tx->phase) {
	case MSSFRAC_TX_WATCH:
		return judge_watch(sk, conn, rate);
	case MSSFRAC_TX_TRIAL:
		return judge_trial(sk, conn, rate);
	default:
		return judge_keep(sk, conn, rate);
	}
}

/*
 * A round trip delivered @acked bytes.  Returns the epoch's bytes per second, 0
 * while it is too short.
 */
u64 mssfrac_trial_round(const struct tcp_sock *tp, struct mssfrac_tx *tx,
			u32 acked)
{
	u32 min_rtt = tcp_min_rtt(tp);
	u64 us = tp->tcp_mstamp - tx->round_start;

	tx->epoch_rounds++;
	tx->epoch_prompt += us <= min_rtt + (min_rtt >> PROMPT_SHIFT);
	tx->epoch_late += us >= min_rtt + (min_rtt >> LATE_SHIFT);
	tx->epoch_bytes += acked;
	tx->epoch_wnd = min(tx->epoch_wnd, tx->round_wnd);
	tx->most_wnd = max(tx->most_wnd, tx->round_wnd);
	return epoch_rate(tp, tx);
}

/* Something else than the window limited a round trip, so judge no size. */
void mssfrac_trial_unlimited(const struct tcp_sock *tp, struct mssfrac_tx *tx)
{
	/* The congestion window counts segments: smaller ones carry less. */
	if (tx->seg && (u64)tx->seg * tcp_snd_cwnd(tp) < tx->round_wnd)
		mssfrac_trial_stock(tp, tx);
	else
		epoch_start(tp, tx);
}

/* Use stock segments from the next call on. */
void mssfrac_trial_stock(const struct tcp_sock *tp, struct mssfrac_tx *tx)
{
	enter(tp, tx, MSSFRAC_TX_WATCH, 0);
}

/* The same, and forget what was tried with another MSS. */
void mssfrac_trial_forget(const struct tcp_sock *tp, struct mssfrac_tx *tx)
{
	tx->backoff = 0;
	tx->wait = 0;
	tx->pardoned = 0;
	tx->own_segs = 0;
	tx->own_rate = 0;
	mssfrac_trial_stock(tp, tx);
}
