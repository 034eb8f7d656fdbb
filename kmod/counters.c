// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/net/mssfrac: the counters of one namespace as "key value" lines.  They
 * are summed over its connections when read.  They only grow, from insmod to
 * rmmod, and are never reset.
 *
 * Locking: readers walk the live connections of a shard under RCU, and repeat the
 * walk if one ended or was extended meanwhile.  A socket may be freed during the
 * walk; its memory is type-stable (SLAB_TYPESAFE_BY_RCU), and the repetition
 * discards the values read from it.
 */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/seq_file_net.h>

#include "conn.h"
#include "counters.h"
#include "netns.h"

static const char *const arm_names[MSSFRAC_ARMS] = {
	[MSSFRAC_STOCK] = "stock",
	[MSSFRAC_TREATED] = "treated",
};

static const char *const counter_names[MSSFRAC_NR_COUNTERS] = {
#define X(name) [MSSFRAC_##name] = #name,
	MSSFRAC_COUNTERS(X)
#undef X
};

/* Walks of a shard's connections before the reader takes the lock. */
#define LOCKLESS_WALKS 3

static void add_policy(const struct mssfrac_conn *conn, u64 *v)
{
	const struct mssfrac_policy *policy = conn->policy;

#define X(name)	v[MSSFRAC_##name] += u64_stats_read(&policy->count.name);
	MSSFRAC_CONN_COUNTERS(MSSFRAC_NO_FIELD, X, MSSFRAC_NO_FIELD)
#undef X
}

/*
 * Add the counters of @conn to @v, and the segments that its socket counted since.
 * A live connection goes on counting meanwhile; no counter decreases between calls.
 */
void mssfrac_counters_add(const struct mssfrac_conn *conn, u64 *v)
{
	const struct tcp_sock *tp = tcp_sk(conn->sk);
	bool extended = conn->extended;
	u64 one[MSSFRAC_NR_COUNTERS] = {};
	int i;

#define X(name)	one[MSSFRAC_##name] = u64_stats_read(&conn->count.name);
	MSSFRAC_CONN_COUNTERS(X, MSSFRAC_NO_FIELD, MSSFRAC_NO_FIELD)
#undef X
	if (extended)
		add_policy(conn, one);
	/* Never read a count of the socket older than the copy of it. */
	smp_rmb();
	one[MSSFRAC_rx_segments] +=
		mssfrac_conn_uncounted(one[MSSFRAC_rx_segments],
				       READ_ONCE(tp->data_segs_in),
				       extended ? conn->policy->first_in : 0);
	one[MSSFRAC_tx_segments] +=
		mssfrac_conn_uncounted(one[MSSFRAC_tx_segments],
				       READ_ONCE(tp->data_segs_out),
				       extended ? conn->policy->first_out : 0);
	one[MSSFRAC_tx_bytes_available] = one[MSSFRAC_tx_bytes_used] +
					  one[MSSFRAC_tx_bytes_lost];
	one[MSSFRAC_rx_bytes_available] = one[MSSFRAC_rx_bytes_advertised] +
					  one[MSSFRAC_rx_bytes_lost];
	one[MSSFRAC_connections] = 1;
	for (i = 0; i < MSSFRAC_NR_COUNTERS; i++)
		v[i] += one[i];
}

/* Connections of a shard: those that ended, and those that live. */
static void add_shard(const struct mssfrac_shard *s,
		      struct mssfrac_totals *totals)
{
	const struct mssfrac_conn *conn;
	int arm, i;

	for (arm = 0; arm < MSSFRAC_ARMS; arm++)
		for (i = 0; i < MSSFRAC_NR_COUNTERS; i++)
			totals->v[arm][i] += s->ended.v[arm][i];
	hlist_for_each_entry_rcu(conn, &s->live, live, lockdep_is_held(&s->lock))
		mssfrac_counters_add(conn, totals->v[conn->arm]);
}

/*
 * Connections of a shard while none can end.  Who waits for its lock waits for one
 * walk then, not for one per CPU.
 */
static int add_shard_locked(struct mssfrac_net *mn, struct mssfrac_shard *s,
			    struct mssfrac_totals *totals)
{
	if (mutex_lock_interruptible(&mn->reading))
		return -ERESTARTSYS;
	spin_lock_bh(&s->lock);
	add_shard(s, totals);
	spin_unlock_bh(&s->lock);
	mutex_unlock(&mn->reading);
	return 0;
}

/*
 * Sum of all connections of a namespace.  Locked only where connections end
 * so fast that no walk is complete; then others of this namespace wait, and
 * none of another.
 */
static noinline_for_stack int
mssfrac_counters_sum(struct mssfrac_net *mn, struct mssfrac_totals *totals)
{
	int shard, walk;

	memset(totals, 0, sizeof(*totals));
	for (shard = 0; shard < MSSFRAC_SHARDS; shard++) {
		const struct mssfrac_totals before = *totals;
		struct mssfrac_shard *s = &mn->shards[shard];
		bool complete = false;

		for (walk = 0; walk < LOCKLESS_WALKS && !complete; walk++) {
			unsigned int changes = read_seqcount_begin(&s->changes);

			*totals = before;
			rcu_read_lock();
			add_shard(s, totals);
			rcu_read_unlock();
			complete = !read_seqcount_retry(&s->changes, changes);
			cond_resched();
		}
		if (!complete) {
			*totals = before;
			if (add_shard_locked(mn, s, totals))
				return -ERESTARTSYS;
		}
	}
	return 0;
}

static int stats_show(struct seq_file *seq, void *v)
{
	struct mssfrac_net *mn = mssfrac_net(seq_file_single_net(seq));
	struct mssfrac_totals totals;
	int arm, i, err;

	err = mssfrac_counters_sum(mn, &totals);
	if (err)
		return err;
	for (arm = 0; arm < MSSFRAC_ARMS; arm++)
		for (i = 0; i < MSSFRAC_NR_COUNTERS; i++)
			seq_printf(seq, "%s_%s %llu\n", arm_names[arm],
				   counter_names[i], totals.v[arm][i]);
	return 0;
}

int mssfrac_counters_register(struct net *net)
{
	/* A walk of all connections per read: only for who may see them all. */
	if (!proc_create_net_single("mssfrac", 0400, net->proc_net, stats_show,
				    NULL))
		return -ENOMEM;
	return 0;
}

void mssfrac_counters_unregister(struct net *net)
{
	remove_proc_entry("mssfrac", net->proc_net);
}
