// SPDX-License-Identifier: GPL-2.0-only
/*
 * The least that following every packet can cost: programs on the ten hooks that a
 * packet of a ping-pong passes under `pathprof record --sample 1`, which do a part
 * of what pathprof does (least.c has the levels).  They keep one record for each
 * CPU instead of a table, end nothing that another CPU holds, and filter nothing.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

char LICENSE[] SEC("license") = "GPL";

enum { HOOKS, CLOCKS, RECORD, FACTS, SUMS };
const volatile __u32 level = HOOKS;

#define CPUS	64
#define STAGES	16

struct record {
	__u64 key, last, n;
	__u64 ns[STAGES];
	__u32 words[20];
} records[CPUS] __attribute__((aligned(64)));

struct sums {
	__u64 packets, bytes, work;
	__u64 ns[STAGES];
	__u64 hist[64];
} all[CPUS] __attribute__((aligned(64)));

__u64 last_clock;

/* A plain number; see address() of bpf/compat.bpf.h. */
static __always_inline __u64 number(const void *pointer)
{
	__u64 v = (__u64)pointer;

	asm volatile("%0 = be64 %0; %0 = be64 %0" : "+r"(v));
	return v;
}

/* The packet or socket in hand enters its next stage. */
static __always_inline struct record *stage(const void *key)
{
	struct record *r;
	__u64 now, k, n;

	if (level == HOOKS)
		return NULL;
	now = bpf_ktime_get_ns();
	if (level == CLOCKS) {
		last_clock = now;
		return NULL;
	}
	r = &records[bpf_get_smp_processor_id() & (CPUS - 1)];
	asm volatile("" : "+r"(r));
	k = number(key);
	n = r->n;
	if (r->key == k) {
		r->ns[n & (STAGES - 1)] = now - r->last;
		r->n = n + 1;
	} else {
		r->key = k;
		r->n = 0;
	}
	r->last = now;
	return r;
}

/* The packet ends: five stages, as on the ways of a ping-pong. */
static __always_inline void add(struct record *r)
{
	struct sums *s;
	__u64 work = 0;
	int i;

	if (level < SUMS || !r)
		return;
	s = &all[bpf_get_smp_processor_id() & (CPUS - 1)];
	asm volatile("" : "+r"(s));
#pragma unroll
	for (i = 0; i < 5; i++) {
		work += r->ns[i];
		__sync_fetch_and_add(&s->ns[i], r->ns[i]);
	}
	__sync_fetch_and_add(&s->packets, 1);
	__sync_fetch_and_add(&s->bytes, r->words[0]);
	__sync_fetch_and_add(&s->work, work);
	__sync_fetch_and_add(&s->hist[work >> 10 & 63], 1);
}

/* A hook at which nothing is read. */
#define STAGE(section, name, object) \
SEC(section) int BPF_PROG(name, object *key) \
{ \
	stage(key); \
	return 0; \
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(netif_receive_skb, struct sk_buff *skb)
{
	struct record *r = stage(skb);

	if (level >= FACTS && r && skb->len - skb->data_len >= 52) {
		bpf_probe_read_kernel(r->words, 52, skb->data);
		r->words[15] = skb->protocol;
	}
	return 0;
}

/* What tcp_rcv_established() compares. */
SEC("tp_btf/tcp_probe")
int BPF_PROG(tcp_probe, struct sock *sk, struct sk_buff *skb)
{
	struct record *r = stage(skb);
	struct tcp_skb_cb *cb = (void *)skb->cb;
	struct tcp_sock *tp;

	if (level < FACTS || !r)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	r->words[16] = (tp->pred_flags ^ r->words[8]) |
		       (BPF_CORE_READ(cb, seq) ^ tp->rcv_nxt);
	r->words[17] = tp->snd_nxt - tp->snd_una;
	r->words[18] = tp->rx_opt.ts_recent - r->words[11];
	return 0;
}

STAGE("fexit/tcp_rcv_established", tcp_rcv_established, struct sock)
STAGE("tp_btf/skb_copy_datagram_iovec", skb_copy_datagram_iovec, struct sk_buff)

SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(tcp_rcv_space_adjust, struct sock *sk)
{
	add(stage(sk));
	return 0;
}

STAGE("fentry/tcp_sendmsg_locked", tcp_sendmsg_locked, struct sock)

SEC("fentry/__tcp_transmit_skb")
int BPF_PROG(__tcp_transmit_skb, struct sock *sk, struct sk_buff *skb)
{
	struct record *r = stage(sk);

	if (level >= FACTS && r)
		r->words[0] = skb->len;
	return 0;
}

STAGE("tp_btf/net_dev_queue", net_dev_queue, struct sk_buff)
STAGE("tp_btf/net_dev_start_xmit", net_dev_start_xmit, struct sk_buff)

SEC("tp_btf/net_dev_xmit")
int BPF_PROG(net_dev_xmit, struct sk_buff *skb)
{
	add(stage(skb));
	return 0;
}
