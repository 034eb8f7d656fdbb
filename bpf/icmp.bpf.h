/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * With --stages icmp: messages of ICMP and ICMPv6.  One that a socket or ICMP
 * itself sends is chosen where IP has built its headers, before the hooks of
 * netfilter.  An echo reply is for a socket, which may get a copy of it: its path
 * goes on in that copy.  The end of any other message is what ICMP makes of it.
 */
#ifndef PATHPROF_ICMP_BPF_H
#define PATHPROF_ICMP_BPF_H

#include "compat.bpf.h"
#include "config.bpf.h"
#include "cpu.bpf.h"
#include "detail.bpf.h"
#include "extensions.bpf.h"
#include "filter.bpf.h"
#include "identity.bpf.h"
#include "path.bpf.h"
#include "pcap.bpf.h"
#include "sample.bpf.h"
#include "sock.bpf.h"
#include "stack.bpf.h"
#include "tracked.bpf.h"

/* What a function has returned: the key of a packet; 0 if it is none. */
static __always_inline __u64 returned_key(void *ctx)
{
	__u64 value = 0;

	bpf_get_func_ret(ctx, &value);
	return value < (__u64)-4095 ? value : 0;
}

struct icmp_message {
	__u64 ip;
	__u32 length, linear;	/* from there on */
	__u32 payload;
	__u8 family;
	__u8 unmatched;		/* as of tracked_pkt */
};

static __always_inline bool icmp_read(struct icmp_message *m, __u64 key,
				      __u8 family)
{
	struct sk_buff *skb = (struct sk_buff *)key;
	__u32 words[10] = {}, off;

	m->family = family;
	m->ip = address(BPF_CORE_READ(skb, data));
	m->length = BPF_CORE_READ(skb, len);
	m->linear = m->length - BPF_CORE_READ(skb, data_len);
	if (bpf_probe_read_kernel(words, family == 4 ? 20 : 40,
				  (void *)m->ip))
		return false;
	if (family == 4) {
		off = (*(__u8 *)words & 0x0f) * 4;
		m->unmatched = !filter_v4(words[3], words[4]);
	} else {
		off = ipv6_transport(m->ip, m->linear) & 0xffff;
		m->unmatched = !filter_v6(words + 2, words + 6);
	}
	m->payload = m->length > off + 8 ? m->length - off - 8 : 0;
	m->unmatched |= config.port ||
			!pcap_match(m->ip, m->linear, m->length, NULL);
	return true;
}

/* IP has built a packet of this socket; of ICMP if the socket is. */
static __always_inline void icmp_send(struct sock *sk, __u64 key, __u8 family)
{
	struct icmp_message m = {};
	struct tracked_pkt *t;
	__u32 at;

	if (!config.icmp || !key || !is_icmp(sk) || tracked_frozen() ||
	    !sample_due(DIR_TX) || !icmp_read(&m, key, family))
		return;
	if (!filter_owner(sk) || (m.unmatched && !nat_on)) {
		count(CN_FILTERED);
		return;
	}
	count(CN_SAMPLED);
	stack_leftover(key);
	at = tracked_new(key);
	if (at == NOT_TRACKED)
		return;
	t = tracked_at(at);
	tracked_init(t, DIR_TX, ST_TX_ICMP, 0);
	t->path.flags = PF_ICMP;
	t->path.family = family;
	t->bytes = m.payload;
	t->sk = address(sk);
	t->unmatched = m.unmatched;
	/* The device is not known yet. */
	if (config.ifindex)
		t->undecided = 1;
	detail_begin(t, NULL, 0);
	tracked_leave(t);
	tracked_unlock(at, key);
}

/* Echo reply, and extended echo reply. */
static __always_inline bool icmp_is_reply(__u8 type, __u8 family)
{
	return family == 4 ? type == 0 || type == 43 :
			     type == 129 || type == 161;
}

/*
 * IP delivers a packet to raw sockets, and then to the protocol.  Its data begins
 * behind IP.
 */
static __always_inline void icmp_arrives(struct sk_buff *skb, bool ours)
{
	__u64 key = address(skb);
	struct tracked_pkt *t;
	struct cpu_work *c;
	__u8 type = 0;
	__u32 at;

	if (!config.icmp || !ours)
		return;
	c = cpu_work();
	if (!c)
		return;
	c->icmp_key = 0;
	t = tracked_find(key, &at);
	if (!t)
		return;
	tracked_mark(t, ST_RX_ICMP, bpf_ktime_get_ns());
	bpf_probe_read_kernel(&type, 1, skb->data);
	if (icmp_is_reply(type, skb->protocol == bpf_htons(ETH_P_IP) ? 4 : 6))
		c->icmp_key = key;
	tracked_unlock(at, key);
}

/* The filter of a socket is asked of a packet: that in hand, or a copy. */
static __always_inline void icmp_queued(struct sock *sk, struct sk_buff *skb)
{
	struct cpu_work *c;

	if (!config.icmp || !tracked_any() || !is_icmp(sk))
		return;
	c = cpu_work();
	if (c && c->icmp_key)
		stack_moves(c->icmp_key, address(skb));
}

/*
 * A socket's own filter refuses the copy, as ping's does with replies to another
 * ping; IPv6 has no reason for that on some kernels.  The path goes on in the
 * packet that was copied.
 */
static __always_inline bool icmp_refused(struct sk_buff *skb, __u32 reason)
{
	__u64 key = address(skb);
	struct tracked_pkt *t;
	struct cpu_work *c;
	bool copied;
	__u32 at;

	if (!config.icmp || !tracked_any() ||
	    (!reason_is_filter(reason) && !reason_is_general(reason)))
		return false;
	c = cpu_work();
	if (!c || !c->icmp_key || c->icmp_key == key)
		return false;
	t = tracked_find(key, &at);
	if (!t)
		return false;
	copied = t->path.flags & PF_ICMP && t->last == ST_RX_SOCK;
	if (copied)
		tracked_mark(t, ST_RX_ICMP, bpf_ktime_get_ns());
	tracked_unlock(at, key);
	if (copied)
		stack_moves(key, c->icmp_key);
	return copied;
}

#endif
