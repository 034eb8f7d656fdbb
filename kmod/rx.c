// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receiver policy: how much of the free buffer to advertise.  Counts the bytes
 * that the kernel does not advertise for alignment.  In the treatment arm it
 * advertises windows in steps of rcv_mss/N (window.h).  It never changes the
 * size of the buffer.  It never shrinks a window that was advertised, because
 * the kernel's tcp_select_window() keeps the right edge.
 */
#include "conn.h"
#include "rx.h"
#include "trace.h"
#include "window.h"

/* Data segments without a change of rcv_ssthresh until the window is steady. */
#define STEADY_SEGS	32
/* Data segments after which a smaller segment size of the sender is believed. */
#define EST_SEGS	256

/* With window scaling the kernel does not round to the MSS. */
static bool kernel_rounds(const struct sock *sk)
{
	return !tcp_sk(sk)->rx_opt.rcv_wscale;
}

/* Bytes that the kernel would accept into @space, before any rounding. */
static u32 acceptable(const struct sock *sk, int space)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	space = min_t(int, space, tp->rcv_ssthresh);
	space = min_t(int, space, tp->window_clamp);
	/* The largest value that fits into the header field. */
	return clamp_t(int, space, 0, U16_MAX << tp->rx_opt.rcv_wscale);
}

/*
 * The kernel grows its window (tcp_grow_window) by the size of the segments
 * that arrive, which depends on the windows advertised before.  So wait until
 * it has finished.  The result is permanent: raising windows on and off would
 * disturb the sender.
 */
static bool window_steady(const struct tcp_sock *tp, struct mssfrac_rx *rx)
{
	if (rx->steady)
		return true;
	if (rx->ssthresh != tp->rcv_ssthresh) {
		rx->ssthresh = tp->rcv_ssthresh;
		rx->still_since = tp->data_segs_in;
	}
	rx->steady = tp->data_segs_in - rx->still_since >= STEADY_SEGS;
	return rx->steady;
}

/*
 * rx_mss_est: measure the sender's segments, between two calls, by the bytes
 * received in sequence and the data segments that brought them.
 *
 * The kernel's estimate (tcp_measure_rcv_mss) never exceeds the MSS that we
 * advertised, although a segment carries up to 40 bytes more if the sender
 * leaves options out (the SC2003 paper's 8960 against 8948).  Two short records
 * of equal size also lower it.  This estimate is the largest mean of the last
 * EST_SEGS data segments.  A mean is never above the largest segment, provided
 * that the kernel has processed every segment that it counted: none is in the
 * backlog, which the counter includes, and none is out of order.
 */
static void measure_segments(const struct sock *sk, struct mssfrac_rx *rx)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 seg;

	if (sock_owned_by_user_nocheck(sk) ||
	    !RB_EMPTY_ROOT(&tp->out_of_order_queue) ||
	    sk->sk_shutdown & RCV_SHUTDOWN)	/* a FIN is not payload */
		return;
	seg = mssfrac_segment_seen(tp->rcv_nxt - rx->seen_nxt,
				   tp->data_segs_in - rx->seen_segs,
				   tp->advmss);
	if (seg && rx->seen)
		minmax_running_max(&rx->seg, EST_SEGS, tp->data_segs_in, seg);
	rx->seen_nxt = tp->rcv_nxt;
	rx->seen_segs = tp->data_segs_in;
	rx->seen = 1;
}

/* Bytes; the kernel's own estimate while rx_mss_est is 0 or nothing was seen. */
u32 mssfrac_rx_mss(const struct sock *sk, const struct mssfrac_conn *conn)
{
	u32 seg = conn->extended ? minmax_get(&conn->policy->rx.seg) : 0;

	if (READ_ONCE(conn->mn->set.rx_mss_est) && seg)
		return seg;
	return inet_csk(sk)->icsk_ack.rcv_mss;
}

/* In the treatment arm, with rx_frac on. */
static u32 raise(const struct sock *sk, struct mssfrac_conn *conn, u32 stock,
		 u32 space)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 seg_max = READ_ONCE(conn->mn->set.seg_max);
	u32 full = acceptable(sk, tcp_full_space(sk));
	u32 offer;

	/*
	 * advmss is a full-sized segment: what we advertised, less timestamps.  A
	 * treated sender lowers rcv_mss.
	 */
	if (!window_steady(tp, &conn->policy->rx) ||
	    !mssfrac_worth_raising(full, tp->advmss, seg_max))
		return stock;
	offer = mssfrac_offer(stock, space, tp->rcv_wnd, mssfrac_rx_mss(sk, conn),
			      READ_ONCE(conn->mn->set.rx_frac), seg_max);
	if (offer > stock)
		mssfrac_count(conn->policy, rx_raised, 1);
	return offer;
}

static void count(struct mssfrac_conn *conn, u32 offer)
{
	mssfrac_count(conn, rx_windows, 1);
	mssfrac_count(conn, rx_bytes_advertised, offer);
}

static noinline u32 choose_window(struct sock *sk, u32 stock)
{
	struct mssfrac_conn *conn = mssfrac_conn_get(sk);
	u32 space, offer = stock;

	if (!conn)
		return stock;
	mssfrac_conn_count(sk, conn);
	if (READ_ONCE(conn->mn->set.rx_mss_est) && mssfrac_conn_ensure_policy(&conn))
		measure_segments(sk, &conn->policy->rx);
	if (!stock)
		return 0;

	space = acceptable(sk, tcp_space(sk));
	if (conn->arm == MSSFRAC_TREATED && READ_ONCE(conn->mn->set.rx_frac) &&
	    kernel_rounds(sk) && mssfrac_conn_ensure_policy(&conn))
		offer = raise(sk, conn, stock, space);

	count(conn, offer);
	if (kernel_rounds(sk) && space > offer)
		mssfrac_count(conn, rx_bytes_lost, space - offer);
	trace_window(sk, conn, space, stock, offer);
	return offer;
}

/* Count the segments of a socket left alone, before the kernel's counts wrap. */
static noinline u32 count_left_alone(const struct sock *sk, u32 stock)
{
	struct mssfrac_conn *conn = mssfrac_conn_find(sk);

	if (conn)
		mssfrac_conn_count(sk, conn);
	return stock;
}

/*
 * @stock: the window that the kernel would advertise.  Socket lock held.
 *
 * Most windows need only be counted.  That case calls nothing, and the others end
 * with their call, so it saves no register: half of the instructions.
 */
u32 mssfrac_rx_window(struct sock *sk, u32 stock)
{
	struct mssfrac_conn *conn;

	if (mssfrac_conn_left_alone(sk))
		return count_left_alone(sk, stock);
	conn = mssfrac_conn_find(sk);
	if (unlikely(!conn) || kernel_rounds(sk) || !stock ||
	    READ_ONCE(conn->mn->set.rx_mss_est) || trace_window_enabled() ||
	    mssfrac_conn_must_count(sk, conn))
		return choose_window(sk, stock);
	count(conn, stock);
	return stock;
}
