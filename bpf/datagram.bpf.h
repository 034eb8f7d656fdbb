/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * With --stages: a datagram from the write to IP.  It is chosen where UDP
 * builds its header, before which it has no buffer of its own; the times of the
 * write and of the copy are kept with the socket until then.
 */
#ifndef PATHPROF_DATAGRAM_BPF_H
#define PATHPROF_DATAGRAM_BPF_H

#include "compat.bpf.h"
#include "config.bpf.h"
#include "detail.bpf.h"
#include "filter.bpf.h"
#include "path.bpf.h"
#include "rx.bpf.h"
#include "sample.bpf.h"
#include "sock.bpf.h"
#include "stack.bpf.h"
#include "tracked.bpf.h"

#define MSG_PEEK	2

static __always_inline void datagram_write(struct sock *sk)
{
	struct sock_work *w;

	if (!sample_next())
		return;
	w = sock_work(address(sk));
	w->origin = ST_TX_SEND;
	w->transmit_ns = 0;
	w->origin_ns = bpf_ktime_get_ns();
}

/* Called for each part of it; the first one counts. */
static __always_inline void datagram_fill(struct sk_buff *skb)
{
	struct sock *sk = skb->sk;
	struct sock_work *w;

	if (!sk)
		return;
	w = sock_known(address(sk));
	if (w->origin == ST_TX_SEND && w->origin_ns && !w->transmit_ns)
		w->transmit_ns = bpf_ktime_get_ns();
}

struct datagram {
	__u32 bytes, segments;
	__u16 source, destination;	/* ports, host order */
	__u8 family;
	__u8 unmatched;			/* as of tracked_pkt */
};

static __always_inline void datagram_begin(struct sk_buff *skb,
					   struct sock *sk,
					   const struct datagram *d)
{
	__u64 key = address(skb), now = bpf_ktime_get_ns(), origin, fill;
	struct sock_work *w = sock_known(address(sk));
	struct tracked_pkt *t;
	__u32 at;

	origin = w->origin == ST_TX_SEND ? w->origin_ns : 0;
	fill = w->transmit_ns;
	if (origin)
		w->origin_ns = 0;
	count(CN_SAMPLED);
	stack_leftover(key);
	at = tracked_new(key);
	if (at == NOT_TRACKED)
		return;
	t = tracked_at(at);
	tracked_init(t, DIR_TX, origin ? ST_TX_SEND : ST_TX_UDP,
		     origin ? origin : now);
	if (origin && fill)
		tracked_mark(t, ST_TX_FILL, fill);
	tracked_mark(t, ST_TX_UDP, now);
	t->path.flags = PF_UDP | PF_DATA;
	t->path.family = d->family;
	t->bytes = d->bytes;
	t->segments = d->segments;
	if (t->segments > 1)
		t->path.flags |= PF_SUPER;
	t->sk = address(sk);
	t->unmatched = d->unmatched;
	/* The device is not known yet. */
	if (config.ifindex || pcap_length)
		t->undecided = 1;
	detail_begin(t, NULL, lower_port(d->source, d->destination));
	tracked_leave(t);
	tracked_unlock(at, key);
}

/* Is it for us to choose, its addresses apart? */
static __always_inline bool datagram_due(struct sock *sk)
{
	if (!sk || sk->sk_protocol != IPPROTO_UDP || tracked_frozen() ||
	    !sample_due(DIR_TX))
		return false;
	if (filter_owner(sk))
		return true;
	count(CN_FILTERED);
	return false;
}

static __always_inline void datagram_size(struct datagram *d,
					  struct sk_buff *skb,
					  struct inet_cork *cork)
{
	__u32 ahead = ahead_of_data(skb, skb->transport_header);
	__u16 size = BPF_CORE_READ(cork, gso_size);

	d->bytes = skb->len - ahead - 8;
	d->segments = size && d->bytes > size ?
		      (d->bytes + size - 1) / size : 1;
}

static __always_inline void datagram_v4(struct sk_buff *skb,
					struct flowi4 *flow,
					struct inet_cork *cork)
{
	struct sock *sk = skb->sk;
	struct datagram d = { .family = 4 };

	if (!datagram_due(sk))
		return;
	d.source = sk->__sk_common.skc_num;
	d.destination = bpf_ntohs(BPF_CORE_READ(flow, uli.ports.dport));
	d.unmatched = !filter_ports(d.source, d.destination) ||
		 !filter_v4(BPF_CORE_READ(flow, saddr),
			    BPF_CORE_READ(flow, daddr));
	if (d.unmatched && !nat_on) {
		count(CN_FILTERED);
		return;
	}
	datagram_size(&d, skb, cork);
	datagram_begin(skb, sk, &d);
}

static __always_inline void datagram_v6(struct sk_buff *skb,
					struct flowi6 *flow,
					struct inet_cork *cork)
{
	struct in6_addr source, destination;
	struct sock *sk = skb->sk;
	struct datagram d = { .family = 6 };

	if (!datagram_due(sk))
		return;
	d.source = sk->__sk_common.skc_num;
	d.destination = bpf_ntohs(BPF_CORE_READ(flow, uli.ports.dport));
	BPF_CORE_READ_INTO(&source, flow, saddr);
	BPF_CORE_READ_INTO(&destination, flow, daddr);
	d.unmatched = !filter_ports(d.source, d.destination) ||
		 !filter_v6(source.in6_u.u6_addr32,
			    destination.in6_u.u6_addr32);
	if (d.unmatched && !nat_on) {
		count(CN_FILTERED);
		return;
	}
	datagram_size(&d, skb, cork);
	datagram_begin(skb, sk, &d);
}

/* A reader has taken it from the queue, and copies it next. */
static __always_inline void datagram_taken(struct sk_buff *skb, __u32 flags)
{
	if (skb && !(flags & MSG_PEEK))
		rx_copy(skb);
}

#endif
