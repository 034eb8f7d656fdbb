// SPDX-License-Identifier: GPL-2.0-only
/*
 * Policy A, an experiment: after each window-limited round trip the size that
 * fills the window, in closed form.  Given up if the window then shrinks.
 */
#include "conn.h"
#include "fit.h"
#include "trial.h"
#include "tx.h"
#include "window.h"

/* Half of sk_gso_max_size: the largest segment that fits twice in a GSO skb. */
static u32 half_chunk(const struct sock *sk)
{
	return sk_can_gso(sk) ? sk->sk_gso_max_size / 2 : U32_MAX;
}

/* The size for a window; the MSS where no size gains anything. */
static u32 wanted_segment(const struct sock *sk, u32 window,
			  const struct mssfrac_settings *set)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 mss = tp->mss_cache;
	u32 half = half_chunk(sk);
	u32 seg, fits;

	if (window < mss || window > tp->max_window)
		return mss;
	seg = mssfrac_paired_segment(window, mss, half, READ_ONCE(set->tx_frac),
				     READ_ONCE(set->seg_max));
	/*
	 * Without a window scale a Linux receiver advertises multiples of the
	 * segments it gets.  If one of ours is missing there, a full-sized one
	 * must still fit: no other would make it advertise more again.
	 */
	if (!tp->rx_opt.snd_wscale && seg < mss && window - seg < mss) {
		u32 count = DIV_ROUND_UP(window, max(window - mss, 1U));

		count += count & 1;
		seg = window / count & ~1U;
		if (count > READ_ONCE(set->seg_max) || seg < MSSFRAC_MIN_SEG)
			return mss;
	}
	fits = window / (max(tcp_snd_cwnd(tp), 2U) - 1) & ~1U;
	if (seg < fits)
		seg = mss > half && fits <= half ? fits : mss;
	return seg;
}

void mssfrac_fit_stock(struct mssfrac_tx *tx)
{
	tx->seg = 0;
	tx->nudge = 0;
	tx->base_wnd = 0;
	tx->own_segs = 0;
	tx->nudged = 0;
}

static u8 stock_round(struct sock *sk, struct mssfrac_conn *conn, u32 acked)
{
	const struct mssfrac_settings *set = &conn->mn->set;
	struct mssfrac_tx *tx = &conn->tx;
	u32 mss = tcp_sk(sk)->mss_cache;
	u32 seg = wanted_segment(sk, tx->round_wnd, set);

	tx->base_wnd = max(tx->base_wnd, tx->round_wnd);
	if (tx->wait)
		tx->wait--;
	/* Remainders between full-sized segments fill some windows. */
	if (seg == mss || (acked <= tx->round_wnd &&
			   acked > mssfrac_whole_segments(tx->round_wnd, mss)))
		tx->own_segs = 0;
	else if (++tx->own_segs >= 2 && !tx->wait) {
		tx->seg = seg;
		tx->own_segs = 0;
		tx->goal = 0;
		mssfrac_count(conn, tx_trials, 1);
		return MSSFRAC_WHY_TRIAL;
	}
	return MSSFRAC_WHY_ROUND;
}

/* Twice in a row the window was no larger than what stock used of it. */
static u8 fallen(struct sock *sk, struct mssfrac_conn *conn)
{
	const struct mssfrac_settings *set = &conn->mn->set;
	struct mssfrac_tx *tx = &conn->tx;
	u32 mss = tcp_sk(sk)->mss_cache;
	u32 wnd, seg = mss;

	/*
	 * One segment less: the receiver rounds down to its size, and has a few
	 * bytes less than it advertised to full-sized ones.
	 */
	wnd = tx->base_wnd - tx->goal;
	if (!tcp_sk(sk)->rx_opt.snd_wscale &&
	    tx->round_wnd + tx->seg + tx->seg / 2 > wnd) {
		tx->goal += mssfrac_step(mss, READ_ONCE(set->tx_frac));
		wnd = tx->base_wnd - tx->goal;
		if (wnd > mssfrac_whole_segments(tx->base_wnd, mss))
			seg = wanted_segment(sk, wnd, set);
	}
	if (seg < mss) {
		tx->seg = seg;
		return MSSFRAC_WHY_STEP;
	}
	tx->backoff = min(tx->backoff + 1, TCP_RETR2);
	tx->wait = 1 << tx->backoff;
	mssfrac_count(conn, tx_reverted, 1);
	mssfrac_fit_stock(tx);
	return MSSFRAC_WHY_LOST_GAIN;
}

u8 mssfrac_fit_round(struct sock *sk, struct mssfrac_conn *conn, u32 acked)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct mssfrac_settings *set = &conn->mn->set;
	struct mssfrac_tx *tx = &conn->tx;
	u32 mss = tp->mss_cache;
	u32 step = mssfrac_step(mss, READ_ONCE(set->tx_frac));
	u32 seg, missing;

	if (!tx->seg)
		return stock_round(sk, conn, acked);
	if (tx->round_wnd <= mssfrac_whole_segments(tx->base_wnd, mss)) {
		if (++tx->own_segs < 2)
			return MSSFRAC_WHY_ROUND;
		tx->own_segs = 0;
		return fallen(sk, conn);
	}
	tx->own_segs = 0;
	seg = wanted_segment(sk, tx->round_wnd - min(tx->round_wnd, tx->goal), set);
	if (tx->round_wnd < tx->base_wnd)
		seg = wanted_segment(sk, min(tx->round_wnd,
					     tx->base_wnd - tx->goal), set);
	if (seg == mss) {
		mssfrac_fit_stock(tx);
		return MSSFRAC_WHY_MOVED;
	}
	if (seg < tx->seg || seg >= tx->seg + step)
		tx->seg = seg;
	/* One segment a round waits for its ACK, twice in a row: shift it. */
	missing = tx->round_wnd > acked ? tx->round_wnd - acked : 0;
	if (2 * missing < tx->seg || 2 * missing >= 3 * tx->seg) {
		tx->nudged = 0;
	} else if (!tx->recheck) {
		if (tx->nudged) {
			tx->nudge = 1;
			tx->nudged = 0;
			tx->recheck_every = min(tx->recheck_every + 1, TCP_RETR2);
			tx->recheck = 1 << tx->recheck_every;
			return MSSFRAC_WHY_NUDGE;
		}
		tx->nudged = 1;
	}
	if (tx->recheck)
		tx->recheck--;
	return MSSFRAC_WHY_ROUND;
}

/*
 * Something else limited the round trip.  The congestion window counts segments:
 * smaller ones carry less.  A size is that of its window only.
 */
void mssfrac_fit_unlimited(struct sock *sk, struct mssfrac_conn *conn)
{
	struct mssfrac_tx *tx = &conn->tx;
	u32 step = mssfrac_step(tcp_sk(sk)->mss_cache,
				READ_ONCE(conn->mn->set.tx_frac));
	u32 seg;

	if (!tx->seg)
		return;
	seg = wanted_segment(sk, tx->round_wnd - min(tx->round_wnd, tx->goal),
			     &conn->mn->set);
	if (seg < tx->seg || seg >= tx->seg + step)
		mssfrac_fit_stock(tx);
}

/*
 * Policy B.  3: the remainder of the window, in the call in which only it can be
 * sent.  4: the room of the call in segments of one size, if it has a remainder.
 * One such call outstanding.
 */
u32 mssfrac_tail_size(struct sock *sk, struct mssfrac_conn *conn, u32 mss)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct mssfrac_settings *set = &conn->mn->set;
	struct mssfrac_tx *tx = &conn->tx;
	u32 step = max_t(u32, mssfrac_step(mss, READ_ONCE(set->tx_frac)),
			 MSSFRAC_MIN_SEG);
	u32 end = tcp_wnd_end(tp);
	u32 room, rest, count;

	if (!tcp_send_head(sk) || !after(end, tp->snd_nxt))
		return mss;
	room = end - tp->snd_nxt;
	if (tp->write_seq - tp->snd_nxt < room || tp->snd_wnd < mss ||
	    tp->snd_wnd / mss > READ_ONCE(set->seg_max) ||
	    tp->packets_out + room / mss + 2 > tcp_snd_cwnd(tp))
		return mss;
	/* Was the last tail sent, and is it still outstanding? */
	if (tx->goal && !before(tp->snd_nxt, tx->settle_seq)) {
		if (after(tx->settle_seq, tp->snd_una))
			return mss;
		tx->goal = 0;
	}
	rest = room % mss;
	count = room / mss;
	if (rest < step || (count && READ_ONCE(set->tx_policy) == 3))
		return mss;
	if (!tx->goal)
		mssfrac_count(conn, tx_trials, 1);
	tx->goal = 1;
	tx->settle_seq = end;
	if (!count)
		return (tp->packets_out & 1) || room < 2 * MSSFRAC_MIN_SEG ?
			room : (room + 1) / 2;
	return (room + count) / (count + 1);
}
