/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * State of one TCP connection, and the table that finds it by the address of
 * its socket.  conn.c describes its locking and lifetime.
 */
#ifndef MSSFRAC_CONN_H
#define MSSFRAC_CONN_H

#include <linux/hash.h>
#include <linux/rculist.h>
#include <linux/types.h>
#include <linux/u64_stats_sync.h>
#include <net/tcp.h>

#include "arm.h"
#include "counters.h"
#include "netns.h"
#include "rounds.h"
#include "rx.h"
#include "tx.h"

#define MSSFRAC_COUNT_FIELD(name)	u64_stats_t name;
#define MSSFRAC_NO_FIELD(name)

/* State of the policies; allocated once one may act on the connection. */
struct mssfrac_policy {
	struct mssfrac_tx tx;
	struct mssfrac_rx rx;
	u32 first_in;		/* data_segs_in at creation */
	u32 first_out;		/* data_segs_out at creation */
	struct {
		MSSFRAC_CONN_COUNTERS(MSSFRAC_NO_FIELD, MSSFRAC_COUNT_FIELD,
				      MSSFRAC_NO_FIELD)
	} count;
};

/* State of a connection; every one has it, also with all policies off. */
struct mssfrac_conn {
	struct hlist_node node;	/* in its bucket; unhashed once it has ended */
	struct hlist_node live;	/* in the shard of its namespace */
	const struct sock *sk;	/* key */
	struct mssfrac_net *mn;
	union {
		struct {
			MSSFRAC_CONN_COUNTERS(MSSFRAC_COUNT_FIELD,
					      MSSFRAC_NO_FIELD, MSSFRAC_NO_FIELD)
		} count;
		struct rcu_head rcu;	/* once it has ended or was extended */
	};
	struct mssfrac_rounds rounds;
	u8 arm;			/* enum mssfrac_arm; fixed at creation */
	u8 pinned:1,		/* the socket's mark picked the arm */
	   extended:1,		/* policy[0] is there; fixed at creation */
	   rounds_seen:1,	/* rounds.last_una is valid */
	   round_open:1,	/* rounds.end is set */
	   limited:1;		/* the window limited the end of the last round */
	struct mssfrac_policy policy[];
};

/* Add to a counter of a connection or of its policies.  Under the socket lock. */
#define mssfrac_count(holder, counter, n)				\
	u64_stats_add(&(holder)->count.counter, n)

struct mssfrac_conns {
	struct hlist_head *buckets;
	unsigned int bits;
};

extern struct mssfrac_conns mssfrac_conns;

void mssfrac_conn_net_init(struct mssfrac_net *mn);
int mssfrac_conn_init(void);
void mssfrac_conn_exit(void);
struct mssfrac_conn *mssfrac_conn_new(const struct sock *sk);
struct mssfrac_conn *mssfrac_conn_extend(struct mssfrac_conn *conn);

static inline u32 mssfrac_conn_hash(const struct sock *sk)
{
	return hash_ptr(sk, mssfrac_conns.bits);
}

/*
 * Called several times per segment, hence no rhashtable, and RCU by disabling
 * preemption, which costs two instructions instead of two calls.  The caller
 * holds the socket lock or an RCU read lock, so the state outlives the section.
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
 * Sockets whose window or segment size belongs to others: upper-layer protocols
 * such as kTLS, sockmaps, repair mode and path MTU probing.  Each can begin at
 * any time.
 */
static inline bool mssfrac_conn_left_alone(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ulp_ops || tcp_sk(sk)->repair ||
	       inet_csk(sk)->icsk_mtup.enabled ||
	       (unsigned long)READ_ONCE(sk->sk_user_data) &
	       SK_USER_DATA_PSOCK;
}

/*
 * The state of @sk.  NULL means stock behaviour: the socket is left alone, or
 * there is no memory.
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
 * Make room for the state of the policies: a larger copy replaces *@conn, if it
 * has none.  False without memory: stock behaviour.
 */
static inline bool mssfrac_conn_ensure_policy(struct mssfrac_conn **conn)
{
	struct mssfrac_conn *extended;

	if (likely((*conn)->extended))
		return true;
	extended = mssfrac_conn_extend(*conn);
	if (!extended)
		return false;
	*conn = extended;
	return true;
}

/*
 * The amount to add to @counter.  @now is the kernel's 32-bit count, @first its
 * value at creation.  Correct across a wrap, and for concurrent readers.
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
	u32 first_in = conn->extended ? conn->policy->first_in : 0;
	u32 first_out = conn->extended ? conn->policy->first_out : 0;
	u64 in = u64_stats_read(&conn->count.rx_segments);
	u64 out = u64_stats_read(&conn->count.tx_segments);

	mssfrac_count(conn, rx_segments,
		      mssfrac_conn_uncounted(in, READ_ONCE(tp->data_segs_in),
					     first_in));
	mssfrac_count(conn, tx_segments,
		      mssfrac_conn_uncounted(out, READ_ONCE(tp->data_segs_out),
					     first_out));
}

/*
 * Must they be counted before the kernel's count of those received wraps?  Until
 * then a reader adds the rest.  Called for each window, hence without the first
 * count: that of a connection older than the module only makes this earlier.
 */
static inline bool mssfrac_conn_must_count(const struct sock *sk,
					   const struct mssfrac_conn *conn)
{
	u64 in = u64_stats_read(&conn->count.rx_segments);

	return (s32)mssfrac_conn_uncounted(in, tcp_sk(sk)->data_segs_in, 0) < 0;
}

#endif /* MSSFRAC_CONN_H */
