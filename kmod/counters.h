/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The table of counters.  Each connection has all of them; /proc/net/mssfrac
 * shows the sums of each arm, mssfrac:conn_end those of one connection.
 */
#ifndef MSSFRAC_COUNTERS_H
#define MSSFRAC_COUNTERS_H

#include <linux/types.h>

#include "arm.h"

struct net;

/* name, what one unit of it is */
#define MSSFRAC_CONN_COUNTERS(X)					\
	/* Sender, per window-limited round trip */			\
	X(tx_segments)		/* data segments sent */		\
	X(tx_rounds)		/* round trips the peer's window ended */ \
	X(tx_bytes_available)	/* bytes of window those rounds offered */ \
	X(tx_bytes_used)	/* bytes acknowledged in them */	\
	X(tx_bytes_lost)	/* rest below one segment, not sent */	\
	X(tx_trials)		/* segment size changed on trial */	\
	X(tx_kept)		/* trials that delivered more */	\
	X(tx_reverted)		/* sizes given up: no gain, or gone */		\
	X(tx_unstalled)		/* sizes chosen for a window below one MSS */ \
	/* Receiver, per window selected */				\
	X(rx_segments)		/* data segments received */		\
	X(rx_windows)		/* non-zero windows selected */		\
	X(rx_raised)		/* of these, above the kernel's choice */ \
	X(rx_bytes_available)	/* bytes the buffer had room for */	\
	X(rx_bytes_advertised)	/* bytes offered */			\
	X(rx_bytes_lost)	/* bytes not offered for alignment */

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
