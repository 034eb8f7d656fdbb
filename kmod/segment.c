// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sender's segment size, for mssfrac_cc.ko, which sets a congestion window
 * in such segments.  Decides nothing (tx.c does).
 */
#include <linux/export.h>
#include <linux/rcupdate.h>

#include "conn.h"
#include "segment.h"
#include "tx.h"

/* Set at the end: mssfrac_cc.ko may call mssfrac_segment_in_force() a little longer. */
static bool gone;

/* The size that mssfrac_tx_mss() gives windows of one MSS and more. */
u32 mssfrac_segment_in_force(const struct sock *sk, u32 stock)
{
	const struct mssfrac_conn *conn;
	u32 seg;

	if (READ_ONCE(gone) || mssfrac_conn_left_alone(sk))
		return stock;
	conn = mssfrac_conn_find(sk);
	if (!conn || conn->arm != MSSFRAC_TREATED || !conn->extended ||
	    !READ_ONCE(conn->mn->set.tx_frac))
		return stock;
	seg = conn->policy->tx.seg;
	return seg && seg < stock ? seg : stock;
}
EXPORT_SYMBOL_GPL(mssfrac_segment_in_force);

/* On return mssfrac_segment_in_force() uses no connection. */
void mssfrac_segment_exit(void)
{
	WRITE_ONCE(gone, true);
	synchronize_rcu();
}
