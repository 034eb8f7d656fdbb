/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the module share: the per-namespace settings, the counter
 * names, the per-connection state and the prototypes, grouped by the file that
 * defines them.
 */
#ifndef MSSFRAC_H
#define MSSFRAC_H

#include <linux/rhashtable-types.h>
#include <linux/types.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

/* sysctl.c: settings of one namespace; written by sysctl, read locklessly. */
struct mssfrac_settings {
	u8 rx_frac;	/* 0 off, 1..64: offer windows in steps of rcv_mss/N */
	u8 tx_frac;	/* 0 off, 1..64: segments in steps of MSS/N */
	u8 ab_percent;	/* share of connections in the treated arm */
	u32 seg_max;	/* act while a window holds at most this many segments */
	u32 ab_seed;	/* key of the hash that picks the arm */
};

int mssfrac_sysctl_register(struct net *net);
void mssfrac_sysctl_unregister(struct net *net);

/* stats.c: one counter per arm, summed over CPUs when read. */
enum mssfrac_arm {
	MSSFRAC_STOCK,
	MSSFRAC_TREATED,
	MSSFRAC_ARMS
};

/* name in /proc/net/mssfrac, what one unit of it is */
#define MSSFRAC_COUNTERS(X)						\
	/* Both sides */						\
	X(connections)		/* connections seen */			\
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

enum mssfrac_counter {
#define X(name) MSSFRAC_##name,
	MSSFRAC_COUNTERS(X)
#undef X
	MSSFRAC_NR_COUNTERS
};

struct mssfrac_stats {
	u64 v[MSSFRAC_ARMS][MSSFRAC_NR_COUNTERS];
};

int mssfrac_stats_register(struct net *net);
void mssfrac_stats_unregister(struct net *net);

/* main.c: what the module keeps per namespace. */
struct mssfrac_net {
	struct mssfrac_settings set;
	struct mssfrac_stats __percpu *stats;
	struct ctl_table_header *sysctl_header;
	struct ctl_table *sysctl_table;
};

extern unsigned int mssfrac_net_id;

static inline struct mssfrac_net *mssfrac_net(const struct net *net)
{
	return net_generic(net, mssfrac_net_id);
}

#define mssfrac_add(mn, arm, counter, n)				\
	this_cpu_add((mn)->stats->v[arm][MSSFRAC_##counter], n)

/* conn.c: per-connection state; every field under the socket lock. */
enum mssfrac_tx_phase {
	MSSFRAC_TX_WATCH,	/* stock segments, measuring what they deliver */
	MSSFRAC_TX_SETTLE,	/* fractional; data cut before still queued */
	MSSFRAC_TX_TRIAL,	/* fractional, measuring */
	MSSFRAC_TX_KEEP,	/* fractional, proved; still watching */
};

/* Why the sender's state moved (tracepoint mssfrac:align). */
enum mssfrac_tx_why {
	MSSFRAC_WHY_ROUND,	/* it did not; a round trip ended */
	MSSFRAC_WHY_NO_LIMIT,	/* nor did the window limit that one */
	MSSFRAC_WHY_TRIAL,	/* part of a steady window goes unused */
	MSSFRAC_WHY_KEPT,	/* the trial delivered more */
	MSSFRAC_WHY_NO_GAIN,	/* the trial did not */
	MSSFRAC_WHY_LOST_GAIN,	/* kept, but delivers less than stock did */
	MSSFRAC_WHY_MOVED,	/* the window holds another count of MSS */
	MSSFRAC_WHY_RECHECK,	/* what stock delivers is old news */
	MSSFRAC_WHY_STALL,	/* sized for a window below one MSS */
	MSSFRAC_WHY_MSS,	/* path MTU or options changed */
};

struct mssfrac_tx {
	u32 seg;		/* bytes; segment size in force, 0: stock */
	u32 small_seg;		/* bytes; size for windows below one MSS */
	u32 mss_cache;		/* the kernel's, when seg was chosen */
	u32 round_end;		/* sequence that ends the round trip */
	u32 round_wnd;		/* bytes; largest window offered in it */
	u32 last_una;		/* snd_una at the last round's end */
	u32 epoch_rounds;	/* window-limited rounds in this epoch */
	u32 epoch_wnd;		/* bytes; smallest round_wnd in the epoch */
	u64 epoch_start;	/* us, tcp_mstamp */
	u64 epoch_bytes;	/* acknowledged since */
	u64 base_rate;		/* bytes/s delivered with stock segments */
	u64 stall_start;	/* us, tcp_clock_us(): tcp_mstamp may be old */
	u32 steady_wnd;		/* bytes; epoch_wnd of the epoch before */
	u32 settle_seq;		/* data before it was cut for another size */
	u32 wait;		/* rounds until the next trial */
	u32 recheck;		/* rounds until stock is measured again */
	u16 backoff;		/* next wait after a failed trial, in rounds */
	u16 recheck_every;	/* next recheck, in rounds */
	u8 phase;		/* enum mssfrac_tx_phase */
	u8 round_open:1,	/* round_end is set */
	   settling:1,		/* settle_seq is not acknowledged yet */
	   stalled:1,		/* waiting on a window below one MSS */
	   eager:1;		/* has stalled before: do not wait again */
};

struct mssfrac_rx {
	u32 ssthresh;		/* rcv_ssthresh when it last moved, bytes */
	u32 still_since;	/* data_segs_in then */
	u8 steady;		/* it has stood still: offers may be raised */
};

struct mssfrac_conn {
	struct rhash_head node;
	const struct sock *sk;	/* key; identity only, never dereferenced */
	struct rcu_head rcu;
	u8 arm;			/* enum mssfrac_arm; fixed at creation */
	u32 segs_in;		/* data_segs_in already counted */
	u32 segs_out;		/* data_segs_out already counted */
	struct mssfrac_rx rx;
	struct mssfrac_tx tx;
};

int mssfrac_conn_init(void);
void mssfrac_conn_exit(void);
struct mssfrac_conn *mssfrac_conn_get(struct sock *sk);
void mssfrac_conn_count(const struct sock *sk, struct mssfrac_conn *conn);

/* rx.c, tx.c: the two policies.  Socket lock held, any context. */
u32 mssfrac_rx_window(struct sock *sk, u32 stock);
u32 mssfrac_tx_mss(struct sock *sk, u32 stock);
u32 mssfrac_tx_segment(struct sock *sk, u32 stock);

/* hook.c: diverts the kernel's two functions to the policies. */
int mssfrac_hook_install(void);
void mssfrac_hook_remove(void);

/* cong.c: congestion control "mssfrac". */
int mssfrac_cong_register(void);
void mssfrac_cong_unregister(void);

#endif /* MSSFRAC_H */
