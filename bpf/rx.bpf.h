/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The receive side below TCP: packets are chosen at GRO or where they enter the
 * stack, and followed until TCP or the reader is done with them.
 */
#ifndef PATHPROF_RX_BPF_H
#define PATHPROF_RX_BPF_H

#include "capture.bpf.h"
#include "compat.bpf.h"
#include "config.bpf.h"
#include "cpu.bpf.h"
#include "end.bpf.h"
#include "event.bpf.h"
#include "filter.bpf.h"
#include "later.bpf.h"
#include "owner.bpf.h"
#include "parse.bpf.h"
#include "path.bpf.h"
#include "pcap.bpf.h"
#include "sample.bpf.h"
#include "sock.bpf.h"
#include "tracked.bpf.h"

struct gro_dev gro_devs[256];

static __always_inline struct gro_dev *gro_dev_of(struct sk_buff *skb)
{
	__u64 dev = address(skb->dev);

	return &gro_devs[(dev * 0x9e3779b97f4a7c15ULL) >> 56 & 255];
}

static __always_inline void rx_segments(struct tracked_pkt *t, struct sk_buff *skb)
{
	/* All in one piece: not worth a look. */
	if (!skb->data_len)
		return;
	t->segments = gso_segments(skb);
	if (t->segments > 1)
		t->path.flags |= PF_SUPER;
}

/* Where a packet's headers are, from IP on; so many bytes can be read there. */
struct rx_place {
	__u64 ip;
	__u32 linear;
};

static __always_inline struct rx_place rx_linear(struct sk_buff *skb)
{
	return (struct rx_place){ address(skb->data),
				  skb->len - skb->data_len };
}

/*
 * napi_gro_frags() has moved the link header out of the first fragment, and has
 * a pointer to what follows it (napi_frags_skb()).  Without one, the headers were
 * not in a fragment.
 */
static __always_inline struct rx_place rx_in_fragment(struct sk_buff *skb)
{
	__u64 at = bpf_core_field_offset(struct napi_gro_cb, frag0);
	__u64 n = bpf_core_field_offset(struct napi_gro_cb, frag0_len);
	__u64 ip = *(volatile __u64 *)((char *)skb->cb + at);

	if (!ip)
		return rx_linear(skb);
	return (struct rx_place){ ip, *(volatile __u32 *)((char *)skb->cb + n) };
}

/* The clock where its path begins; 0 if it is not followed. */
static __always_inline __u64 rx_begin(struct sk_buff *skb,
				      struct rx_place place, __u32 stage,
				      __u32 facts)
{
	__u64 key = address(skb), now;
	struct headers h = {};
	struct tracked_pkt *t;
	__u32 at;

	if (!filter_dev(skb->dev)) {
		count(CN_FILTERED);
		return 0;
	}
	if (!parse(skb, (void *)place.ip, skb->len, place.linear, &h)) {
		if (config.stack && h.later)
			later_begin(key, stage);
		return 0;
	}
	if (pcap_length &&
	    !pcap_match(place.ip, place.linear, skb->len, NULL)) {
		if (!nat_on) {
			count(CN_FILTERED);
			return 0;
		}
		h.unmatched = 1;
	}
	count(CN_SAMPLED);
	at = tracked_new(key);
	if (at == NOT_TRACKED)
		return 0;
	t = tracked_at(at);
	tracked_init(t, DIR_RX, stage, 0);
	t->path.flags = h.flags;
	t->path.facts = facts;
	t->path.family = h.family;
	t->bytes = h.payload;
	t->tcp_word = h.word;
	t->tsval = h.tsval;
	t->has_ts = h.has_ts;
	t->end_seq = h.udp ? rx_extent(skb).end : h.seq + h.payload;
	if (config.by_owner)
		t->undecided = 1;
	t->unmatched = h.unmatched;
	rx_segments(t, skb);
	detail_begin(t, skb->dev, h.port);
	if (events_on)
		event_headers(t, place.ip, address(skb->dev));
	if (capture)
		capture_bytes(t, place.ip, place.linear, skb->len);
	tracked_leave(t);
	now = t->last_ns;
	tracked_unlock(at, key);
	return now;
}

/*
 * The socket of a received packet is known.  If it was not asked for, the
 * packet is followed no further.  The time this takes is not billed to the
 * packet.
 */
static __always_inline void rx_decide(struct sock *sk, struct sk_buff *skb)
{
	__u64 key = address(skb), begin;
	struct tracked_pkt *t;
	__u32 at;

	if (!config.by_owner)
		return;
	t = tracked_find(key, &at);
	if (!t)
		return;
	if (t->undecided) {
		begin = bpf_ktime_get_ns();
		if (!owner_matches(sk)) {
			disown(t);
			tracked_release(at);
			return;
		}
		t->undecided = 0;
		t->last_ns += bpf_ktime_get_ns() - begin;
	}
	tracked_unlock(at, key);
}

static __always_inline void rx_gro(struct sk_buff *skb, struct rx_place place)
{
	struct cpu_work *c = cpu_work();
	struct gro_dev *d;
	__u64 begun;

	if (c) {
		c->gro_key = address(skb);
		c->gro_ns = 0;
	}
	rx_leftover(address(skb), skb->skb_iif, skb->len,
		    rx_extent(skb).end);
	/* Headers in page fragments: the stack's entry sees them linear. */
	if (place.linear < 40)
		return;
	if (config.sample != 1) {
		d = gro_dev_of(skb);
		WRITE_ONCE(d->dev, address(skb->dev));
		WRITE_ONCE(d->jiffies, bpf_jiffies64());
	}
	if (!sample_due(DIR_RX))
		return;
	begun = rx_begin(skb, place, ST_RX_GRO,
			 skb->dev->features & NETIF_F_GRO ? 0 : FACT_GRO_OFF);
	if (c)
		c->gro_ns = begun;
}

/*
 * GRO has merged a packet into another, and may have freed it: what began at
 * another time is another packet.
 */
static __always_inline void rx_merged(__u64 key, __u64 begun)
{
	struct tracked_pkt *t;
	__u32 at;

	if (!begun || !tracked_any())
		return;
	at = tracked_seek(key);
	if (at == NOT_TRACKED)
		return;
	t = tracked_at(at);
	if (READ_ONCE(t->last) != ST_RX_GRO ||
	    READ_ONCE(t->last_ns) != begun || !tracked_claim(at, key))
		return;
	tracked_mark(t, ST_RX_MERGED, bpf_ktime_get_ns());
	path_sum(t, END_MERGED);
	tracked_release(at);
}

/*
 * The key is 0 if the hook of the call's entry was not attached when it began.
 * Never search for 0: it is the key of an unused entry, whose last packet would
 * be counted a second time.  The key of an earlier call must not remain either:
 * GRO may hold that call's packet, and another one was merged.
 */
static __always_inline void rx_gro_result(int result)
{
	struct cpu_work *c = cpu_work();
	__u64 key = c ? c->gro_key : 0;

	if (!key)
		return;
	c->gro_key = 0;
	if (gro_merged(result))
		rx_merged(key, c->gro_ns);
}

/* True if the packet is already followed, from GRO on. */
static __always_inline bool rx_from_gro(struct sk_buff *skb)
{
	__u64 key = address(skb);
	struct headers h = {};
	struct tracked_pkt *t;
	__u32 at, before;

	t = tracked_find(key, &at);
	if (!t)
		return false;
	if (t->last != ST_RX_GRO) {
		/* Bridged, decapsulated: each entry is a path of its own. */
		tracked_unlock(at, key);
		rx_leftover(key, skb->skb_iif, skb->len,
			    rx_extent(skb).end);
		return false;
	}
	before = t->segments;
	rx_segments(t, skb);
	if (t->segments > before) {
		t->path.flags |= PF_GRO_MERGED;
		if (parse_rx(skb, &h)) {
			t->bytes = h.payload;
			t->end_seq = h.udp ? rx_extent(skb).end : h.seq + h.payload;
			t->tcp_word = h.word;
		}
	}
	tracked_mark(t, ST_RX_NETIF, bpf_ktime_get_ns());
	tracked_unlock(at, key);
	return true;
}

/*
 * TCP keeps what carries data for its reader, and a FIN ahead of its turn: when
 * that comes it is joined to the data before it, which is reported where TCP's
 * functions are hooked.  A socket keeps every message of ICMP that it gets.
 */
static __always_inline bool rx_kept(const struct tracked_pkt *t)
{
	return t->path.flags & (PF_DATA | PF_ICMP) ||
	       (config.exits && t->path.flags & PF_FIN &&
		t->path.flags & PF_OOO);
}

/*
 * TCP is done with a packet: what it keeps waits from here on.  The packet may be
 * gone and its address taken; but an entry that reached this socket can only be
 * ours, for its owner is still at work.
 */
__noinline int rx_finish(__u64 key, __u64 sk, __u32 facts)
{
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_of(key, sk, &at);
	if (!t)
		return 0;
	/* A reader elsewhere may have been faster than we hear of TCP's end. */
	if (t->sk != sk || stage_waits(t->last) ||
	    t->path.flags & PF_COPIED) {
		rx_yield(key, at);
		return 0;
	}
	if (rx_kept(t)) {
		t->path.facts |= facts & FACT_ACK_LATER &
			-!(t->path.facts & FACT_ACK_NOW);
		tracked_mark(t, ST_RX_DONE, bpf_ktime_get_ns());
		rx_yield(key, at);
		return 0;
	}
	tracked_mark(t, ST_RX_USED, bpf_ktime_get_ns());
	path_sum(t, END_CONSUMED);
	tracked_release(at);
	return 0;
}

/*
 * Where the returns of TCP's functions are not hooked, the next packet on
 * this CPU, or the end of the softirq, shows that TCP is done with the last.
 */
static __always_inline void rx_close(void)
{
	struct cpu_work *c;
	__u64 key;

	if (config.exits && !config.udp && !config.icmp)
		return;
	c = cpu_work();
	if (!c)
		return;
	/* Once: a softirq may clear it, and 0 is the key of no packet. */
	key = READ_ONCE(c->rx_key);
	if (!key)
		return;
	rx_finish(key, c->rx_sk, 0);
	c->rx_key = 0;
}

static __always_inline void rx_open(__u64 key, __u64 sk)
{
	struct cpu_work *c = cpu_work();

	if (!c)
		return;
	c->rx_key = key;
	c->rx_sk = sk;
}

static __always_inline void rx_netif(struct sk_buff *skb)
{
	struct gro_dev *d;

	rx_close();
	if (rx_from_gro(skb))
		return;
	if (config.sample != 1) {
		d = gro_dev_of(skb);
		if (READ_ONCE(d->dev) == address(skb->dev) &&
		    bpf_jiffies64() - READ_ONCE(d->jiffies) < 25)
			return;
	}
	if (sample_due(DIR_RX))
		rx_begin(skb, rx_linear(skb), ST_RX_NETIF, FACT_GRO_NONE);
}

/* TCP's packets wait for TCP, which knows the connection. */
static __always_inline void rx_decide_udp(struct sock *sk, struct sk_buff *skb)
{
	if (sk->sk_protocol == IPPROTO_UDP || (config.icmp && is_icmp(sk)))
		rx_decide(sk, skb);
}

/* The socket is found and its filter asked; of any protocol, IPv4 and IPv6. */
static __always_inline void rx_socket(struct sock *sk, struct sk_buff *skb)
{
	__u64 key = address(skb);
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_find(key, &at);
	if (!t)
		return;
	t->sk = address(sk);
	tracked_mark(t, ST_RX_SOCK, bpf_ktime_get_ns());
	if (t->path.flags & (PF_UDP | PF_ICMP)) {
		sock_work(t->sk)->rx_key = key;
		rx_open(key, t->sk);
	}
	tracked_unlock(at, key);
}

/* Stages whose hooks pass the socket only. */
static __always_inline void rx_sock_stage(const struct sock *sk, __u32 stage)
{
	__u64 number = address(sk), key;
	struct tracked_pkt *t;
	__u32 at;

	key = READ_ONCE(sock_known(number)->rx_key);
	t = tracked_of(key, number, &at);
	if (!t)
		return;
	tracked_mark(t, stage, bpf_ktime_get_ns());
	rx_yield(key, at);
}

static __always_inline void rx_copy(struct sk_buff *skb)
{
	__u64 key = address(skb), now;
	struct tracked_pkt *t;
	__u32 at, n;

	t = tracked_find(key, &at);
	if (!t)
		return;
	if (t->sk)
		sock_work(t->sk)->copy_key = key;
	now = bpf_ktime_get_ns();
	n = t->path.n;
	t->path.flags |= PF_COPIED;
	if (t->last == ST_RX_DONE &&
	    t->path.stages[(n - 1) & (PATH_STAGES - 1)] == ST_RX_COPY) {
		/* Read in parts: the pause between them was waiting. */
		tracked_again(t, n - 2, ST_RX_COPY, now);
	} else {
		/* When TCP was done was not seen: bill no work. */
		if (t->last != ST_RX_DONE && t->last != ST_RX_COPY)
			tracked_mark(t, ST_RX_DONE, t->last_ns);
		tracked_mark(t, ST_RX_COPY, now);
	}
	tracked_unlock(at, key);
}

/* The reader moved on: has it all of the packet it copied last? */
static __always_inline void rx_read(struct sock *sk)
{
	struct tcp_sock *tp;
	struct sock_work *w;
	struct tracked_pkt *t;
	__u64 key;
	__u32 at;

	if (!tracked_any())
		return;
	w = sock_known(address(sk));
	/* Once: another socket may take the entry meanwhile. */
	key = READ_ONCE(w->copy_key);
	if (!key)
		return;
	w->copy_key = 0;
	t = tracked_of(key, w->sk, &at);
	if (!t)
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || t->last != ST_RX_COPY || t->sk != w->sk) {
		tracked_unlock(at, key);
		return;
	}
	if (seq_before(tp->copied_seq, t->end_seq)) {
		tracked_again(t, t->path.n - 1, ST_RX_DONE,
			     bpf_ktime_get_ns());
		tracked_unlock(at, key);
		return;
	}
	tracked_mark(t, ST_RX_READ, bpf_ktime_get_ns());
	path_sum(t, END_DELIVERED);
	tracked_release(at);
}

#endif
