/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One path through the whole host, with --stages: a packet keeps its entry from
 * the write or the first device to its reader or the last device.  Crossing to
 * another device, entering the stack again and tunnels extend the path.  There
 * is one key per packet, without KEY_TX: where a packet is follows from its last
 * stage.  The hooks that need it are in stack-hooks.bpf.h, and replace those of
 * pathprof.bpf.c.
 */
#ifndef PATHPROF_STACK_BPF_H
#define PATHPROF_STACK_BPF_H

#include "compat.bpf.h"
#include "config.bpf.h"
#include "end.bpf.h"
#include "event.bpf.h"
#include "filter.bpf.h"
#include "later.bpf.h"
#include "owner.bpf.h"
#include "parse.bpf.h"
#include "path.bpf.h"
#include "rx.bpf.h"
#include "sample.bpf.h"
#include "sock.bpf.h"
#include "tracked.bpf.h"
#include "tx.bpf.h"

/*
 * Where a packet is, by its last stage.  A byte for each, as there are more of
 * them than bits in a word, and a load costs less than a shift by a variable.
 * BY_SOCKET: a socket has it.  Nothing sends it on: another packet has its
 * address.  BY_HOST: on the way to a socket: who frees it here has used it up.
 * BY_CALLER: at a driver, or with XDP, which may have copied it: the return of
 * that call ends its path, unless it is dropped.
 */
#define BY_SOCKET	1
#define BY_HOST		2
#define BY_CALLER	4
#define SOCKETS		(BY_SOCKET | BY_HOST)

static const __u8 owner_stages[256] = {
	[ST_RX_BACKLOG] = SOCKETS, [ST_RX_DO_RCV] = SOCKETS,
	[ST_RX_EST] = SOCKETS, [ST_RX_STATE] = SOCKETS,
	[ST_RX_VALIDATE] = SOCKETS, [ST_RX_ACK_FAST] = SOCKETS,
	[ST_RX_ACK_SLOW] = SOCKETS, [ST_RX_DATA_QUEUE] = SOCKETS,
	[ST_RX_QUEUE_RCV] = SOCKETS, [ST_RX_SEND_ACK] = SOCKETS,
	[ST_RX_DELAY_ACK] = SOCKETS, [ST_RX_READY] = SOCKETS,
	[ST_RX_DONE] = SOCKETS, [ST_RX_COPY] = SOCKETS,
	[ST_RX_SOCK] = SOCKETS, [ST_RX_TIMEWAIT] = SOCKETS,
	[ST_RX_LISTEN] = SOCKETS, [ST_RX_SYNACK] = SOCKETS,
	[ST_RX_REQUEST] = SOCKETS, [ST_RX_MPTCP] = SOCKETS,
	[ST_RX_TLS] = SOCKETS, [ST_XSK] = SOCKETS,
	[ST_RX_DELIVER] = BY_HOST, [ST_RX_TCP] = BY_HOST,
	[ST_NF_IN] = BY_HOST, [ST_RX_ICMP] = BY_HOST,
	[ST_TX_START] = BY_CALLER, [ST_XDP_NATIVE] = BY_CALLER,
	[ST_XDP_GENERIC] = BY_CALLER,
};

/* Whose the packet is.  In a function of --stage it is where it was before. */
static __always_inline __u8 owner_of(const struct tracked_pkt *t)
{
	__u8 stage = t->last;
	__u32 i;

	/* One such function may be within another. */
	for (i = 0; config.users && i < USER_STAGES && stage >= ST_USER; i++)
		stage = t->callers[(stage - ST_USER) & (CALLS - 1)];
	return owner_stages[stage];
}

/* How a packet ended whose address another one has now. */
static __always_inline __u32 stack_left(const struct tracked_pkt *t)
{
	return owner_of(t) & BY_HOST ? rx_left(t, false, (struct rx_extent){}) :
					END_STALE;
}

/* The journey names the device, and the addresses as they are there. */
static __always_inline void stack_where(struct tracked_pkt *t,
					struct sk_buff *skb, __u64 ip)
{
	if (!events_on || t->dev == address(skb->dev))
		return;
	event_headers(t, ip, address(skb->dev));
}

/*
 * What TCP will test is read where a packet enters the stack: one that was sent
 * by this host has not been looked at yet, and one from GRO has grown.
 */
static __always_inline void stack_headers(struct tracked_pkt *t,
					  struct sk_buff *skb)
{
	__u32 linear = skb->len - skb->data_len, total, off, ahead[7] = {};
	struct headers h = {};
	__u8 ip[40];

	if (linear < 40 || bpf_probe_read_kernel(ip, 40, skb->data))
		return;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (ip[9] != IPPROTO_TCP || (ip[6] & 0x1f) || ip[7])
			return;
		total = ip[2] << 8 | ip[3];
		off = (ip[0] & 0x0f) * 4;
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		off = ipv6_transport(address(skb->data), linear);
		if (off >> 16 != IPPROTO_TCP)
			return;
		off &= 0xffff;
		total = ip[4] << 8 | ip[5];
		total += total ? IPV6_HEADER : 0;
	} else {
		return;
	}
	if (!total || total > skb->len)
		total = skb->len;
	if (linear < off + 20 ||
	    bpf_probe_read_kernel(ahead, linear < off + 28 ? 20 : 28,
				  skb->data + off))
		return;
	parse_tcp(ahead, total, off, &h);
	t->tcp_word = h.word;
	t->tsval = h.tsval;
	t->has_ts = h.has_ts;
	t->end_seq = h.seq + h.payload;
	t->bytes = h.payload;
}

/* The entry of another packet, which had this address before. */
static __always_inline void stack_leftover(__u64 key)
{
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_find(key, &at);
	if (!t)
		return;
	path_sum(t, stack_left(t));
	tracked_release(at);
}

/*
 * A packet enters the stack, or GRO.  If it is followed already, it came
 * from another device of this host, or out of a tunnel or a bridge: the clock
 * then, else 0.
 */
static __always_inline __u64 stack_enters(struct sk_buff *skb, __u32 stage)
{
	__u64 key = address(skb), now;
	struct tracked_pkt *t;
	__u32 at, segments;

	t = tracked_find(key, &at);
	if (!t)
		return 0;
	if (owner_of(t) & BY_SOCKET) {
		path_sum(t, stack_left(t));
		tracked_release(at);
		return 0;
	}
	if (stage == ST_RX_NETIF) {
		segments = skb->data_len ? gso_segments(skb) : t->segments;
		if (t->last == ST_RX_GRO && segments > t->segments)
			t->path.flags |= PF_GRO_MERGED | PF_SUPER;
		t->segments = segments;
		stack_headers(t, skb);
		later_unwrapped(t, skb);
	}
	tracked_mark(t, stage, bpf_ktime_get_ns());
	stack_where(t, skb, address(skb->data));
	tracked_leave(t);
	now = t->last_ns;
	tracked_unlock(at, key);
	return now;
}

/*
 * A packet is drawn once, where it is seen first.  Devices whose packets were
 * drawn before remember it: with CROSSED those of another device of this host,
 * without it those that GRO had.
 */
#define CROSSED 1ULL

static __always_inline void stack_drew(struct net_device *dev, __u64 crossed)
{
	struct gro_dev *d;

	if (config.sample == 1)
		return;
	d = &gro_devs[(address(dev) * 0x9e3779b97f4a7c15ULL) >> 56 & 255];
	WRITE_ONCE(d->dev, address(dev) | crossed);
	WRITE_ONCE(d->jiffies, bpf_jiffies64());
}

static __always_inline bool stack_drawn(struct sk_buff *skb, __u64 crossed)
{
	struct gro_dev *d;

	if (config.sample == 1)
		return false;
	d = gro_dev_of(skb);
	return skb->skb_iif ||
	       (READ_ONCE(d->dev) == (address(skb->dev) | crossed) &&
		bpf_jiffies64() - READ_ONCE(d->jiffies) < 25);
}

static __always_inline void stack_gro(struct sk_buff *skb,
				      struct rx_place place)
{
	struct cpu_work *c = cpu_work();
	__u64 begun = stack_enters(skb, ST_RX_GRO);

	if (!begun && place.linear >= 40 &&
	    !stack_drawn(skb, CROSSED)) {
		stack_drew(skb->dev, 0);
		if (sample_due(DIR_RX))
			begun = rx_begin(skb, place, ST_RX_GRO,
					 skb->dev->features & NETIF_F_GRO ?
					 0 : FACT_GRO_OFF);
	}
	if (!c)
		return;
	c->gro_key = address(skb);
	c->gro_ns = begun;
}

static __always_inline void stack_netif(struct sk_buff *skb)
{
	rx_close();
	if (stack_enters(skb, ST_RX_NETIF) || stack_drawn(skb, CROSSED) ||
	    stack_drawn(skb, 0))
		return;
	if (!sample_due(DIR_RX))
		return;
	/* It was in the stack before: a copy, or its entry was lost. */
	if (skb->skb_iif)
		count(CN_COPIES);
	rx_begin(skb, rx_linear(skb), ST_RX_NETIF, FACT_GRO_NONE);
}

/* Handed to another device of this host, as over veth and loopback. */
static __always_inline void stack_cross(struct sk_buff *skb,
					struct net_device *dev)
{
	__u64 key = address(skb);
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_find(key, &at);
	if (!t) {
		stack_drew(dev, CROSSED);
		return;
	}
	if (!(owner_of(t) & BY_SOCKET))
		tracked_mark(t, ST_CROSS, bpf_ktime_get_ns());
	tracked_unlock(at, key);
}

/* A device gets it, with all its headers: those of what is sent are new. */
static __always_inline void stack_at_device(struct tracked_pkt *t,
					    struct sk_buff *skb)
{
	stack_where(t, skb, address(skb->head) + skb->network_header);
	tx_capture(t, skb);
}

/* Followed already: forwarded, or a device above this one had it before. */
static __always_inline bool stack_again(struct sk_buff *skb)
{
	__u64 key = address(skb);
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_find(key, &at);
	if (!t)
		return false;
	if (owner_of(t) & BY_SOCKET) {
		path_sum(t, stack_left(t));
		tracked_release(at);
		return false;
	}
	if ((config.ifindex || pcap_length) && t->undecided) {
		bool matches = pcap_match_tx(skb);

		if (!filter_dev(skb->dev) || (!matches && !nat_on)) {
			disown(t);
			tracked_release(at);
			return true;
		}
		t->unmatched |= !matches;
		t->undecided = 0;
	}
	if (t->segments > 1 &&
	    !(skb->dev->features & (NETIF_F_TSO | NETIF_F_TSO6)))
		t->path.facts |= FACT_TSO_OFF;
	tracked_mark(t, ST_TX_DEV, bpf_ktime_get_ns());
	if (events_on) {
		stack_at_device(t, skb);
		tracked_leave(t);
	}
	tracked_unlock(at, key);
	return true;
}

/* IP gets a packet from TCP: its path begins before the hooks of netfilter. */
static __always_inline void stack_ip(struct sock *sk, struct sk_buff *skb)
{
	__u64 key = address(skb);
	struct sock_work *w;
	struct tracked_pkt *t;
	__u32 at;

	if (tracked_frozen())
		return;
	stack_leftover(key);
	w = tx_announced(sk, skb);
	if (!w)
		return;
	t = tx_take(key, w, ST_TX_IP, &at);
	if (!t)
		return;
	if (groups_on || state_on) {
		detail_begin(t, NULL, port_of(sk));
		if (is_connection(sk))
			detail_sock(t, address(sk));
		tracked_leave(t);
	}
	if (events_on) {
		event_socket(t, address(sk), address(skb->data));
		tracked_leave(t);
	}
	tracked_unlock(at, key);
}

/*
 * Of neighbour discovery, or for multicast listeners?  These build their own
 * messages of ICMPv6 (types 130 to 137, 143).
 */
static __always_inline bool is_neighbour(struct sk_buff *skb)
{
	__u8 type = 0;

	if (skb->protocol != bpf_htons(ETH_P_IPV6))
		return false;
	bpf_probe_read_kernel(&type, 1, skb->head + skb->transport_header);
	return type >= 130 && type <= 143;
}

/* A path begins at the device: no announcement of TCP's led to it. */
static __always_inline void stack_begin_tx(struct sk_buff *skb)
{
	struct sock *sk = skb->sk;
	__u64 key = address(skb);
	struct headers h = {};
	struct tracked_pkt *t;
	__u32 at;

	if (!filter_dev(skb->dev) ||
	    (config.by_owner && (!sk || !owner_matches(sk)))) {
		count(CN_FILTERED);
		return;
	}
	if (!parse_tx(skb, &h)) {
		if (h.later)
			later_begin(key, ST_TX_DEV);
		return;
	}
	if (!pcap_match_tx(skb)) {
		if (!nat_on) {
			count(CN_FILTERED);
			return;
		}
		h.unmatched = 1;
	}
	count(CN_SAMPLED);
	if (skb->skb_iif)
		count(CN_COPIES);
	at = tracked_new(key);
	if (at == NOT_TRACKED)
		return;
	t = tracked_at(at);
	tx_begin(t, skb, &h);
	t->sk = address(sk);
	detail_begin(t, skb->dev, h.port);
	if (sk && sk->__sk_common.skc_state == TCP_NEW_SYN_RECV &&
	    synack_again(sk, skb))
		t->path.flags |= PF_RETRANS;
	if (events_on)
		stack_at_device(t, skb);
	tracked_leave(t);
	tracked_unlock(at, key);
}

static __always_inline void stack_dev(struct sk_buff *skb)
{
	__u64 key = address(skb);
	struct sock *sk = skb->sk;
	struct sock_work *w;
	struct tracked_pkt *t;
	__u32 at;

	if (tracked_frozen() || stack_again(skb))
		return;
	w = tx_announced(sk, skb);
	if (!w) {
		/* It was drawn for where UDP or ICMP sent it. */
		if (config.datagrams && config.sample != 1 && sk &&
		    sk->sk_protocol == IPPROTO_UDP)
			return;
		if (config.messages && config.sample != 1 && sk &&
		    is_icmp(sk) && !is_neighbour(skb))
			return;
		if ((skb->skb_iif ? config.sample == 1 :
		     tx_unannounced(skb)) && sample_due(DIR_TX))
			stack_begin_tx(skb);
		return;
	}
	if (!pcap_match_tx(skb))
		w->unmatched = 1;
	if ((config.ifindex && !filter_dev(skb->dev)) || (w->unmatched && !nat_on)) {
		disown(NULL);
		return;
	}
	t = tx_take(key, w, ST_TX_DEV, &at);
	if (!t)
		return;
	if (groups_on || state_on) {
		detail_begin(t, skb->dev, port_of(sk));
		tracked_leave(t);
	}
	if (t->segments > 1 &&
	    !(skb->dev->features & (NETIF_F_TSO | NETIF_F_TSO6)))
		t->path.facts |= FACT_TSO_OFF;
	if (events_on) {
		stack_at_device(t, skb);
		tracked_leave(t);
	}
	tracked_unlock(at, key);
}

/* As packet_end(), where a packet has one entry for both directions. */
__noinline int stack_end(__u64 key, __u32 end, __u32 reason, __u64 location)
{
	struct tracked_pkt *t;
	__u32 at, stage;

	t = tracked_find(key, &at);
	if (!t)
		return 0;
	/* The driver was quick. */
	if (owner_of(t) & BY_CALLER && end != END_DROPPED) {
		tracked_unlock(at, key);
		return 1;
	}
	if (owner_of(t) & BY_HOST) {
		rx_freed(t, at, key, end, reason, location);
		return 1;
	}
	stage = rx_end_stage(end);
	if (end == END_CONSUMED) {
		end = END_FREED;
		stage = ST_TX_FREE;
	} else if (end == END_DROPPED) {
		t->path.reason = reason;
		t->path.location = location;
	}
	tracked_mark(t, stage, bpf_ktime_get_ns());
	path_sum(t, end);
	tracked_release(at);
	return 1;
}

/* As udp_read(). */
static __always_inline void stack_udp_read(struct sk_buff *skb)
{
	__u64 key = address(skb);

	if (skb->users.refs.counter != 1 || !tracked_any())
		return;
	stack_end(key, END_CONSUMED, 0, 0);
	if (tracked_hand(key, END_CONSUMED))
		stack_end(key, END_CONSUMED, 0, 0);
}

#endif
