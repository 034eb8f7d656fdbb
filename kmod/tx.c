// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sender policy, under any congestion control: the segment size that fills the
 * peer's window.  It only lowers the result of tcp_current_mss() and writes no
 * field of the socket.  So without the policy the next call is stock behaviour.
 *
 * Windows of one MSS and more: after each round trip that the window limited,
 * window.h computes the size.  It is given up if the peer then advertises no
 * more than stock used of its window, or if a segment keeps waiting for its ACK
 * and stock used more.  Only bytes and round trips decide, never a clock: a
 * reader may rest at any time.
 *
 * Windows below one MSS: with nothing in flight stock Linux sends one window
 * per max(RTO, 200 ms) (tcp_check_probe_timer).  After the first such stall of
 * a connection its segments are as large as the window, as long as that is below
 * one MSS.
 */
#include "conn.h"
#include "rounds.h"
#include "trace.h"
#include "tx.h"
#include "window.h"

/*
 * Half of sk_gso_max_size: the largest segment that fits twice in a GSO skb.  The
 * owner of a namespace can set a few bytes (gso_max_size), which are no segment.
 */
static u32 half_chunk(const struct sock *sk)
{
	u32 half = sk->sk_gso_max_size / 2;

	return sk_can_gso(sk) && half >= MSSFRAC_MIN_SEG ? half : U32_MAX;
}

/*
 * The size for a window; the MSS where no size gains anything.  @in_force: a
 * size is, which a congestion window that is too small does not end.
 */
static u32 wanted_segment(const struct sock *sk, const struct mssfrac_conn *conn,
			  u32 window, bool in_force)
{
	const struct mssfrac_settings *set = &conn->mn->set;
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 seg_max = READ_ONCE(set->seg_max);
	u32 frac = READ_ONCE(set->tx_frac);
	u32 cwnd = tcp_snd_cwnd(tp);
	u32 half = half_chunk(sk);
	u32 mss = tp->mss_cache;
	u32 seg, stock, fits;

	if (window < mss || window > tp->max_window)
		return mss;
	seg = mssfrac_paired_segment(window, mss, half, frac, seg_max);
	if (!tp->rx_opt.snd_wscale)
		seg = mssfrac_unscaled_segment(seg, window, mss, seg_max);
	if (seg == mss)
		return mss;
	/*
	 * The congestion window counts segments.  It must hold as many bytes in
	 * ours as full-sized ones use, but for MSS/N of each.
	 */
	if (mss <= half) {
		stock = mssfrac_whole_segments(window, mss);
		stock -= mssfrac_step(stock, frac);
		return in_force || (u64)seg * cwnd >= stock ? seg : mss;
	}
	/* Pairs may be larger.  It must hold one more than all of them. */
	fits = window / (max(cwnd, 2U) - 1) & ~1U;
	if (seg >= fits)
		return seg;
	return in_force || fits <= half ? min(fits, half) & ~1U : mss;
}

/* On the way to @goal: there at once or, with tx_steady, a step of MSS/N. */
static u32 next_segment(const struct sock *sk, const struct mssfrac_conn *conn,
			u32 goal)
{
	u32 mss = tcp_sk(sk)->mss_cache;
	u32 from = conn->policy->tx.seg;

	if (!READ_ONCE(conn->mn->set.tx_steady))
		return goal;
	if (!from)
		from = mssfrac_steady_start(goal, mss, half_chunk(sk));
	return mssfrac_steady_step(from, goal, mss,
				   READ_ONCE(conn->mn->set.tx_frac));
}

/*
 * Only a window that has grown, by MSS/N per segment, ends the size of a sender
 * with another limit.  One that is smaller for a while, by what is not read yet,
 * does not.  If the congestion window no longer holds as much in our segments,
 * full-sized ones are wanted.
 */
static bool grown(const struct sock *sk, const struct mssfrac_conn *conn,
		  u32 window)
{
	u32 step = mssfrac_step(tcp_sk(sk)->mss_cache,
				READ_ONCE(conn->mn->set.tx_frac));

	return window > conn->policy->tx.base_wnd &&
	       wanted_segment(sk, conn, window, false) >=
	       conn->policy->tx.seg + step;
}

/* Use stock segments from the next call on. */
static u8 use_stock(struct mssfrac_tx *tx, u8 why)
{
	tx->seg = 0;
	tx->base_wnd = 0;
	tx->held = 0;
	tx->unfilled = 0;
	tx->seen = MSSFRAC_WHY_ROUND;
	tx->nudge = 0;
	return why;
}

/* Round trips until the next attempt: doubled, as RFC 6298 backs off. */
static void back_off(struct mssfrac_tx *tx)
{
	tx->backoff = min(tx->backoff + 1, TCP_RETR2);
	tx->wait = 1 << tx->backoff;
	tx->held = 0;
}

/* Stock is better; try again, but later each time. */
static u8 give_up(struct mssfrac_policy *policy)
{
	back_off(&policy->tx);
	mssfrac_count(policy, tx_reverted, 1);
	return use_stock(&policy->tx, MSSFRAC_WHY_REVERTED);
}

/* Round trips of @used bytes that send what is queued, and cut already. */
static u16 queued(const struct sock *sk, u32 used)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return min_t(u32, (tp->write_seq - tp->snd_una) / used, U16_MAX);
}

/*
 * Bytes per round trip.  What delivers more than the window takes more than one:
 * a segment waited for its ACK until the next window.
 */
static u32 per_trip(u32 acked, u32 window)
{
	/* Rounded up without a sum: TCP_REPAIR_WINDOW can set 2^32 - 1. */
	return acked && window ? acked / ((acked - 1) / window + 1) : 0;
}

/* @used of @window, in 1/256. */
static u8 share(u32 used, u32 window)
{
	return min_t(u32, used / ((window - 1) / 256 + 1), U8_MAX);
}

/* Twice in a row?  One round trip may be a mixture of before and after. */
static bool again(struct mssfrac_tx *tx, u8 why, bool now)
{
	bool before = tx->seen == why;

	tx->seen = now ? why : MSSFRAC_WHY_ROUND;
	return now && before;
}

/* The peer's window limited a whole round trip, which delivered @acked bytes. */
static u8 choose_segment(const struct sock *sk, struct mssfrac_conn *conn,
			 u32 window, u32 acked)
{
	u32 mss = tcp_sk(sk)->mss_cache;
	struct mssfrac_policy *policy = conn->policy;
	struct mssfrac_tx *tx = &policy->tx;
	u32 seg = wanted_segment(sk, conn, window, tx->seg);
	u32 step = mssfrac_step(mss, READ_ONCE(conn->mn->set.tx_frac));
	u32 used = per_trip(acked, window);
	u32 lost = window - used;

	if (tx->wait)
		tx->wait--;
	/* Not more than stock used: the peer advertises less for our segments. */
	if (tx->seg && window < tx->base_wnd &&
	    window <= mssfrac_whole_segments(tx->base_wnd, mss))
		return again(tx, MSSFRAC_WHY_REVERTED, true) ?
		       give_up(policy) : MSSFRAC_WHY_ROUND;
	tx->base_wnd = max(tx->base_wnd, window);
	if (!tx->seg) {
		/*
		 * Remainders between full-sized segments fill some windows in
		 * every round trip, others in one of two, or two of three.  So
		 * one of the three before must have left a part unused as well.
		 */
		tx->unfilled = tx->unfilled << 1 |
			       (lost >= step && mssfrac_wasteful(used, window));
		if (seg == mss || tx->wait || !(tx->unfilled & 1) ||
		    !(tx->unfilled & 0xe))
			return MSSFRAC_WHY_ROUND;
		tx->seg = next_segment(sk, conn, seg);
		tx->stock_used = share(used, window);
		/* After a failure, judge only what is cut from now on. */
		if (tx->backoff)
			tx->wait = queued(sk, used);
		mssfrac_count(policy, tx_sized, 1);
		return MSSFRAC_WHY_SIZED;
	}

	if (seg == mss)
		return use_stock(tx, MSSFRAC_WHY_MOVED);
	/* Follow the window, but not up by a few bytes. */
	if (seg < tx->seg || seg >= tx->seg + step) {
		tx->seg = next_segment(sk, conn, seg);
		return MSSFRAC_WHY_STEP;
	}
	/*
	 * The receiver acknowledges every second segment, and a GSO skb as a
	 * whole.  So the last segment may wait for the first GSO skb of the next
	 * window, time after time: n - 1 segments per round trip, even if n is
	 * even.  Sending the next data in half-sized segments moves the last one.
	 * Give up if stock used more, and all that is sent now has been cut
	 * since the last nudge.
	 */
	if ((lost + tx->seg / 2) / tx->seg == 1) {
		if (!again(tx, MSSFRAC_WHY_NUDGE, !tx->wait))
			return MSSFRAC_WHY_ROUND;
		if (tx->backoff && 1 << tx->backoff >= queued(sk, used) &&
		    share(used, window) < tx->stock_used)
			return give_up(policy);
		back_off(tx);
		tx->nudge = 1;
		return MSSFRAC_WHY_NUDGE;
	}
	/* What has been good as long as the last wait halves the next one. */
	if (tx->backoff && ++tx->held >> tx->backoff) {
		tx->backoff--;
		tx->held = 0;
	}
	tx->seen = MSSFRAC_WHY_ROUND;
	return MSSFRAC_WHY_ROUND;
}

/* @on: the policy acts on this connection. */
static void round_done(const struct sock *sk, struct mssfrac_conn *conn, bool on,
		       const struct mssfrac_round *round)
{
	u8 why = round->limited ? MSSFRAC_WHY_ROUND : MSSFRAC_WHY_NO_LIMIT;

	/* A size is that of its window, whatever limits the sender since. */
	if (on && round->whole)
		why = choose_segment(sk, conn, round->window, round->acked);
	else if (conn->extended &&
		 (!on || (!round->limited && (!conn->policy->tx.seg ||
					      grown(sk, conn, round->window)))))
		use_stock(&conn->policy->tx, why);
	trace_align(sk, conn, round->window, round->acked, why);
}

/*
 * The size for a window below one MSS; 0 leaves it to the kernel.  The size
 * stays while it fits.  Otherwise the windows advertised between two reads,
 * which are smaller by the unread bytes, would make ever smaller segments.
 */
static u32 unstall(const struct sock *sk, struct mssfrac_conn *conn, u32 mss)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct mssfrac_tx *tx = &conn->policy->tx;
	const struct sk_buff *head = tp->packets_out ? NULL : tcp_send_head(sk);
	bool waits = head && after(TCP_SKB_CB(head)->end_seq, tcp_wnd_end(tp));
	u32 seg;

	if (tp->snd_wnd >= mss) {
		tx->stalled = 0;
		tx->small_seg = 0;
		return 0;
	}
	/* The kernel's timer has run since the call before: this is its call. */
	if (waits && tx->stalled && inet_csk(sk)->icsk_pending != ICSK_TIME_PROBE0)
		tx->eager = 1;
	tx->stalled = waits;
	if (!tx->eager)
		return 0;

	seg = mssfrac_small_segment(tp->snd_wnd, mss);
	if (seg == mss)
		return 0;
	if (seg > tx->small_seg || (tx->stalled && tp->snd_wnd < tx->small_seg)) {
		tx->small_seg = seg;
		mssfrac_count(conn->policy, tx_unstalled, 1);
		trace_align(sk, conn, conn->rounds.window, 0, MSSFRAC_WHY_STALL);
	}
	return tx->small_seg;
}

/*
 * Half of the size, for the first call in which a segment could be sent.  It can
 * be one that sends nothing (tcp_sacktag_write_queue) or sends again: then the
 * next nudge comes after its wait.
 */
static u32 nudge(const struct sock *sk, struct mssfrac_tx *tx)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_send_head(sk) || after(tp->snd_nxt + tx->seg, tcp_wnd_end(tp)))
		return tx->seg;
	tx->nudge = 0;
	return max_t(u32, tx->seg / 2, MSSFRAC_MIN_SEG);
}

/*
 * A new path MTU, also one that leaves the MSS as it is: the caller may be
 * searching for segments that no longer fit the path (tcp_simple_retransmit).
 */
static bool moved(const struct sock *sk, const struct mssfrac_tx *tx)
{
	return tx->mss_cache != tcp_sk(sk)->mss_cache ||
	       tx->pmtu_cookie != inet_csk(sk)->icsk_pmtu_cookie;
}

/* Discard a size chosen for another path MTU. */
static void begin(const struct sock *sk, struct mssfrac_tx *tx)
{
	tx->mss_cache = tcp_sk(sk)->mss_cache;
	tx->pmtu_cookie = inet_csk(sk)->icsk_pmtu_cookie;
	tx->small_seg = 0;
	tx->backoff = 0;
	tx->wait = 0;
	use_stock(tx, MSSFRAC_WHY_MSS);
}

/* @stock: the kernel's current segment size.  Socket lock held. */
u32 mssfrac_tx_mss(struct sock *sk, u32 stock)
{
	struct mssfrac_conn *conn = mssfrac_conn_get(sk);
	struct mssfrac_tx *tx = NULL;
	struct mssfrac_round round;
	u32 seg;

	if (!conn) {
		mssfrac_rounds_forget(sk);
		return stock;
	}
	if (conn->arm == MSSFRAC_TREATED && READ_ONCE(conn->mn->set.tx_frac) &&
	    mssfrac_conn_ensure_policy(&conn))
		tx = &conn->policy->tx;

	if (!conn->rounds_seen || (tx && moved(sk, tx))) {
		mssfrac_rounds_begin(sk, conn);
		if (tx)
			begin(sk, tx);
		trace_align(sk, conn, conn->rounds.window, 0, MSSFRAC_WHY_MSS);
		return stock;
	}

	if (mssfrac_rounds_watch(sk, conn, &round))
		round_done(sk, conn, tx, &round);
	if (!tx)
		return stock;
	seg = unstall(sk, conn, stock);
	/*
	 * In recovery, too.  A Linux receiver measures how much memory a byte
	 * takes when a segment is larger than those before it, and sets its
	 * window accordingly (tcp_measure_rcv_mss).  One full-sized segment,
	 * sent alone, can lower the window by a third, for good.
	 */
	if (!seg)
		seg = tx->nudge ? nudge(sk, tx) : tx->seg;
	/* The kernel counts the segments of an skb in 16 bits: none is tiny. */
	return seg >= MSSFRAC_MIN_SEG && seg < stock ? seg : stock;
}

/* Bytes; the size in force, 0: the kernel's. */
u32 mssfrac_tx_size(const struct mssfrac_conn *conn)
{
	const struct mssfrac_tx *tx = &conn->policy->tx;

	if (!conn->extended)
		return 0;
	return tx->small_seg ? tx->small_seg : tx->seg;
}
