// SPDX-License-Identifier: GPL-2.0
/*
 * One small state per TCP connection, found by the address of its socket.
 * Made at the first call of a policy, freed when the kernel destroys the
 * socket (tracepoint tcp_destroy_sock).  Decides the arm; holds no reference
 * to the socket and never dereferences it on its own.
 *
 * Locking: a connection's state is created, used and freed under its socket
 * lock (or after the socket is beyond use), so only the table needs RCU.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/minmax.h>
#include <linux/rhashtable.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <net/ipv6.h>

#include "mssfrac.h"

static struct rhashtable conns;

static const struct rhashtable_params conns_params = {
	.key_len = sizeof(const struct sock *),
	.key_offset = offsetof(struct mssfrac_conn, sk),
	.head_offset = offsetof(struct mssfrac_conn, node),
	.automatic_shrinking = true,
};

struct endpoint {
	struct in6_addr addr;	/* IPv4 as ::ffff:a.b.c.d */
	__be16 port;
} __packed;

/* The arm's hash key, the same seen from either end of the connection. */
struct endpoints {
	struct endpoint low, high;
	u32 zero;
} __packed __aligned(SIPHASH_ALIGNMENT);

static_assert(sizeof(struct endpoints) == 40);

static void endpoints_of(const struct sock *sk, struct endpoints *e)
{
	const struct inet_sock *inet = inet_sk(sk);
	struct endpoint local = { .port = htons(inet->inet_num) };
	struct endpoint peer = { .port = inet->inet_dport };

#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		local.addr = sk->sk_v6_rcv_saddr;
		peer.addr = sk->sk_v6_daddr;
	} else
#endif
	{
		ipv6_addr_set_v4mapped(inet->inet_rcv_saddr, &local.addr);
		ipv6_addr_set_v4mapped(inet->inet_daddr, &peer.addr);
	}

	if (memcmp(&local, &peer, sizeof(local)) < 0) {
		e->low = local;
		e->high = peer;
	} else {
		e->low = peer;
		e->high = local;
	}
}

/*
 * SipHash-2-4 of the ordered endpoints under {ab_seed, 0}, scaled to 0..99:
 * whoever knows the four-tuple and the seed can recover the arm later, and two
 * hosts with the same seed put both ends into the same arm.
 */
static u8 arm_of(const struct sock *sk, const struct mssfrac_settings *set)
{
	siphash_key_t key = { .key = { READ_ONCE(set->ab_seed), 0 } };
	struct endpoints e = {};
	u32 slot;

	endpoints_of(sk, &e);
	slot = reciprocal_scale((u32)siphash(&e, sizeof(e), &key), 100);
	return slot < READ_ONCE(set->ab_percent) ? MSSFRAC_TREATED :
						    MSSFRAC_STOCK;
}

static struct mssfrac_conn *conn_find(const struct sock *sk)
{
	/* The state outlives the section: the caller holds the socket. */
	return rhashtable_lookup_fast(&conns, &sk, conns_params);
}

static struct mssfrac_conn *conn_new(struct sock *sk)
{
	struct mssfrac_net *mn = mssfrac_net(sock_net(sk));
	const struct tcp_sock *tp = tcp_sk(sk);
	struct mssfrac_conn *conn;

	conn = kzalloc(sizeof(*conn), GFP_ATOMIC | __GFP_NOWARN);
	if (!conn)
		return NULL;
	conn->sk = sk;
	conn->arm = arm_of(sk, &mn->set);
	conn->segs_in = tp->data_segs_in;
	conn->segs_out = tp->data_segs_out;
	if (rhashtable_insert_fast(&conns, &conn->node, conns_params)) {
		kfree(conn);
		return NULL;
	}
	mssfrac_add(mn, conn->arm, connections, 1);
	return conn;
}

/*
 * Others own the window or segment size of @sk: MPTCP, upper-layer protocols
 * such as kTLS, repair mode, path MTU probing.
 */
static bool left_alone(const struct sock *sk)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);

	return sk_is_mptcp(sk) || icsk->icsk_ulp_ops || tcp_sk(sk)->repair ||
	       icsk->icsk_mtup.enabled;
}

/*
 * The state of @sk; NULL if it is not ours to treat or memory is short, which
 * means stock behaviour.
 */
struct mssfrac_conn *mssfrac_conn_get(struct sock *sk)
{
	struct mssfrac_conn *conn;

	if ((1 << sk->sk_state) & (TCPF_CLOSE | TCPF_LISTEN | TCPF_SYN_SENT |
				   TCPF_SYN_RECV | TCPF_NEW_SYN_RECV))
		return NULL;
	if (left_alone(sk))
		return NULL;

	conn = conn_find(sk);
	return conn ? conn : conn_new(sk);
}

/*
 * What the kernel's per-socket counter @now grew by since @last.  It starts
 * again when the socket disconnects: a reset loses what came after @last.
 */
static u32 growth(u32 now, u32 *last)
{
	u32 grown = now < *last ? now : now - *last;

	*last = now;
	return grown;
}

/* Add the data segments since the last call to the counters. */
void mssfrac_conn_count(const struct sock *sk, struct mssfrac_conn *conn)
{
	struct mssfrac_net *mn = mssfrac_net(sock_net(sk));
	const struct tcp_sock *tp = tcp_sk(sk);

	mssfrac_add(mn, conn->arm, rx_segments,
		    growth(tp->data_segs_in, &conn->segs_in));
	mssfrac_add(mn, conn->arm, tx_segments,
		    growth(tp->data_segs_out, &conn->segs_out));
}

static void conn_free_rcu(struct rcu_head *rcu)
{
	kfree(container_of(rcu, struct mssfrac_conn, rcu));
}

static void probe_tcp_destroy_sock(void *data, struct sock *sk)
{
	struct mssfrac_conn *conn = conn_find(sk);

	if (!conn)
		return;
	/* What it sent since somebody else took it over is not ours to count. */
	if (!left_alone(sk))
		mssfrac_conn_count(sk, conn);
	rhashtable_remove_fast(&conns, &conn->node, conns_params);
	call_rcu(&conn->rcu, conn_free_rcu);
}

/* Exported tracepoints are found by name: theirs is not an exported symbol. */
static struct tracepoint *tcp_destroy_sock;

static void match_tracepoint(struct tracepoint *tp, void *priv)
{
	if (!strcmp(tp->name, "tcp_destroy_sock"))
		tcp_destroy_sock = tp;
}

int mssfrac_conn_init(void)
{
	int err = rhashtable_init(&conns, &conns_params);

	if (err)
		return err;
	err = -ENOENT;
	for_each_kernel_tracepoint(match_tracepoint, NULL);
	if (!tcp_destroy_sock)
		pr_err("this kernel has no tracepoint tcp_destroy_sock\n");
	else
		err = tracepoint_probe_register(tcp_destroy_sock,
						probe_tcp_destroy_sock, NULL);
	if (err)
		rhashtable_destroy(&conns);
	return err;
}

static void conn_free(void *ptr, void *arg)
{
	kfree(ptr);
}

/* The hooks are gone: nobody makes or uses a state any more. */
void mssfrac_conn_exit(void)
{
	tracepoint_probe_unregister(tcp_destroy_sock, probe_tcp_destroy_sock,
				    NULL);
	tracepoint_synchronize_unregister();
	rhashtable_free_and_destroy(&conns, conn_free, NULL);
	/* States of sockets that closed just before. */
	rcu_barrier();
}
