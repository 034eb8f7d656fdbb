// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sender policy, under any congestion control: the segment size that fills the
 * peer's window.  It only lowers the result of tcp_current_mss() and writes no
 * field of the socket.  So without the policy the next call is stock behaviour.
 *
 * Windows of one MSS and more: trial.c chooses the size by the bytes that each
 * round trip delivered.
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
#include "fit.h"
#include "trial.h"
#include "tx.h"
#include "window.h"

/* Half of TCP_RTO_MIN: a longer wait is a stall, not a pause of the reader. */
#define STALL_US	(100 * USEC_PER_MSEC)

static bool state_open(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_state < TCP_CA_Recovery;
}

static void round_done(struct sock *sk, struct mssfrac_conn *conn)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct mssfrac_tx *tx = &conn->tx;
	u32 acked = tp->snd_una - tx->last_una;
	bool limited = tp->chrono_type == TCP_CHRONO_RWND_LIMITED &&
		       tcp_send_head(sk) && state_open(sk);
	u8 policy = READ_ONCE(conn->mn->set.tx_policy);
	u8 why = MSSFRAC_WHY_ROUND;
	u64 rate = 0;

	mssfrac_conn_count(sk, conn);
	if (!limited || !acked) {
		if (policy)
			mssfrac_fit_unlimited(sk, conn);
		else
			mssfrac_trial_unlimited(tp, tx);
		trace_align(sk, conn, acked, 0, MSSFRAC_WHY_NO_LIMIT);
		return;
	}

	mssfrac_count(conn, tx_rounds, 1);
	mssfrac_count(conn, tx_bytes_available, max(tx->round_wnd, acked));
	mssfrac_count(conn, tx_bytes_used, acked);
	if (acked < tx->round_wnd)
		mssfrac_count(conn, tx_bytes_lost, tx->round_wnd - acked);

	if (policy) {
		if (policy <= 2 && conn->arm == MSSFRAC_TREATED &&
		    READ_ONCE(conn->mn->set.tx_frac))
			why = mssfrac_fit_round(sk, conn, acked);
		else
			mssfrac_fit_stock(tx);
		trace_align(sk, conn, acked, 0, why);
		return;
	}
	rate = mssfrac_trial_round(tp, tx, acked);
	if (conn->arm == MSSFRAC_TREATED && READ_ONCE(conn->mn->set.tx_frac))
		why = mssfrac_trial_judge(sk, conn, rate);
	else if (rate || tx->seg)
		mssfrac_trial_stock(tp, tx);
	trace_align(sk, conn, acked, rate, why);
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
	tx->round_start = tp->tcp_mstamp;
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
	u32 frac = READ_ONCE(conn->mn->set.tx_frac);
	u32 seg;

	if (tp->snd_wnd >= mss) {
		tx->stalled = 0;
		tx->small_seg = 0;
		return 0;
	}
	if (tp->packets_out || !tcp_send_head(sk)) {
		tx->stalled = 0;
	} else if (!tx->stalled) {
		tx->stalled = 1;
		tx->stall_start = tcp_clock_us();
	} else if (tcp_clock_us() - tx->stall_start >= STALL_US) {
		tx->eager = 1;
	}
	if (!tx->eager)
		return 0;

	seg = mssfrac_segment(tp->snd_wnd, mss, frac, 2);
	if (seg == mss)
		return 0;
	if (seg > tx->small_seg || (tx->stalled && tp->snd_wnd < tx->small_seg)) {
		tx->small_seg = seg;
		mssfrac_count(conn, tx_unstalled, 1);
		trace_align(sk, conn, 0, 0, MSSFRAC_WHY_STALL);
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
		mssfrac_trial_forget(tp, tx);
		trace_align(sk, conn, 0, 0, MSSFRAC_WHY_MSS);
		return stock;
	}

	watch_rounds(sk, conn);
	if (conn->arm == MSSFRAC_TREATED && READ_ONCE(conn->mn->set.tx_frac)) {
		seg = unstall(sk, conn, stock);
		if (!seg && state_open(sk))
			seg = tx->nudge ? nudge(sk, tx) : tx->seg;
		if (!seg && state_open(sk) &&
		    READ_ONCE(conn->mn->set.tx_policy) > 2)
			seg = mssfrac_tail_size(sk, conn, stock);
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
