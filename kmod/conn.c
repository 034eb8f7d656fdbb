// SPDX-License-Identifier: GPL-2.0-only
/*
 * One state per TCP connection, found by the address of its socket.  Made when
 * the connection is established, or at the first call of a policy if the
 * connection is older than the module.  Ended when the socket enters TCP_CLOSE:
 * the tracepoint inet_sock_set_state precedes the reset of the socket's counts
 * in tcp_disconnect().  Ended at the latest when the kernel destroys the socket
 * (tracepoint tcp_destroy_sock).  A state holds no reference to its socket.
 *
 * Locking:
 * - The socket lock protects the state while a policy uses it.
 * - The lock of a namespace's shard protects its list of live connections and
 *   the sums of those that ended.  A state ends under it, so as long as its
 *   socket exists, the sweep of mssfrac_conn_exit() and a probe cannot both end
 *   it.  A reader of that namespace may hold it for long (counters.c).
 * - Within it, a bucket lock protects the buckets of one shard.  All namespaces
 *   share it, so it is held for a moment only, and no lock is taken under it.
 * - Probes are preemptible on some kernels (SRCU since 7.2).  They hold the RCU
 *   read lock from the look-up to the last use of a state.
 * - Readers of the sums take no lock (counters.c).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/build_bug.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <trace/events/sock.h>
#include <trace/events/tcp.h>

#include "conn.h"
#include "netns.h"
#include "trace.h"

/* Sizes of slabs: one byte more costs 64 and 256. */
static_assert(sizeof(struct mssfrac_conn) <= 128);
static_assert(sizeof(struct mssfrac_conn) + sizeof(struct mssfrac_policy) <= 256);

struct mssfrac_conns mssfrac_conns __read_mostly;
static bool unloading;

static struct {
	spinlock_t lock;	/* of the buckets of one shard */
} ____cacheline_aligned_in_smp bucket_locks[MSSFRAC_SHARDS];

static unsigned int shard_of(const struct sock *sk)
{
	return mssfrac_conn_hash(sk) % MSSFRAC_SHARDS;
}

/* The memory cgroup of the socket; an accepted one gets it in accept(). */
static struct mem_cgroup *memcg_of(const struct sock *sk)
{
#ifdef CONFIG_MEMCG
	return sk->sk_memcg;
#else
	return NULL;
#endif
}

/*
 * Zeroed memory for a state, charged to the memory cgroup of the socket.  No
 * reserves: without memory the connection is not observed, or not treated.
 */
static struct mssfrac_conn *conn_alloc(const struct sock *sk, bool extended)
{
	struct mem_cgroup *outer = set_active_memcg(memcg_of(sk));
	struct mssfrac_conn *conn;

	conn = kzalloc(struct_size(conn, policy, extended),
		       GFP_NOWAIT | __GFP_NOWARN | __GFP_ACCOUNT);
	set_active_memcg(outer);
	if (conn)
		conn->extended = extended;
	return conn;
}

/* Do the current settings let a policy act on a connection of @arm? */
static bool acted_on(const struct mssfrac_settings *set, enum mssfrac_arm arm)
{
	return READ_ONCE(set->rx_mss_est) ||
	       (arm == MSSFRAC_TREATED &&
		(READ_ONCE(set->tx_frac) || READ_ONCE(set->rx_frac)));
}

/* @older than the module: store the socket's counts to start from. */
static struct mssfrac_conn *conn_make(const struct sock *sk, bool older)
{
	struct mssfrac_net *mn = mssfrac_net(sock_net(sk));
	unsigned int shard = shard_of(sk);
	struct mssfrac_shard *s;
	struct mssfrac_conn *conn;
	enum mssfrac_arm arm;
	bool pinned;

	/* MPTCP owns the windows of its subflows. */
	if (sk_is_mptcp(sk))
		return NULL;
	/* A socket of the kernel's own, which may outlive its namespace. */
	if (!sk->sk_net_refcnt && !net_eq(sock_net(sk), &init_net))
		return NULL;

	arm = mssfrac_arm_of(sk, &mn->set, &pinned);
	conn = conn_alloc(sk, older || acted_on(&mn->set, arm));
	if (!conn)
		return NULL;
	conn->sk = sk;
	conn->mn = mn;
	conn->arm = arm;
	conn->pinned = pinned;
	if (older) {
		conn->policy->first_in = tcp_sk(sk)->data_segs_in;
		conn->policy->first_out = tcp_sk(sk)->data_segs_out;
	}

	s = &mn->shards[shard];
	spin_lock_bh(&s->lock);
	spin_lock(&bucket_locks[shard].lock);
	hlist_add_head_rcu(&conn->node,
			   &mssfrac_conns.buckets[mssfrac_conn_hash(sk)]);
	spin_unlock(&bucket_locks[shard].lock);
	hlist_add_head_rcu(&conn->live, &s->live);
	spin_unlock_bh(&s->lock);
	return conn;
}

/*
 * Replace @conn by a copy with room for the state of the policies.  The caller
 * holds the socket lock, so only readers of the sums still use @conn.
 */
struct mssfrac_conn *mssfrac_conn_extend(struct mssfrac_conn *conn)
{
	struct mssfrac_conn *extended = conn_alloc(conn->sk, true);
	unsigned int shard = shard_of(conn->sk);
	struct mssfrac_shard *s = &conn->mn->shards[shard];

	if (!extended)
		return NULL;
	spin_lock_bh(&s->lock);
	spin_lock(&bucket_locks[shard].lock);
	memcpy(extended, conn, sizeof(*conn));
	extended->extended = true;
	hlist_replace_rcu(&conn->node, &extended->node);
	spin_unlock(&bucket_locks[shard].lock);
	write_seqcount_begin(&s->changes);
	hlist_replace_rcu(&conn->live, &extended->live);
	write_seqcount_end(&s->changes);
	spin_unlock_bh(&s->lock);
	kfree_rcu(conn, rcu);
	return extended;
}

/* A connected socket without a state is older than the module. */
struct mssfrac_conn *mssfrac_conn_new(const struct sock *sk)
{
	if ((1 << sk->sk_state) & (TCPF_CLOSE | TCPF_LISTEN | TCPF_SYN_SENT |
				   TCPF_SYN_RECV | TCPF_NEW_SYN_RECV))
		return NULL;
	return conn_make(sk, true);
}

/*
 * Move the connection's counters to its namespace.  Under the RCU read lock, which
 * alone keeps the state, and its namespace, once a probe or the sweep has ended it.
 */
static void conn_end(struct mssfrac_conn *conn)
{
	unsigned int shard = shard_of(conn->sk);
	struct mssfrac_shard *s = &conn->mn->shards[shard];
	u64 last[MSSFRAC_NR_COUNTERS] = {};
	int i;

	spin_lock_bh(&s->lock);
	/* A probe and the sweep found it: the other one was first. */
	if (hlist_unhashed(&conn->node))
		goto unlock;
	mssfrac_counters_add(conn, last);
	trace_conn_end(conn->sk, conn, last);
	write_seqcount_begin(&s->changes);
	for (i = 0; i < MSSFRAC_NR_COUNTERS; i++)
		s->ended.v[conn->arm][i] += last[i];
	hlist_del_rcu(&conn->live);
	write_seqcount_end(&s->changes);
	spin_lock(&bucket_locks[shard].lock);
	hlist_del_init_rcu(&conn->node);
	spin_unlock(&bucket_locks[shard].lock);
	kfree_rcu(conn, rcu);
unlock:
	spin_unlock_bh(&s->lock);
}

static void socket_ends(const struct sock *sk)
{
	struct mssfrac_conn *conn;

	rcu_read_lock();
	conn = mssfrac_conn_find(sk);
	if (conn)
		conn_end(conn);
	rcu_read_unlock();
}

static void probe_inet_sock_set_state(void *data, const struct sock *sk,
				      const int oldstate, const int newstate)
{
	if (newstate == TCP_CLOSE)
		socket_ends(sk);
	/* Its first segment may already be counted (it came with the ACK). */
	else if (newstate == TCP_ESTABLISHED &&
		 sk->sk_protocol == IPPROTO_TCP && !READ_ONCE(unloading) &&
		 (1 << oldstate) & (TCPF_SYN_SENT | TCPF_SYN_RECV) &&
		 !mssfrac_conn_left_alone(sk))
		conn_make(sk, false);
}

static void probe_tcp_destroy_sock(void *data, struct sock *sk)
{
	socket_ends(sk);
}

/*
 * Found by name, because the symbols of these tracepoints are not exported.
 * Registered in this order: what the second one makes, the first one ends.
 */
static struct probe {
	const char *name;
	void *function;
	struct tracepoint *tp;
} probes[] = {
	{ .name = "tcp_destroy_sock", .function = probe_tcp_destroy_sock },
	{ .name = "inet_sock_set_state", .function = probe_inet_sock_set_state },
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

/* One bucket per 128 KB of memory, like the kernel's own table of TCP. */
static unsigned int table_bits(void)
{
	return clamp(ilog2(totalram_pages()) + PAGE_SHIFT - 17, 10, 20);
}

/* Before anything can reach the namespace's shards. */
void mssfrac_conn_net_init(struct mssfrac_net *mn)
{
	int i;

	mutex_init(&mn->reading);
	for (i = 0; i < MSSFRAC_SHARDS; i++) {
		spin_lock_init(&mn->shards[i].lock);
		seqcount_spinlock_init(&mn->shards[i].changes, &mn->shards[i].lock);
	}
}

int mssfrac_conn_init(void)
{
	int i, err;

	/* The compiler checks the probes' types; registering takes any. */
	check_trace_callback_type_inet_sock_set_state(probe_inet_sock_set_state);
	check_trace_callback_type_tcp_destroy_sock(probe_tcp_destroy_sock);

	for (i = 0; i < MSSFRAC_SHARDS; i++)
		spin_lock_init(&bucket_locks[i].lock);
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
 * The hooks are gone: no policy uses a state any more, and no new one is made
 * once the probes that did not see @unloading have returned.  The probes stay
 * until every connection has ended, so that none is missed.
 */
void mssfrac_conn_exit(void)
{
	struct mssfrac_conn *conn;
	unsigned int i;

	WRITE_ONCE(unloading, true);
	tracepoint_synchronize_unregister();
	for (i = 0; i < 1 << mssfrac_conns.bits; i++) {
		rcu_read_lock();
		hlist_for_each_entry_rcu(conn, &mssfrac_conns.buckets[i], node)
			conn_end(conn);
		rcu_read_unlock();
		cond_resched();
	}
	unregister_probes(ARRAY_SIZE(probes));
	kvfree(mssfrac_conns.buckets);
}
