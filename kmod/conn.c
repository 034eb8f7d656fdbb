// SPDX-License-Identifier: GPL-2.0-only
/*
 * One small state per TCP connection, found by the address of its socket.
 * Made when the connection is established, or for an older one at the first
 * call of a policy.  Ended when its socket enters TCP_CLOSE: the tracepoint
 * inet_sock_set_state comes before tcp_disconnect() resets the socket's counts.
 * At the latest when the kernel destroys the socket (tracepoint
 * tcp_destroy_sock).  Holds no reference to the socket.
 *
 * Locking: a state is made and used under its socket's lock.  Shards are
 * picked by the bucket; the lock of one guards its buckets, and in every
 * namespace its list of live connections and its sums of those that ended.
 * A reader that finds a connection on such a list under the lock may read its
 * socket: it has not ended.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>

#include "conn.h"
#include "netns.h"
#include "trace.h"

struct mssfrac_conns mssfrac_conns __read_mostly;
static bool unloading;

static struct {
	spinlock_t lock;	/* of the buckets and live lists of one shard */
} ____cacheline_aligned_in_smp shards[MSSFRAC_SHARDS];

static unsigned int shard_of(const struct sock *sk)
{
	return mssfrac_conn_hash(sk) % MSSFRAC_SHARDS;
}

/* Count the data segments after the first so many in, and so many out. */
static struct mssfrac_conn *conn_make(const struct sock *sk, u32 first_in,
				      u32 first_out)
{
	unsigned int shard = shard_of(sk);
	struct mssfrac_conn *conn;
	bool pinned;

	/* MPTCP owns the windows of its subflows. */
	if (sk_is_mptcp(sk))
		return NULL;

	conn = kzalloc(sizeof(*conn), GFP_ATOMIC | __GFP_NOWARN);
	if (!conn)
		return NULL;
	conn->sk = sk;
	conn->mn = mssfrac_net(sock_net(sk));
	conn->arm = mssfrac_arm_of(sk, &conn->mn->set, &pinned);
	conn->pinned = pinned;
	conn->first_in = first_in;
	conn->first_out = first_out;
	mssfrac_count(conn, connections, 1);

	spin_lock_bh(&shards[shard].lock);
	hlist_add_head_rcu(&conn->node,
			   &mssfrac_conns.buckets[mssfrac_conn_hash(sk)]);
	hlist_add_head(&conn->live, &conn->mn->shards[shard].live);
	spin_unlock_bh(&shards[shard].lock);
	return conn;
}

/* A connected socket has no state: it is older than the module. */
struct mssfrac_conn *mssfrac_conn_new(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if ((1 << sk->sk_state) & (TCPF_CLOSE | TCPF_LISTEN | TCPF_SYN_SENT |
				   TCPF_SYN_RECV | TCPF_NEW_SYN_RECV))
		return NULL;
	return conn_make(sk, tp->data_segs_in, tp->data_segs_out);
}

/* Take the last count, and move the connection's counts to its namespace. */
static void conn_end(struct mssfrac_conn *conn, unsigned int shard)
{
	u64 *ended = conn->mn->shards[shard].ended.v[conn->arm];
	int i;

	lockdep_assert_held(&shards[shard].lock);
	/* The loser of probe v unload. */
	if (hlist_unhashed(&conn->live))
		return;
	mssfrac_conn_count(conn->sk, conn);
	trace_conn_end(conn->sk, conn);
	for (i = 0; i < MSSFRAC_NR_COUNTERS; i++)
		ended[i] += u64_stats_read(&conn->count[i]);
	hlist_del_init(&conn->live);
	hlist_del_rcu(&conn->node);
	kfree_rcu(conn, rcu);
}

/* Probes run without preemption, so what they find stays. */
static void socket_ends(const struct sock *sk)
{
	struct mssfrac_conn *conn = mssfrac_conn_find(sk);
	unsigned int shard = shard_of(sk);

	if (!conn)
		return;
	spin_lock_bh(&shards[shard].lock);
	conn_end(conn, shard);
	spin_unlock_bh(&shards[shard].lock);
}

static void probe_inet_sock_set_state(void *data, const struct sock *sk,
				      const int oldstate, const int newstate)
{
	if (newstate == TCP_CLOSE)
		socket_ends(sk);
	/* Its first segment may be counted already (it came with the ACK). */
	else if (newstate == TCP_ESTABLISHED &&
		 sk->sk_protocol == IPPROTO_TCP && !READ_ONCE(unloading) &&
		 (1 << oldstate) & (TCPF_SYN_SENT | TCPF_SYN_RECV) &&
		 !mssfrac_conn_left_alone(sk))
		conn_make(sk, 0, 0);
}

static void probe_tcp_destroy_sock(void *data, struct sock *sk)
{
	socket_ends(sk);
}

/* Add what one live connection has counted, and its socket since then. */
static void add_live(const struct mssfrac_conn *conn, u64 *v)
{
	const struct tcp_sock *tp = tcp_sk(conn->sk);
	u64 in, out;
	int i;

	for (i = 0; i < MSSFRAC_NR_COUNTERS; i++)
		if (i != MSSFRAC_rx_segments && i != MSSFRAC_tx_segments)
			v[i] += u64_stats_read(&conn->count[i]);

	in = u64_stats_read(&conn->count[MSSFRAC_rx_segments]);
	out = u64_stats_read(&conn->count[MSSFRAC_tx_segments]);
	/* Never a socket's count older than what was counted of it. */
	smp_rmb();
	v[MSSFRAC_rx_segments] += in +
		mssfrac_conn_uncounted(in, READ_ONCE(tp->data_segs_in),
				       conn->first_in);
	v[MSSFRAC_tx_segments] += out +
		mssfrac_conn_uncounted(out, READ_ONCE(tp->data_segs_out),
				       conn->first_out);
}

/* All connections of a namespace, those that ended and those that live. */
void mssfrac_conn_sum(struct mssfrac_net *mn, struct mssfrac_totals *totals)
{
	const struct mssfrac_conn *conn;
	int shard, arm, i;

	memset(totals, 0, sizeof(*totals));
	for (shard = 0; shard < MSSFRAC_SHARDS; shard++) {
		const struct mssfrac_shard *s = &mn->shards[shard];

		spin_lock_bh(&shards[shard].lock);
		for (arm = 0; arm < MSSFRAC_ARMS; arm++)
			for (i = 0; i < MSSFRAC_NR_COUNTERS; i++)
				totals->v[arm][i] += s->ended.v[arm][i];
		hlist_for_each_entry(conn, &s->live, live)
			add_live(conn, totals->v[conn->arm]);
		spin_unlock_bh(&shards[shard].lock);
		cond_resched();
	}
}

/* Exported tracepoints are found by name: theirs are not exported symbols. */
static struct probe {
	const char *name;
	void *function;
	struct tracepoint *tp;
} probes[] = {
	{ .name = "inet_sock_set_state", .function = probe_inet_sock_set_state },
	{ .name = "tcp_destroy_sock", .function = probe_tcp_destroy_sock },
};

static void match_tracepoint(struct tracepoint *tp, void *priv)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (!strcmp(tp->name, probes[i].name))
			probes[i].tp = tp;
}

static void unregister_probes(int registered)
{
	while (registered--)
		tracepoint_probe_unregister(probes[registered].tp,
					    probes[registered].function, NULL);
	tracepoint_synchronize_unregister();
}

static int register_probes(void)
{
	int i, err;

	for_each_kernel_tracepoint(match_tracepoint, NULL);
	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		err = -ENOENT;
		if (!probes[i].tp)
			pr_err("this kernel has no tracepoint %s\n",
			       probes[i].name);
		else
			err = tracepoint_probe_register(probes[i].tp,
							probes[i].function,
							NULL);
		if (err) {
			unregister_probes(i);
			return err;
		}
	}
	return 0;
}

/* A bucket for every 128 KB of memory, as the kernel's own table of TCP. */
static unsigned int table_bits(void)
{
	return clamp(ilog2(totalram_pages()) + PAGE_SHIFT - 17, 10, 20);
}

int mssfrac_conn_init(void)
{
	int i, err;

	for (i = 0; i < MSSFRAC_SHARDS; i++)
		spin_lock_init(&shards[i].lock);
	mssfrac_conns.bits = table_bits();
	mssfrac_conns.buckets = kvcalloc(1 << mssfrac_conns.bits,
					 sizeof(*mssfrac_conns.buckets),
					 GFP_KERNEL);
	if (!mssfrac_conns.buckets)
		return -ENOMEM;
	err = register_probes();
	if (err)
		kvfree(mssfrac_conns.buckets);
	return err;
}

/*
 * The hooks are gone: nobody uses a state any more, and soon nobody makes one.
 * The probes stay until every connection has ended, so that none goes unseen.
 */
void mssfrac_conn_exit(void)
{
	struct mssfrac_conn *conn;
	struct hlist_node *next;
	unsigned int i;

	WRITE_ONCE(unloading, true);
	synchronize_rcu();	/* for probes that did not see it */
	for (i = 0; i < 1 << mssfrac_conns.bits; i++) {
		unsigned int shard = i % MSSFRAC_SHARDS;

		spin_lock_bh(&shards[shard].lock);
		hlist_for_each_entry_safe(conn, next, &mssfrac_conns.buckets[i],
					  node)
			conn_end(conn, shard);
		spin_unlock_bh(&shards[shard].lock);
		cond_resched();
	}
	unregister_probes(ARRAY_SIZE(probes));
	kvfree(mssfrac_conns.buckets);
}
