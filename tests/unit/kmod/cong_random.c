// SPDX-License-Identifier: GPL-2.0-only
/*
 * The BPF edition of the congestion control, compiled for this machine, and a
 * connection that does what chance decides (test_cong_bpf.py).
 */
#define __BPF_CORE_READ_H__
#define BPF_CORE_READ_BITFIELD(s, field) ((s)->field)
#include "mssfrac_cc.bpf.c"

struct connection {
	struct tcp_sock tp;
	struct ack_sample sample;
	struct net net;
	u64 ctx[3];	/* arguments of the callback */
	u64 random;
};

const u32 connection_size = sizeof(struct connection);
const u32 connection_ctx = __builtin_offsetof(struct connection, ctx);

static u32 below(struct connection *c, u32 n)
{
	c->random = c->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (c->random >> 33) % n;
}

static bool one_in(struct connection *c, u32 n)
{
	return !below(c, n);
}

static struct sock *sock_of(struct connection *c)
{
	return &c->tp.inet_conn.icsk_inet.sk;
}

/* A path: segment size, round trip, and how large windows get. */
void connection_begin(struct connection *c, u64 seed)
{
	c->random = seed;
	c->tp.mss_cache = one_in(c, 2) ? 1448 : 88 + below(c, 65000);
	c->tp.snd_cwnd = 10;
	c->tp.snd_cwnd_clamp = one_in(c, 4) ? 2 + below(c, 60) : ~0U;
	c->tp.snd_ssthresh = TCP_INFINITE_SSTHRESH;
	c->tp.tcp_mstamp = c->random >> 20;
	c->tp.srtt_us = 8 * (50 + below(c, 1 << (4 + below(c, 18))));
	c->net.ipv4.sysctl_tcp_min_tso_segs = 2;
	c->net.ipv4.sysctl_tcp_pacing_ca_ratio = 100 + below(c, 3) * 20;
	sock_of(c)->sk_max_pacing_rate = ~0UL;
}

/* What the kernel does between two callbacks. */
static void kernel_acts(struct connection *c)
{
	struct tcp_sock *tp = &c->tp;
	struct sock *sk = sock_of(c);

	tp->tcp_mstamp += below(c, tp->srtt_us / 8 * 2);
	tp->is_cwnd_limited = !one_in(c, 5);
	tp->max_packets_out = below(c, tp->snd_cwnd + 2);
	tp->packets_out = below(c, tp->snd_cwnd + 2);
	tp->snd_nxt += tp->mss_cache * below(c, 3);
	if (one_in(c, 200))
		tp->mss_cache = 88 + below(c, 65000);
	if (one_in(c, 100))
		tp->snd_cwnd = one_in(c, 2) ? tp->snd_ssthresh :
					      1 + below(c, 100);
	if (tp->snd_cwnd > 1 << 20)	/* no ssthresh yet */
		tp->snd_cwnd = 10;
	if (one_in(c, 500))
		tp->snd_ssthresh = 2 + below(c, 100);
	if (one_in(c, 300))
		sk->sk_max_pacing_rate = one_in(c, 3) ? below(c, 1 << 30) : ~0UL;
	if (one_in(c, 50))
		tp->inet_conn.icsk_ca_state = below(c, 5);
	tp->srtt_us += below(c, 100);
}

/* Prepares the next callback; returns its number (test_cong_bpf.py). */
u32 connection_next(struct connection *c)
{
	static const u8 callbacks[] = { 1, 1, 1, 2, 2, 2, 3, 3, 3 };
	struct tcp_sock *tp = &c->tp;
	u32 acked;

	kernel_acts(c);
	sock_of(c)->__sk_common.skc_net.net = &c->net;
	c->ctx[0] = (u64)sock_of(c);
	if (one_in(c, 60))
		return 4 + below(c, 2);		/* ssthresh, undo_cwnd */
	if (one_in(c, 300)) {
		c->ctx[1] = below(c, 5);	/* set_state */
		return 6;
	}
	acked = 1 + below(c, 3);
	c->ctx[1] = tp->snd_una;
	c->ctx[2] = acked;
	switch (callbacks[below(c, sizeof(callbacks))]) {
	case 1:	/* pkts_acked */
		tp->bytes_acked += acked * tp->mss_cache;
		tp->snd_una += acked * tp->mss_cache;
		c->sample.rtt_us = one_in(c, 20) ? -1 :
			(int)(tp->srtt_us / 8 + below(c, 10000));
		c->ctx[1] = (u64)&c->sample;
		return 1;
	case 2:
		return 2;	/* cong_avoid */
	default:
		return 3;	/* min_tso_segs */
	}
}
