/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of counters.  Each connection has all of them; /proc/net/mssfrac
 * shows the sums of each arm, mssfrac:conn_end those of one connection.
 */
#ifndef MSSFRAC_COUNTERS_H
#define MSSFRAC_COUNTERS_H

#include <linux/types.h>

#include "arm.h"

struct net;

/* name, and what it counts */
#define MSSFRAC_CONN_COUNTERS(X)					\
	/* Sender; bytes are of round trips limited by the window */	\
	X(tx_segments)		/* data segments sent */		\
	X(tx_rounds)		/* round trips limited by the peer's window */ \
	X(tx_bytes_available)	/* bytes advertised for those rounds */ \
	X(tx_bytes_used)	/* bytes acknowledged in them */	\
	X(tx_bytes_lost)	/* bytes advertised and not used */	\
	X(tx_sized)		/* segment sizes chosen */		\
	X(tx_reverted)		/* given up: the window shrank */	\
	X(tx_unstalled)		/* sizes chosen for a window below one MSS */ \
	/* Receiver, per window selected */				\
	X(rx_segments)		/* data segments received */		\
	X(rx_windows)		/* non-zero windows selected */		\
	X(rx_raised)		/* windows above the kernel's choice */	\
	X(rx_bytes_available)	/* bytes that fit into the buffer */	\
	X(rx_bytes_advertised)	/* bytes advertised */			\
	X(rx_bytes_lost)	/* bytes not advertised, for alignment */

#define MSSFRAC_COUNTERS(X)						\
	X(connections)		/* connections seen */			\
	MSSFRAC_CONN_COUNTERS(X)

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
