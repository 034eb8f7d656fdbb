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
 * a connection its segments are half of the window, as long as the window is
 * below one MSS.
 *
 * Sequence numbers delimit round trips, as in tcp_vegas.c (beg_snd_nxt).  One
 * ends when everything that was in flight at its start is acknowledged.
 */
#include <linux/export.h>
#include <linux/rcupdate.h>

#include "conn.h"
#include "trace.h"
#include "tx.h"
#include "window.h"

static bool state_open(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_state < TCP_CA_Recovery;
}

/* Half of sk_gso_max_size: the largest segment that fits twice in a GSO skb. */
static u32 half_chunk(const struct sock *sk)
{
	return sk_can_gso(sk) ? sk->sk_gso_max_size / 2 : U32_MAX;
}

/* The size for a window; the MSS where no size gains anything. */
static u32 wanted_segment(const struct sock *sk, const struct mssfrac_conn *conn,
			  u32 window)
{
	const struct mssfrac_settings *set = &conn->mn->set;
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 seg_max = READ_ONCE(set->seg_max);
	u32 half = half_chunk(sk);
	u32 mss = tp->mss_cache;
	u32 seg, fits;

	if (window < mss || window > tp->max_window)
		return mss;
	seg = mssfrac_paired_segment(window, mss, half, READ_ONCE(set->tx_frac),
				     seg_max);
	if (!tp->rx_opt.snd_wscale)
		seg = mssfrac_unscaled_segment(seg, window, mss, seg_max);
	/*
	 * The congestion window counts segments.  It is the limit unless it
	 * holds one more than all of them.  Pairs allow larger segments.
	 */
	fits = window / (max(tcp_snd_cwnd(tp), 2U) - 1) & ~1U;
	if (seg < fits)
		seg = mss > half && fits <= half ? fits : mss;
	return seg;
}

/* On the way to @goal: there at once or, with tx_steady, a step of MSS/N. */
static u32 next_segment(const struct sock *sk, const struct mssfrac_conn *conn,
			u32 goal)
{
	u32 mss = tcp_sk(sk)->mss_cache;
	u32 from = conn->tx.seg;

	if (!READ_ONCE(conn->mn->set.tx_steady))
		return goal;
	if (!from)
		from = mssfrac_steady_start(goal, mss, half_chunk(sk));
	return mssfrac_steady_step(from, goal, mss,
				   READ_ONCE(conn->mn->set.tx_frac));
}

/* Is the size too large, or too small by a step of MSS/N, for its window? */
static bool moved(const struct sock *sk, const struct mssfrac_conn *conn)
{
	u32 seg = wanted_segment(sk, conn, conn->tx.round_wnd);
	u32 frac = READ_ONCE(conn->mn->set.tx_frac);

	return (seg < conn->tx.seg && !READ_ONCE(conn->mn->set.tx_steady)) ||
	       seg >= conn->tx.seg + mssfrac_step(tcp_sk(sk)->mss_cache, frac);
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
static u8 give_up(struct mssfrac_conn *conn)
{
	back_off(&conn->tx);
	mssfrac_count(conn, tx_reverted, 1);
	return use_stock(&conn->tx, MSSFRAC_WHY_REVERTED);
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
	return window ? acked / DIV_ROUND_UP(acked, window) : 0;
}

/* @used of @window, in 1/256. */
static u8 share(u32 used, u32 window)
{
	return min_t(u32, used / DIV_ROUND_UP(window, 256), U8_MAX);
}

/* Twice in a row?  One round trip may be a mixture of before and after. */
static bool again(struct mssfrac_tx *tx, u8 why, bool now)
{
	bool before = tx->seen == why;

	tx->seen = now ? why : MSSFRAC_WHY_ROUND;
	return now && before;
}

/* The peer's window limited a whole round trip, which delivered @acked bytes. */
static u8 choose_segment(struct sock *sk, struct mssfrac_conn *conn, u32 acked)
{
	u32 mss = tcp_sk(sk)->mss_cache;
	struct mssfrac_tx *tx = &conn->tx;
	u32 window = tx->round_wnd;
	u32 seg = wanted_segment(sk, conn, window);
	u32 step = mssfrac_step(mss, READ_ONCE(conn->mn->set.tx_frac));
	u32 used = per_trip(acked, window);
	u32 lost = window - used;

	if (tx->wait)
		tx->wait--;
	/* Not more than stock used: the peer advertises less for our segments. */
	if (tx->seg && window < tx->base_wnd &&
	    window <= mssfrac_whole_segments(tx->base_wnd, mss))
		return again(tx, MSSFRAC_WHY_REVERTED, true) ?
		       give_up(conn) : MSSFRAC_WHY_ROUND;
	tx->base_wnd = max(tx->base_wnd, window);
	if (!tx->seg) {
		/*
		 * Remainders between full-sized segments fill some windows in
		 * every round trip, others in one of two, or two of three.  So
		 * one of the three before must have left a part unused as well.
		 */
		tx->unfilled = tx->unfilled << 1 | (lost >= step);
		if (seg == mss || tx->wait || !(tx->unfilled & 1) ||
		    !(tx->unfilled & 0xe))
			return MSSFRAC_WHY_ROUND;
		tx->seg = next_segment(sk, conn, seg);
		tx->stock_used = share(used, window);
		/* After a failure, judge only what is cut from now on. */
		if (tx->backoff)
			tx->wait = queued(sk, used);
		mssfrac_count(conn, tx_sized, 1);
		return MSSFRAC_WHY_SIZED;
	}

	if (seg == mss)
		return use_stock(tx, MSSFRAC_WHY_MOVED);
	/* Follow the window, but not up by a few bytes. */
	if (seg < tx->seg || moved(sk, conn)) {
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
			return give_up(conn);
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

static void round_done(struct sock *sk, struct mssfrac_conn *conn)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct mssfrac_tx *tx = &conn->tx;
	u32 acked = tp->snd_una - tx->last_una;
	bool limited = tp->chrono_type == TCP_CHRONO_RWND_LIMITED &&
		       tcp_send_head(sk) && state_open(sk) && acked;
	bool whole = limited && tx->limited;
	u8 why = limited ? MSSFRAC_WHY_ROUND : MSSFRAC_WHY_NO_LIMIT;

	tx->limited = limited;
	mssfrac_conn_count(sk, conn);
	if (limited) {
		mssfrac_count(conn, tx_rounds, 1);
		mssfrac_count(conn, tx_bytes_available, max(tx->round_wnd, acked));
		mssfrac_count(conn, tx_bytes_used, acked);
		if (acked < tx->round_wnd)
			mssfrac_count(conn, tx_bytes_lost, tx->round_wnd - acked);
	}
	if (conn->arm != MSSFRAC_TREATED || !READ_ONCE(conn->mn->set.tx_frac))
		use_stock(tx, why);
	/* One that began with another limit says nothing of the window. */
	else if (whole)
		why = choose_segment(sk, conn, acked);
	/* A size is that of its window, and of a larger congestion window. */
	else if (!limited && (!tx->seg || moved(sk, conn)))
		use_stock(tx, why);
	trace_align(sk, conn, acked, why);
}

/*
 * Called before the kernel sends.  The segments sent after this call are in
 * flight at the next one, which therefore sets the end of the round trip.
 */
static void watch_rounds(struct sock *sk, struct mssfrac_conn *conn)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct mssfrac_tx *tx = &conn->tx;

	tx->round_wnd = max(tx->round_wnd, tp->snd_wnd);
	if (!tx->round_open) {
		tx->round_end = tp->snd_nxt;
		tx->round_open = tx->round_end != tx->last_una;
	}
	if (!tx->round_open || before(tp->snd_una, tx->round_end))
		return;
	round_done(sk, conn);
	tx->last_una = tp->snd_una;
	tx->round_wnd = tp->snd_wnd;
	tx->round_open = 0;
}

/*
 * The size for a window below one MSS; 0 leaves it to the kernel.  The size
 * stays while it fits.  Otherwise the windows advertised between two reads,
 * which are smaller by the unread bytes, would make ever smaller segments.
 */
static u32 unstall(struct sock *sk, struct mssfrac_conn *conn, u32 mss)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct mssfrac_tx *tx = &conn->tx;
	bool waits = !tp->packets_out && tcp_send_head(sk);
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

	seg = mssfrac_segment(tp->snd_wnd, mss,
			      READ_ONCE(conn->mn->set.tx_frac), 2);
	if (seg == mss)
		return 0;
	if (seg > tx->small_seg || (tx->stalled && tp->snd_wnd < tx->small_seg)) {
		tx->small_seg = seg;
		mssfrac_count(conn, tx_unstalled, 1);
		trace_align(sk, conn, 0, MSSFRAC_WHY_STALL);
	}
	return tx->small_seg;
}

/* Half of the size, for the one call in which a segment can be sent. */
static u32 nudge(const struct sock *sk, struct mssfrac_tx *tx)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_send_head(sk) || after(tp->snd_nxt + tx->seg, tcp_wnd_end(tp)))
		return tx->seg;
	tx->nudge = 0;
	return max_t(u32, tx->seg / 2, MSSFRAC_MIN_SEG);
}

/* @stock: the kernel's current segment size.  Socket lock held. */
u32 mssfrac_tx_mss(struct sock *sk, u32 stock)
{
	struct mssfrac_conn *conn = mssfrac_conn_get(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	struct mssfrac_tx *tx;
	u32 seg = 0;

	if (!conn)
		return stock;
	tx = &conn->tx;

	/*
	 * A new path MTU.  The caller may be searching for segments that no
	 * longer fit the path (tcp_simple_retransmit) and needs the real MSS.
	 */
	if (tx->mss_cache != tp->mss_cache) {
		tx->mss_cache = tp->mss_cache;
		tx->small_seg = 0;
		tx->last_una = tp->snd_una;
		tx->round_open = 0;
		tx->backoff = 0;
		tx->wait = 0;
		use_stock(tx, MSSFRAC_WHY_MSS);
		trace_align(sk, conn, 0, MSSFRAC_WHY_MSS);
		return stock;
	}

	watch_rounds(sk, conn);
	if (conn->arm == MSSFRAC_TREATED && READ_ONCE(conn->mn->set.tx_frac)) {
		seg = unstall(sk, conn, stock);
		if (!seg && state_open(sk))
			seg = tx->nudge ? nudge(sk, tx) : tx->seg;
	}
	return seg && seg < stock ? seg : stock;
}

/* Set at the end: mssfrac_cc.ko may call mssfrac_tx_segment() a little longer. */
static bool segment_gone;

/*
 * The size that mssfrac_tx_mss() gives windows of one MSS and more; decides
 * nothing.  mssfrac_cc.ko calls it, with the socket and RCU locked.
 */
u32 mssfrac_tx_segment(struct sock *sk, u32 stock)
{
	const struct mssfrac_conn *conn;

	if (READ_ONCE(segment_gone) ||
	    !READ_ONCE(mssfrac_net(sock_net(sk))->set.tx_frac))
		return stock;
	conn = mssfrac_conn_get(sk);
	if (!conn || conn->arm != MSSFRAC_TREATED || !conn->tx.seg)
		return stock;
	return min(conn->tx.seg, stock);
}
EXPORT_SYMBOL_GPL(mssfrac_tx_segment);

/* On return mssfrac_tx_segment() uses no connection and makes none. */
void mssfrac_tx_exit(void)
{
	WRITE_ONCE(segment_gone, true);
	synchronize_rcu();
}
