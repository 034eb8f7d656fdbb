// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receiver policy: how much of the free buffer to advertise.  Counts the bytes
 * that the kernel does not advertise for alignment.  In the treatment arm it
 * advertises windows in steps of rcv_mss/N (window.h).  It never changes the
 * size of the buffer.  It never shrinks a window that was advertised, because
 * the kernel's tcp_select_window() keeps the right edge.
 */
#include "conn.h"
#include "est.h"
#include "rx.h"
#include "trace.h"
#include "window.h"

/* Data segments without a change of rcv_ssthresh until the window is steady. */
#define STEADY_SEGS 32

/* Bytes that the kernel would accept, before any rounding. */
static u32 acceptable(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	int space = tcp_space(sk);

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

/* @stock: the window that the kernel would advertise.  Socket lock held. */
u32 mssfrac_rx_window(struct sock *sk, u32 stock)
{
	struct mssfrac_conn *conn = mssfrac_conn_get(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	struct mssfrac_net *mn;
	u32 space, offer = stock;

	if (!conn)
		return stock;
	mn = conn->mn;
	mssfrac_conn_count(sk, conn);
	if (!stock)
		return 0;

	space = acceptable(sk);
	/* With window scaling the kernel does not round to the MSS. */
	if (window_steady(tp, &conn->rx) &&
	    conn->arm == MSSFRAC_TREATED && !tp->rx_opt.rcv_wscale)
		offer = mssfrac_offer(stock, space, tp->rcv_wnd,
				      mssfrac_est_mss(sk, conn),
				      READ_ONCE(mn->set.rx_frac),
				      READ_ONCE(mn->set.seg_max));

	mssfrac_count(conn, rx_windows, 1);
	mssfrac_count(conn, rx_bytes_available, max(space, offer));
	mssfrac_count(conn, rx_bytes_advertised, offer);
	if (space > offer)
		mssfrac_count(conn, rx_bytes_lost, space - offer);
	if (offer > stock)
		mssfrac_count(conn, rx_raised, 1);
	trace_window(sk, conn, space, stock, offer);
	return offer;
}
