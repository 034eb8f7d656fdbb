// SPDX-License-Identifier: GPL-2.0
/*
 * Receiver policy: how much of the free buffer to offer.  Counts what the
 * kernel's choice leaves unoffered for alignment, and in the treated arm
 * offers windows in steps of rcv_mss/N (window.h).  Never changes what the
 * buffer may hold, and never takes back what was offered: the kernel's
 * tcp_select_window() keeps the right edge.
 */
#include "conn.h"
#include "est.h"
#include "rx.h"
#include "trace.h"
#include "window.h"

/* The kernel's window has finished growing after as many data segments. */
#define STEADY_SEGS 32

/* Bytes the kernel would be ready to queue, before any rounding. */
static u32 offerable(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	int space = tcp_space(sk);

	space = min_t(int, space, tp->rcv_ssthresh);
	space = min_t(int, space, tp->window_clamp);
	/* What the header field can say. */
	return clamp_t(int, space, 0, U16_MAX << tp->rx_opt.rcv_wscale);
}

/*
 * How far the kernel lets its window grow (tcp_grow_window) depends on the
 * segments that come, and so on what was offered: let it finish first.  Once
 * it has, it stays so; offers that come and go would unsettle the sender.
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

/* @stock: what the kernel would offer.  Socket lock held. */
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

	space = offerable(sk);
	/* With window scaling the kernel does not round to segments. */
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
