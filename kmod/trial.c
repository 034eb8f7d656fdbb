// SPDX-License-Identifier: GPL-2.0-only
/*
 * When a segment size of our own is tried, kept and given up (tx.c gives it to
 * the kernel), for windows of one segment and more.
 *
 * Whether whole segments waste a window depends on more than its size (how many
 * segments one transmit chunk holds, delayed acknowledgements, deferral), so
 * nothing is assumed:
 *
 *   WATCH   stock segments; measure bytes delivered per second over an epoch
 *           of round trips that all ended because of the peer's window.  If
 *           part of the window went unused, and another size would use it:
 *   SETTLE  switch, and let data pass that was cut for the old size: a send
 *           buffer grown for a larger window may hold a hundred small ones, and
 *           what its chunks leave over goes out in pieces.
 *   TRIAL   measure again.  Not clearly better: once, if a segment a round
 *           trip is missing, a nudge (try_nudge()) and measure again; then back
 *           to WATCH, and wait 16 times as long before the next trial.
 *           With tx_steady the size goes down to the wanted one by a step of
 *           MSS/N at a time, each judged as long, and the best one is kept:
 *           the SC2003 paper's "incrementally decrease the MSS if the window is
 *           locked in a steady state".
 *   KEEP    go on and follow the window.  Back to WATCH when it delivers less
 *           than stock did, when the congestion window becomes the limit, when
 *           whole segments fill the window again, when in a window this large
 *           stock might deliver as much, and from time to time: all to see what
 *           stock delivers now.  If that is clearly less, back to TRIAL.
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
/* Old cuts leave the queue within so many round trips; then judge anyway. */
#define SETTLE_ROUNDS	256
/* More than one in so many round trips are some. */
#define SOME_ROUNDS	6
/* A round trip of min_rtt takes 1/32 more at most; a clearly longer one 1/4. */
#define PROMPT_SHIFT	5
#define LATE_SHIFT	2
/* A window is steady if it moved by 1/64 or less in an epoch. */
#define STEADY_SHIFT	6
/*
 * Rounding, an ACK that waits and the transmit chunk lose a segment each at
 * most; who loses more lacks something else, a processor or a reader.
 */
#define LOST_SEGS	3
/* A trial is kept if it delivers at least 1/64 more. */
#define GAIN_SHIFT	6
/*
 * A size this far below stock after so many round trips is given up; while old
 * cuts are in the queue, whose rests waste a part of the window, twice as far.
 */
#define HARM_ROUNDS	8
#define HARM_SHIFT	3
#define SETTLE_SHIFT	2
/*
 * Round trips from a failed trial to the next: soon once more, for a size may
 * fail by the phase of the receiver's ACKs alone; then 16 times as many.
 */
#define BACKOFF_MIN	32
#define BACKOFF_FACTOR	16
#define BACKOFF_MAX	8192
/* Round trips until stock is measured again; doubles likewise. */
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

/* A new phase; a new segment size leaves old cuts in the queue. */
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

/* Bytes per second over the epoch; 0 while it is too short to tell. */
static u64 epoch_rate(const struct tcp_sock *tp, const struct mssfrac_tx *tx)
{
	u64 us = tp->tcp_mstamp - tx->epoch_start;

	if (tx->epoch_rounds < EPOCH_ROUNDS || us < EPOCH_MIN_US)
		return 0;
	return div64_u64(tx->epoch_bytes * USEC_PER_SEC, us);
}

/* Does a size of our own deliver clearly less than stock? */
static bool harmful(const struct tcp_sock *tp, const struct mssfrac_tx *tx)
{
	u64 us = tp->tcp_mstamp - tx->epoch_start;
	u32 shift = tx->settling ? SETTLE_SHIFT : HARM_SHIFT;
	u64 least = tx->base_rate - (tx->base_rate >> shift);

	return tx->phase != MSSFRAC_TX_WATCH &&
	       tx->epoch_rounds >= HARM_ROUNDS &&
	       tx->epoch_bytes * USEC_PER_SEC < least * us;
}

/* Half of the largest transmit chunk: a segment of which it holds two. */
static u32 half_chunk(const struct sock *sk)
{
	return sk_can_gso(sk) ? sk->sk_gso_max_size / 2 : U32_MAX;
}

/* The size for the epoch's window; the MSS itself where that gains nothing. */
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
	 * The congestion window counts segments: it must hold them all and one
	 * more, or it is the limit.  In pairs they may be larger.
	 */
	fits = window / (max(tcp_snd_cwnd(tp), 2U) - 1) & ~1U;
	if (seg < fits)
		seg = mss > half && fits <= half ? fits : mss;
	return seg;
}

/*
 * Do some round trips take min_rtt, and others clearly longer?  Then ACKs wait
 * in these: a processor or a queue stretches all of them.
 */
static bool acks_wait(const struct mssfrac_tx *tx)
{
	u32 some = tx->epoch_rounds / SOME_ROUNDS;

	return tx->epoch_prompt > some && tx->epoch_late > some;
}

/*
 * Bytes a round trip at this rate.  One takes min_rtt and little more, or two
 * of them where the last segment's ACK waits for the next window; in between a
 * processor or a queue stretched it, and the window is not what is short,
 * unless ACKs wait in some round trips only.
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
 * Did each round trip take all of the window?  Then no size can fill it better,
 * however long the processor made the round trips.
 */
static bool filled(const struct tcp_sock *tp, const struct mssfrac_tx *tx,
		   u32 window)
{
	u64 us = tp->tcp_mstamp - tx->epoch_start;
	u64 offered = (u64)window * tx->epoch_rounds;
	u32 min_rtt = tcp_min_rtt(tp);

	/* Longer ones may be two, each of which took half. */
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

/* Bytes per second that a size of our own must deliver. */
static u64 worthwhile(const struct mssfrac_tx *tx)
{
	return tx->base_rate + (tx->base_rate >> GAIN_SHIFT);
}

/*
 * The receiver acknowledges every second segment, and all of a transmit chunk
 * together.  Where chunks fall such that the last segment of each window waits
 * for the first chunk of the next one, that ACK takes both, the window reopens
 * for one segment less, and so it goes on: n - 1 segments a round trip, however
 * even n is.  What is sent next goes in halves; that moves the last one.
 */
static bool try_nudge(const struct tcp_sock *tp, struct mssfrac_tx *tx)
{
	u64 us = tp->tcp_mstamp - tx->epoch_start;
	u64 used, full;

	if (tx->nudged || tx->seg >= tp->mss_cache || !us)
		return false;
	/* One segment is missing, to a quarter: otherwise it is not that. */
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

/* Stock again, and a longer wait before the next trial. */
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
 * A trial that failed may leave segments, chunks and ACKs in a worse order than
 * it found them, for good; the next would do so again.
 */
static bool spoilt(const struct mssfrac_tx *tx, u64 rate)
{
	return tx->backoff && tx->backoff < BACKOFF_MAX &&
	       tx->epoch_wnd >= tx->base_wnd &&
	       rate < tx->base_rate - (tx->base_rate >> GAIN_SHIFT);
}

/*
 * Then the epoch before was no measure of stock: pieces of another size may
 * have been in the queue, of an application that wrote little.
 */
static bool fell(const struct mssfrac_tx *tx, u64 rate)
{
	return rate < tx->last_rate - (tx->last_rate >> HARM_SHIFT);
}

/*
 * Segments, chunks and ACKs find a better order by themselves at times, within
 * some epochs; a trial would end that and may not bring it back.
 */
static bool rose(const struct mssfrac_tx *tx, u64 rate)
{
	return rate > tx->last_rate + (tx->last_rate >> GAIN_SHIFT);
}

/*
 * Is the wait for another window, of more or fewer segments than this one?
 * Once: a window may go to and fro.
 */
static bool outdated(const struct tcp_sock *tp, const struct mssfrac_tx *tx)
{
	return tx->wait && !tx->pardoned &&
	       tx->epoch_wnd / tp->mss_cache != tx->base_wnd / tp->mss_cache;
}

/* Is what is missing of @window no more than another size could add? */
static bool reachable(const struct tcp_sock *tp, const struct mssfrac_tx *tx,
		      u64 used, u32 window)
{
	return used + LOST_SEGS * tp->mss_cache > window &&
	       !filled(tp, tx, window);
}

/*
 * Does stock leave a part of the window that another size can use?
 *
 * Where a chunk holds one segment, ACKs may leave before the last segments are
 * read, and offer less by these: all of that is taken, and no more is on offer
 * again.  What once was on offer tells; less than a segment is not that.
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
	/* Stock delivers now more, now less: a trial must beat both. */
	u64 best = max(rate, tx->last_rate);
	/* A size that was left to see this: the window may be its answer, too. */
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
	 * In a larger window stock would deliver more, too.  In a smaller one
	 * it may not deliver less: a receiver that acknowledges before it has
	 * read offers half, and with other segments would not do so.  Nor in one
	 * that is larger only because our segments are smaller.
	 */
	if (segs_now <= tx->own_segs)
		segs_now = segs;
	if (rate * segs < tx->base_rate * max(segs, segs_now)) {
		if (try_nudge(tp, tx))
			return MSSFRAC_WHY_NUDGE;
		if (rate >= tx->base_rate) {
			/* Is stock offered as much?  judge_watch() sees. */
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
		/* It held for long: forget the trials that failed before. */
		tx->backoff = 0;
		tx->own_rate = rate;
		enter(tp, tx, MSSFRAC_TX_WATCH, 0);
		return MSSFRAC_WHY_RECHECK;
	}
	if (READ_ONCE(conn->mn->set.tx_steady)) {
		/* The best size was found for another window: raise, go down again. */
		if (seg >= tx->goal + step || seg + step <= tx->goal) {
			enter(tp, tx, MSSFRAC_TX_WATCH, 0);
			return MSSFRAC_WHY_MOVED;
		}
	} else if (seg < tx->seg || seg >= tx->seg + step) {
		/* Follow the window; a few bytes are not worth another cut. */
		tx->seg = seg;
	}
	epoch_start(tp, tx);
	return MSSFRAC_WHY_ROUND;
}

/*
 * What now, and why (enum mssfrac_tx_why): a round trip ended that the peer's
 * window limited.  @rate: bytes per second, of mssfrac_trial_round().
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

/* It delivered @acked bytes; bytes per second of the epoch, 0 while too short. */
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

/* A round trip ended that something else limited: it says nothing of a size. */
void mssfrac_trial_unlimited(const struct tcp_sock *tp, struct mssfrac_tx *tx)
{
	/* Smaller segments would cost a congestion window its bytes. */
	if (tx->seg && (u64)tx->seg * tcp_snd_cwnd(tp) < tx->round_wnd)
		mssfrac_trial_stock(tp, tx);
	else
		epoch_start(tp, tx);
}

/* Stock segments, from the next call on. */
void mssfrac_trial_stock(const struct tcp_sock *tp, struct mssfrac_tx *tx)
{
	enter(tp, tx, MSSFRAC_TX_WATCH, 0);
}

/* The same, and what was tried for another MSS does not count. */
void mssfrac_trial_forget(const struct tcp_sock *tp, struct mssfrac_tx *tx)
{
	tx->backoff = 0;
	tx->wait = 0;
	tx->pardoned = 0;
	tx->own_segs = 0;
	tx->own_rate = 0;
	mssfrac_trial_stock(tp, tx);
}
