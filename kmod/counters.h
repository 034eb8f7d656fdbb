/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of counters.  /proc/net/mssfrac shows the sums of each arm,
 * mssfrac:conn_end those of one connection.
 */
#ifndef MSSFRAC_COUNTERS_H
#define MSSFRAC_COUNTERS_H

#include <linux/types.h>

#include "arm.h"

struct net;

/*
 * Name, and what it counts.  SEEN ones are kept for each connection, DONE ones
 * for those that a policy may act on.  SUM is of the two bytes that follow.
 */
#define MSSFRAC_CONN_COUNTERS(SEEN, DONE, SUM)				\
	/* Sender; bytes are of round trips limited by the window */	\
	SEEN(tx_segments)	/* data segments sent */		\
	SEEN(tx_rounds)		/* round trips limited by the peer's window */ \
	SUM(tx_bytes_available)	/* bytes advertised for those rounds */	\
	SEEN(tx_bytes_used)	/* bytes acknowledged in them */	\
	SEEN(tx_bytes_lost)	/* bytes advertised and not used */	\
	DONE(tx_sized)		/* segment sizes chosen */		\
	DONE(tx_reverted)	/* given up: the window shrank */	\
	DONE(tx_unstalled)	/* sizes chosen for a window below one MSS */ \
	/* Receiver, per window selected */				\
	SEEN(rx_segments)	/* data segments received */		\
	SEEN(rx_windows)	/* non-zero windows selected */		\
	DONE(rx_raised)		/* windows above the kernel's choice */	\
	SUM(rx_bytes_available)	/* bytes that fit into the buffer */	\
	SEEN(rx_bytes_advertised) /* bytes advertised */		\
	SEEN(rx_bytes_lost)	/* bytes not advertised, for alignment */

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

int mssfrac_counters_register(struct net *net);
void mssfrac_counters_unregister(struct net *net);

#endif /* MSSFRAC_COUNTERS_H */
