/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of counters.  /proc/net/mssfrac shows the sums of each arm,
 * mssfrac:conn_end those of one connection.
 */
#ifndef MSSFRAC_COUNTERS_H
#define MSSFRAC_COUNTERS_H

#include <linux/types.h>

#include "arm.h"

struct mssfrac_conn;
struct net;

/*
 * Name, and what it counts.  Every connection stores the CONN ones, and those
 * that a policy may act on the POLICY ones.  SUM: the next two, added on reading.
 */
#define MSSFRAC_CONN_COUNTERS(CONN, POLICY, SUM)			\
	/* Sender; bytes are of round trips limited by the window */	\
	CONN(tx_segments)	/* data segments sent */		\
	CONN(tx_rounds)		/* round trips limited by the peer's window */ \
	SUM(tx_bytes_available)	/* bytes advertised for those rounds */	\
	CONN(tx_bytes_used)	/* bytes acknowledged in them */	\
	CONN(tx_bytes_lost)	/* bytes advertised and not used */	\
	POLICY(tx_sized)	/* segment sizes chosen */		\
	POLICY(tx_reverted)	/* given up: the window shrank */	\
	POLICY(tx_unstalled)	/* sizes chosen for a window below one MSS */ \
	/* Receiver, per window selected */				\
	CONN(rx_segments)	/* data segments received */		\
	CONN(rx_windows)	/* non-zero windows selected */		\
	POLICY(rx_raised)	/* windows above the kernel's choice */	\
	SUM(rx_bytes_available)	/* bytes that fit into the buffer */	\
	CONN(rx_bytes_advertised) /* bytes advertised */		\
	CONN(rx_bytes_lost)	/* bytes not advertised, for alignment */

#define MSSFRAC_COUNTERS(X)						\
	X(connections)		/* connections seen */			\
	MSSFRAC_CONN_COUNTERS(X, X, X)

enum mssfrac_counter {
#define X(name) MSSFRAC_##name,
	MSSFRAC_COUNTERS(X)
#undef X
	MSSFRAC_NR_COUNTERS
};

struct mssfrac_totals {
	u64 v[MSSFRAC_ARMS][MSSFRAC_NR_COUNTERS];
};

void mssfrac_counters_add(const struct mssfrac_conn *conn, u64 *v);
int mssfrac_counters_register(struct net *net);
void mssfrac_counters_unregister(struct net *net);

#endif /* MSSFRAC_COUNTERS_H */
