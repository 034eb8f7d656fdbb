/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The receive side below TCP, and the ends of received packets: chosen at GRO
 * or where they enter the stack, ended by the reader, by TCP, by a drop.
 */
#ifndef PATHPROF_RX_BPF_H
#define PATHPROF_RX_BPF_H

#include "sock.bpf.h"

/* What one CPU is at. */
struct cpu_work {
	__u64 gro_key;		/* handed to GRO */
	__u64 rx_key;		/* in TCP; only if its returns are not hooked */
	__u64 rx_sk;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_work);
} cpu_works SEC(".maps");

struct gro_dev gro_devs[256];

static __always_inline struct cpu_work *cpu_work(void)
{
	return bpf_map_lookup_elem(&cpu_works, &(__u32){0});
}

static __always_inline struct gro_dev *gro_dev_of(struct sk_buff *skb)
{
	__u64 dev = address(skb->dev);

	return &gro_devs[(dev * 0x9e3779b97f4a7c15ULL) >> 56 & 255];
}

/*
 * How a packet ended whose address another one has.  One that waited for its
 * reader was freed unread, or spliced; an ACK that TCP has looked at is used
 * up, though its function, interrupted, has not returned yet.  Of any other
 * the end was not seen.
 */
static __always_inline __u32 rx_left(const struct flight *f)
{
	if (stage_waits(f->last))
		return END_UNREAD;
	return f->last == ST_RX_EST && f->path.flags & PF_PURE_ACK ?
	       END_CONSUMED : END_STALE;
}

static __always_inline void rx_leftover(__u64 key)
{
	struct flight *f;
	__u32 at;

	f = flight_find(key, &at);
	if (!f)
		return;
	path_sum(f, rx_left(f));
	flight_release(at);
}

static __always_inline void rx_segments(struct flight *f, struct sk_buff *skb)
{
	/* All in one piece: not worth a look. */
	if (!skb->data_len)
		return;
	f->segments = gso_segments(skb);
	if (f->segments > 1)
		f->path.flags |= PF_SUPER;
}

static __always_inline void rx_begin(struct sk_buff *skb, __u32 stage,
				     __u32 facts)
{
	__u64 key = address(skb);
	struct headers h = {};
	struct flight *f;
	__u32 at;

	if (!filter_dev(skb->dev)) {
		count(CN_FILTERED);
		return;
	}
	if (!parse_rx(skb, &h))
		return;
	count(CN_SAMPLED);
	at = flight_new(key);
	if (at == NO_FLIGHT)
		return;
	f = flight_at(at);
	flight_init(f, DIR_RX, stage, 0);
	f->path.flags = h.flags;
	f->path.facts = facts;
	f->path.family = h.family;
	f->bytes = h.payload;
	f->tcp_word = h.word;
	f->tsval = h.tsval;
	f->has_ts = h.has_ts;
	f->end_seq = h.seq + h.payload;
	if (config.by_owner)
		f->undecided = 1;
	rx_segments(f, skb);
	if (events_on)
		event_headers(f, address(skb->data), address(skb->dev));
	flight_leave(f);
	flight_unlock(at, key);
}

/*
 * The socket of a received packet is known: if it is not one of those asked
 * for, the packet is followed no further.  What that takes is not billed.
 */
static __always_inline void rx_decide(struct sock *sk, struct sk_buff *skb)
{
	__u64 key = address(skb), begin;
	struct flight *f;
	__u32 at;

	if (!config.by_owner)
		return;
	f = flight_find(key, &at);
	if (!f)
		return;
	if (f->undecided) {
		begin = bpf_ktime_get_ns();
		if (!owner_matches(sk)) {
			disown(f);
			flight_release(at);
			return;
		}
		f->undecided = 0;
		f->last_ns += bpf_ktime_get_ns() - begin;
	}
	flight_unlock(at, key);
}

static __always_inline void rx_gro(struct sk_buff *skb)
{
	struct cpu_work *c = cpu_work();
	struct gro_dev *d;

	if (c)
		c->gro_key = address(skb);
	rx_leftover(address(skb));
	/* Headers in page fragments: the stack's entry sees them linear. */
	if (skb->len - skb->data_len < 40)
		return;
	if (config.sample != 1) {
		d = gro_dev_of(skb);
		WRITE_ONCE(d->dev, address(skb->dev));
		WRITE_ONCE(d->jiffies, bpf_jiffies64());
	}
	if (sample_due(DIR_RX))
		rx_begin(skb, ST_RX_GRO,
			 skb->dev->features & NETIF_F_GRO ? 0 : FACT_GRO_OFF);
}

/*
 * The key is 0 if the driver's call began before the hook of its entry was
 * attached.  Never search for 0: it is the key of an unused entry, whose last
 * packet would be counted a second time.
 */
static __always_inline void rx_gro_result(int result)
{
	struct cpu_work *c = cpu_work();

	if (c && c->gro_key && gro_merged(result))
		follow_end(c->gro_key, ST_RX_MERGED, END_MERGED);
}

/* True if the packet is already followed, from GRO on. */
static __always_inline bool rx_from_gro(struct sk_buff *skb)
{
	__u64 key = address(skb);
	struct headers h = {};
	struct flight *f;
	__u32 at, end;

	f = flight_find(key, &at);
	if (!f)
		return false;
	if (f->last != ST_RX_GRO) {
		/* Bridged, decapsulated: each entry is a path of its own. */
		end = rx_left(f);
		path_sum(f, end == END_STALE ? END_REENTERED : end);
		flight_release(at);
		return false;
	}
	rx_segments(f, skb);
	if (f->segments > 1) {
		f->path.flags |= PF_GRO_MERGED;
		if (parse_rx(skb, &h)) {
			f->bytes = h.payload;
			f->end_seq = h.seq + h.payload;
			f->tcp_word = h.word;
		}
	}
	flight_mark(f, ST_RX_NETIF, bpf_ktime_get_ns());
	flight_unlock(at, key);
	return true;
}

/*
 * TCP is done with a packet: what carries data waits for its reader from here
 * on.  The packet may be gone and its address taken; but an entry that
 * reached this socket can only be ours, for its owner is still at work.
 */
__noinline int rx_finish(__u64 key, __u64 sk, __u32 facts)
{
	struct flight *f;
	__u32 at;

	f = flight_find(key, &at);
	if (!f)
		return 0;
	/* A reader elsewhere may have been faster than we hear of TCP's end. */
	if (f->sk != sk || stage_waits(f->last) ||
	    f->path.flags & PF_COPIED) {
		flight_unlock(at, key);
		return 0;
	}
	if (f->path.flags & PF_DATA) {
		f->path.facts |= facts & FACT_ACK_LATER &
			-!(f->path.facts & FACT_ACK_NOW);
		flight_mark(f, ST_RX_DONE, bpf_ktime_get_ns());
		flight_unlock(at, key);
		return 0;
	}
	flight_mark(f, ST_RX_USED, bpf_ktime_get_ns());
	path_sum(f, END_CONSUMED);
	flight_release(at);
	return 0;
}

/*
 * Where the returns of TCP's functions are not hooked, the next packet on
 * this CPU, or the end of the softirq, says that TCP is done with the last.
 */
static __always_inline void rx_close(void)
{
	struct cpu_work *c;

	if (config.exits && !config.udp)
		return;
	c = cpu_work();
	if (!c || !c->rx_key)
		return;
	rx_finish(c->rx_key, c->rx_sk, 0);
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
		rx_begin(skb, ST_RX_NETIF, FACT_GRO_NONE);
}

/* TCP's packets wait for TCP, which knows the connection. */
static __always_inline void rx_decide_udp(struct sock *sk, struct sk_buff *skb)
{
	if (sk->sk_protocol == IPPROTO_UDP)
		rx_decide(sk, skb);
}

/* The socket is found and its filter asked; TCP and UDP, IPv4 and IPv6. */
static __always_inline void rx_socket(struct sock *sk, struct sk_buff *skb)
{
	__u64 key = address(skb);
	struct flight *f;
	__u32 at;

	f = flight_find(key, &at);
	if (!f)
		return;
	f->sk = address(sk);
	flight_mark(f, ST_RX_SOCK, bpf_ktime_get_ns());
	if (f->path.flags & PF_UDP) {
		sock_work(f->sk)->rx_key = key;
		rx_open(key, f->sk);
	}
	flight_unlock(at, key);
}

/* Stages of which the kernel tells only the socket. */
static __always_inline void rx_sock_stage(const struct sock *sk, __u32 stage)
{
	struct sock_work *w;

	if (!flights_any())
		return;
	w = sock_known(address(sk));
	if (w->rx_key)
		follow(w->rx_key, stage, 0, 0);
}

static __always_inline void rx_copy(struct sk_buff *skb)
{
	__u64 key = address(skb), now;
	struct flight *f;
	__u32 at, n;

	f = flight_find(key, &at);
	if (!f)
		return;
	if (f->sk)
		sock_work(f->sk)->copy_key = key;
	now = bpf_ktime_get_ns();
	n = f->path.n;
	f->path.flags |= PF_COPIED;
	if (f->last == ST_RX_DONE &&
	    f->path.stages[(n - 1) & (PATH_STAGES - 1)] == ST_RX_COPY) {
		/* Read in parts: the pause between them was waiting. */
		flight_again(f, n - 2, ST_RX_COPY, now);
	} else {
		/* When TCP was done was not seen: bill no work. */
		if (f->last != ST_RX_DONE && f->last != ST_RX_COPY)
			flight_mark(f, ST_RX_DONE, f->last_ns);
		flight_mark(f, ST_RX_COPY, now);
	}
	flight_unlock(at, key);
}

/* The reader moved on: has it all of the packet it copied last? */
static __always_inline void rx_read(struct sock *sk)
{
	struct tcp_sock *tp;
	struct sock_work *w;
	struct flight *f;
	__u64 key;
	__u32 at;

	if (!flights_any())
		return;
	w = sock_known(address(sk));
	if (!w->copy_key)
		return;
	key = w->copy_key;
	w->copy_key = 0;
	at = flight_lock(key);
	if (at == NO_FLIGHT)
		return;
	f = flight_at(at);
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || f->last != ST_RX_COPY || f->sk != w->sk) {
		flight_unlock(at, key);
		return;
	}
	if (seq_before(tp->copied_seq, f->end_seq)) {
		flight_again(f, f->path.n - 1, ST_RX_DONE,
			     bpf_ktime_get_ns());
		flight_unlock(at, key);
		return;
	}
	flight_mark(f, ST_RX_READ, bpf_ktime_get_ns());
	path_sum(f, END_DELIVERED);
	flight_release(at);
}

#endif
