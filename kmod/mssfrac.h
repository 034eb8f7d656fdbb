/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the module share: the per-namespace settings, the counter
 * names, the per-connection state and the prototypes, grouped by the file that
 * defines them.
 */
#ifndef MSSFRAC_H
#define MSSFRAC_H

#include <linux/hash.h>
#include <linux/rculist.h>
#include <linux/types.h>
#include <linux/win_minmax.h>
#include <linux/u64_stats_sync.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

/* sysctl.c: settings of one namespace; written by sysctl, read locklessly. */
struct mssfrac_settings {
	u8 rx_frac;	/* 0 off, 1..64: offer windows in steps of rcv_mss/N */
	u8 tx_frac;	/* 0 off, 1..64: segments in steps of MSS/N */
	u8 rx_mss_est;	/* sender's MSS: 0 the kernel's, 1 conservative */
	u8 tx_steady;	/* 0, 1: lower the MSS only in a locked window */
	u8 ab_percent;	/* share of connections in the treated arm */
	u32 seg_max;	/* act while a window holds at most this many segments */
	u32 ab_seed;	/* key of the hash that picks the arm */
	u32 ab_mark;	/* socket mark that pins to stock, + 1 to treated; 0 off */
};

int mssfrac_sysctl_register(struct net *net);
void mssfrac_sysctl_unregister(struct net *net);

/* arm.c: which arm a connection belongs to. */
enum mssfrac_arm {
	MSSFRAC_STOCK,
	MSSFRAC_TREATED,
	MSSFRAC_ARMS
};

enum mssfrac_arm mssfrac_arm_of(const struct sock *sk,
				const struct mssfrac_settings *set,
				bool *pinned);
void mssfrac_arm_addresses(const struct sock *sk, struct in6_addr *local,
			   struct in6_addr *peer);

/*
 * stats.c: counters of each connection, shown as sums of each arm.
 * name in /proc/net/mssfrac and mssfrac:conn_end, what one unit of it is
 */
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

int mssfrac_stats_register(struct net *net);
void mssfrac_stats_unregister(struct net *net);

/* Connections of one namespace fall into as many shards, a lock for each. */
#define MSSFRAC_SHARDS 16

struct mssfrac_shard {
	struct hlist_head live;		/* struct mssfrac_conn */
	struct mssfrac_totals ended;	/* of those that have ended */
};

/* main.c: what the module keeps per namespace. */
struct mssfrac_net {
	struct mssfrac_settings set;
	struct mssfrac_shard shards[MSSFRAC_SHARDS];
	struct ctl_table_header *sysctl_header;
	struct ctl_table *sysctl_table;
};

extern unsigned int mssfrac_net_id;

static inline struct mssfrac_net *mssfrac_net(const struct net *net)
{
	return net_generic(net, mssfrac_net_id);
}

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
	MSSFRAC_WHY_STEP,	/* tx_steady: one step of MSS/N further down */
	MSSFRAC_WHY_KEPT,	/* the trial delivered more */
	MSSFRAC_WHY_NO_GAIN,	/* the trial did not */
	MSSFRAC_WHY_LOST_GAIN,	/* kept, but delivers less than stock did */
	MSSFRAC_WHY_MOVED,	/* the window holds another count of MSS */
	MSSFRAC_WHY_RECHECK,	/* what stock delivers is old news */
	MSSFRAC_WHY_STALL,	/* sized for a window below one MSS */
	MSSFRAC_WHY_MSS,	/* path MTU or options changed */
	MSSFRAC_WHY_NUDGE,	/* a segment a round waits for its ACK */
};

struct mssfrac_tx {
	u32 seg;		/* bytes; segment size in force, 0: stock */
	u32 small_seg;		/* bytes; size for windows below one MSS */
	u32 mss_cache;		/* the kernel's, when seg was chosen */
	u32 round_end;		/* sequence that ends the round trip */
	u32 round_wnd;		/* bytes; largest window offered in it */
	u32 last_una;		/* snd_una at the last round's end */
	u64 round_start;	/* us, tcp_mstamp */
	u32 epoch_rounds;	/* window-limited rounds in this epoch */
	u32 epoch_prompt;	/* of these, such as took min_rtt */
	u32 epoch_late;		/* and such as took clearly longer */
	u32 epoch_wnd;		/* bytes; smallest round_wnd in the epoch */
	u32 most_wnd;		/* bytes; largest round_wnd of all epochs */
	u64 epoch_start;	/* us, tcp_mstamp */
	u64 epoch_bytes;	/* acknowledged since */
	u64 last_rate;		/* bytes/s delivered in the epoch before */
	u64 base_rate;		/* bytes/s delivered with stock segments */
	u32 base_wnd;		/* bytes; the peer's window meanwhile */
	u64 best_rate;		/* bytes/s of best_seg, the best size tried */
	u32 best_seg;
	u32 own_segs;		/* MSS fit where our sizes are offered more than stock */
	u64 own_rate;		/* bytes/s of our size, just left to measure stock */
	u32 goal;		/* bytes; where a descent of tx_steady ends */
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
	   eager:1,		/* has stalled before: do not wait again */
	   nudge:1,		/* halve what is sent next */
	   nudged:1,		/* did so, and nothing was gained since */
	   pardoned:1;		/* tried before its time, and nothing was gained since */
};

struct mssfrac_rx {
	struct minmax seg;	/* largest segment of late, bytes (est.c) */
	u32 ssthresh;		/* rcv_ssthresh when it last moved, bytes */
	u32 still_since;	/* data_segs_in then */
	u8 steady;		/* it has stood still: offers may be raised */
};

struct mssfrac_conn {
	struct hlist_node node;	/* in mssfrac_conns */
	const struct sock *sk;	/* key; valid while on the list of its shard */
	struct mssfrac_net *mn;
	u8 arm;			/* enum mssfrac_arm; fixed at creation */
	u8 pinned:1;		/* the socket's mark picked the arm */
	u32 first_in;		/* data_segs_in when first seen */
	u32 first_out;		/* data_segs_out then */
	u64_stats_t count[MSSFRAC_NR_COUNTERS];
	struct mssfrac_rx rx;
	struct mssfrac_tx tx;
	struct hlist_node live;	/* in its shard; unhashed once it has ended */
	struct rcu_head rcu;
};

/* Add to a counter of the connection.  Under the socket lock. */
#define mssfrac_count(conn, counter, n)					\
	u64_stats_add(&(conn)->count[MSSFRAC_##counter], n)

struct mssfrac_conns {
	struct hlist_head *buckets;
	unsigned int bits;
};

extern struct mssfrac_conns mssfrac_conns;

int mssfrac_conn_init(void);
void mssfrac_conn_exit(void);
struct mssfrac_conn *mssfrac_conn_new(const struct sock *sk);
void mssfrac_conn_sum(struct mssfrac_net *mn, struct mssfrac_totals *totals);

static inline u32 mssfrac_conn_hash(const struct sock *sk)
{
	return hash_ptr(sk, mssfrac_conns.bits);
}

/*
 * Several times a segment: so no rhashtable, and RCU by preemption, which is
 * two instructions instead of two calls.  The caller holds the socket, and the
 * state outlives the section.
 */
static inline struct mssfrac_conn *mssfrac_conn_find(const struct sock *sk)
{
	struct mssfrac_conn *conn;

	rcu_read_lock_sched();
	hlist_for_each_entry_rcu(conn,
				 &mssfrac_conns.buckets[mssfrac_conn_hash(sk)],
				 node, rcu_read_lock_sched_held())
		if (conn->sk == sk)
			break;
	rcu_read_unlock_sched();
	return conn;
}

/*
 * Sockets whose window or segment size others own: upper-layer protocols such
 * as kTLS, repair mode and path MTU probing can begin at any time.
 */
static inline bool mssfrac_conn_left_alone(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ulp_ops || tcp_sk(sk)->repair ||
	       inet_csk(sk)->icsk_mtup.enabled;
}

/*
 * The state of @sk; NULL if it is not ours to treat or memory is short, which
 * means stock behaviour.
 */
static inline struct mssfrac_conn *mssfrac_conn_get(struct sock *sk)
{
	struct mssfrac_conn *conn;

	if (mssfrac_conn_left_alone(sk))
		return NULL;
	conn = mssfrac_conn_find(sk);
	return likely(conn) ? conn : mssfrac_conn_new(sk);
}

/*
 * What @counter has yet to grow by: @now is the kernel's 32-bit count, @first
 * what it was when first seen.  Right across a wrap, and for readers too.
 */
static inline u32 mssfrac_conn_uncounted(u64 counter, u32 now, u32 first)
{
	return now - first - (u32)counter;
}

/* Count the data segments since the last call. */
static inline void mssfrac_conn_count(const struct sock *sk,
				      struct mssfrac_conn *conn)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 in = u64_stats_read(&conn->count[MSSFRAC_rx_segments]);
	u64 out = u64_stats_read(&conn->count[MSSFRAC_tx_segments]);

	mssfrac_count(conn, rx_segments,
		      mssfrac_conn_uncounted(in, READ_ONCE(tp->data_segs_in),
					     conn->first_in));
	mssfrac_count(conn, tx_segments,
		      mssfrac_conn_uncounted(out, READ_ONCE(tp->data_segs_out),
					     conn->first_out));
}

/* rx.c, tx.c: the two policies.  Socket lock held, any context. */
u32 mssfrac_rx_window(struct sock *sk, u32 stock);
u32 mssfrac_tx_mss(struct sock *sk, u32 stock);
u32 mssfrac_tx_segment(struct sock *sk, u32 stock);

/* trial.c: which size, after each round trip.  Socket lock held. */
u64 mssfrac_trial_round(const struct tcp_sock *tp, struct mssfrac_tx *tx,
			u32 acked);
void mssfrac_trial_unlimited(const struct tcp_sock *tp, struct mssfrac_tx *tx);
u8 mssfrac_trial_judge(struct sock *sk, struct mssfrac_conn *conn, u64 rate);
void mssfrac_trial_stock(const struct tcp_sock *tp, struct mssfrac_tx *tx);
void mssfrac_trial_forget(const struct tcp_sock *tp, struct mssfrac_tx *tx);

/* est.c: the receiver's own estimate of the sender's segment size. */
int mssfrac_est_init(void);
void mssfrac_est_exit(void);
int mssfrac_est_want(void);
u32 mssfrac_est_mss(const struct sock *sk, const struct mssfrac_conn *conn);

/* hook.c: diverts the kernel's two functions to the policies. */
int mssfrac_hook_install(void);
void mssfrac_hook_remove(void);

/* cong.c: congestion control "mssfrac". */
int mssfrac_cong_register(void);
void mssfrac_cong_unregister(void);

#endif /* MSSFRAC_H */
