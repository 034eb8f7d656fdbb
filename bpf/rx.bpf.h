/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The receive side: where a packet is chosen, what its headers say, and the
 * stages at which more than the stage itself is learned.
 */
#ifndef PATHPROF_RX_BPF_H
#define PATHPROF_RX_BPF_H

#include "sample.bpf.h"
#include "sock.bpf.h"

#define TCPH_FIN	0x01
#define TCPH_SYN	0x02
#define TCPH_RST	0x04

struct headers {
	__u32 payload;
	__u32 flags;
	__u8 family;
};

static __always_inline __u32 tcp_flags_of(__u8 bits, __u32 payload)
{
	__u32 flags = payload ? PF_DATA : PF_PURE_ACK;

	if (bits & TCPH_SYN)
		flags |= PF_SYN;
	if (bits & TCPH_FIN)
		flags |= PF_FIN;
	if (bits & TCPH_RST)
		flags |= PF_RST;
	return flags;
}

/* Addresses against the filter, length and payload offset of IP. */
static __always_inline int parse_ip(struct sk_buff *skb, __u8 *ip,
				    __u32 *total, struct headers *h)
{
	__u32 *a = (__u32 *)ip;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		h->family = 4;
		/* Later fragments carry no TCP header. */
		if (ip[9] != IPPROTO_TCP || (ip[6] & 0x1f) || ip[7])
			goto not_tcp;
		if (!filter_v4(a[3], a[4]))
			goto filtered;
		*total = ip[2] << 8 | ip[3];
		return (ip[0] & 0x0f) * 4;
	}
	if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		h->family = 6;
		/* TCP behind extension headers is not followed. */
		if (ip[6] != IPPROTO_TCP)
			goto not_tcp;
		if (!filter_v6(a + 2, a + 6))
			goto filtered;
		*total = ip[4] << 8 | ip[5];
		if (*total)
			*total += 40;
		return 40;
	}
not_tcp:
	count(CN_NOT_TCP);
	return -1;
filtered:
	count(CN_FILTERED);
	return -1;
}

/* Read the headers of a packet whose data begins at IP. */
static __always_inline bool parse(struct sk_buff *skb, struct headers *h)
{
	__u32 len = skb->len, total = 0;
	__u32 words[10] = {};
	__u8 *ip = (__u8 *)words, tcp[14];
	int off, head;

	if (len - skb->data_len < 40)
		goto unparsed;
	if (bpf_probe_read_kernel(words, sizeof(words), skb->data))
		goto unparsed;
	off = parse_ip(skb, ip, &total, h);
	if (off < 0)
		return false;
	if (len - skb->data_len < off + 20)
		goto unparsed;
	if (bpf_probe_read_kernel(tcp, sizeof(tcp), skb->data + off))
		goto unparsed;
	if (!filter_ports(tcp[0] << 8 | tcp[1], tcp[2] << 8 | tcp[3])) {
		count(CN_FILTERED);
		return false;
	}
	/* Short frames are padded; jumbo super-packets say 0. */
	if (!total || total > len)
		total = len;
	head = off + (tcp[12] >> 4) * 4;
	h->payload = total > head ? total - head : 0;
	h->flags = tcp_flags_of(tcp[13], h->payload);
	return true;
unparsed:
	count(CN_UNPARSED);
	return false;
}

static __always_inline __u32 gso_segments(struct sk_buff *skb)
{
	struct skb_shared_info *info = (void *)(skb->head + skb->end);
	__u16 segments = BPF_CORE_READ(info, gso_segs);

	return segments ? segments : 1;
}

static __always_inline void rx_begin(struct sk_buff *skb, __u32 stage)
{
	__u64 key = address(skb);
	struct headers h = {};
	struct flight *f;
	__u32 at;

	if (!parse(skb, &h))
		return;
	count(CN_SAMPLED);
	at = flight_new(key);
	if (at == NO_FLIGHT)
		return;
	f = flight_at(at);
	if (f) {
		flight_init(f, DIR_RX);
		f->path.flags = h.flags;
		f->path.family = h.family;
		f->bytes = h.payload;
		f->segments = gso_segments(skb);
		if (f->segments > 1)
			f->path.flags |= PF_SUPER;
		flight_mark(f, stage, bpf_ktime_get_ns());
	}
	flight_unlock(at, key);
}

struct gro_dev gro_devs[256];

static __always_inline struct gro_dev *gro_dev_of(struct sk_buff *skb)
{
	__u64 dev = address(skb->dev);

	return &gro_devs[(dev * 0x9e3779b97f4a7c15ULL) >> 56 & 255];
}

static __always_inline void rx_gro(struct sk_buff *skb)
{
	struct gro_dev *d;

	follow_end(address(skb), ST_RX_GRO, END_STALE);
	/* Headers in page fragments: the stack's entry sees them linear. */
	if (skb->len - skb->data_len < 40)
		return;
	if (config.sample != 1) {
		d = gro_dev_of(skb);
		WRITE_ONCE(d->dev, address(skb->dev));
		WRITE_ONCE(d->jiffies, bpf_jiffies64());
	}
	if (sample_due())
		rx_begin(skb, ST_RX_GRO);
}

static __always_inline void rx_gro_result(struct sk_buff *skb, int result)
{
	if (gro_merged(result))
		follow_end(address(skb), ST_RX_MERGED, END_MERGED);
}

/* True if the packet is already followed, from GRO on. */
static __always_inline bool rx_from_gro(struct sk_buff *skb)
{
	__u64 key = address(skb);
	struct flight *f;
	__u32 at, segments;

	if (!flights_any())
		return false;
	at = flight_lock(key);
	if (at == NO_FLIGHT)
		return false;
	f = flight_at(at);
	if (!f || flight_last(f) != ST_RX_GRO) {
		/* Bridged, decapsulated: each entry is a path of its own. */
		if (f)
			flight_sum(at, END_REENTERED);
		flight_release(at);
		return false;
	}
	segments = gso_segments(skb);
	if (segments > f->segments) {
		struct headers h = {};

		f->path.flags |= PF_GRO_MERGED | PF_SUPER;
		f->segments = segments;
		if (parse(skb, &h))
			f->bytes = h.payload;
	}
	flight_mark(f, ST_RX_NETIF, bpf_ktime_get_ns());
	flight_unlock(at, key);
	return true;
}

static __always_inline void rx_netif(struct sk_buff *skb)
{
	struct gro_dev *d;

	if (rx_from_gro(skb))
		return;
	if (config.sample != 1) {
		d = gro_dev_of(skb);
		if (READ_ONCE(d->dev) == address(skb->dev) &&
		    bpf_jiffies64() - READ_ONCE(d->jiffies) < 25)
			return;
	}
	if (sample_due())
		rx_begin(skb, ST_RX_NETIF);
}

/* First statement of tcp_rcv_established(). */
static __always_inline void rx_established(struct sock *sk,
					   struct sk_buff *skb)
{
	__u64 key = address(skb);
	struct flight *f;
	__u32 at;

	sock_rx_begin(sk, key);
	if (!flights_any())
		return;
	at = flight_lock(key);
	if (at == NO_FLIGHT)
		return;
	f = flight_at(at);
	if (f) {
		f->sk = address(sk);
		f->path.flags |= PF_EST;
		flight_mark(f, ST_RX_EST, bpf_ktime_get_ns());
	}
	flight_unlock(at, key);
}

/* What the kernel is about to count this acknowledgement as. */
static __always_inline __u32 ack_class(struct sock *sk, struct sk_buff *skb,
				       int flag)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 una = BPF_CORE_READ(tp, snd_una);
	__u32 ack = tcp_cb(skb, ack_seq);

	if (seq_before(ack, una) || seq_before(BPF_CORE_READ(tp, snd_nxt), ack))
		return 0;
	if (!(flag & FLAG_SLOWPATH) && ack != una)
		return PF_HPACK;
	return tcp_cb(skb, seq) == tcp_cb(skb, end_seq) ? PF_PUREACKS : 0;
}

static __always_inline void rx_ack(struct sock *sk, struct sk_buff *skb,
				   int flag)
{
	__u64 key = address(skb);
	struct flight *f;
	__u32 at;

	if (!flights_any())
		return;
	at = flight_lock(key);
	if (at == NO_FLIGHT)
		return;
	f = flight_at(at);
	if (f) {
		f->path.flags |= ack_class(sk, skb, flag);
		if (flag & FLAG_SLOWPATH) {
			f->path.flags |= PF_SLOW;
			flight_mark(f, ST_RX_ACK_SLOW, bpf_ktime_get_ns());
		} else {
			if (f->path.flags & PF_EST)
				f->path.flags |= PF_FAST;
			flight_mark(f, ST_RX_ACK_FAST, bpf_ktime_get_ns());
		}
	}
	flight_unlock(at, key);
}

static __always_inline void rx_data_queue(struct sock *sk, struct sk_buff *skb)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 flags = PF_SLOW;

	if (!flights_any())
		return;
	if (seq_before(BPF_CORE_READ(tp, rcv_nxt), tcp_cb(skb, seq)))
		flags |= PF_OOO;
	follow(address(skb), ST_RX_DATA_QUEUE, flags);
}

/*
 * Data reaches tcp_queue_rcv() without the slow path's functions before it
 * only if header prediction succeeded: TCPHPHits counts exactly these.
 */
static __always_inline void rx_queue(struct sk_buff *skb)
{
	__u64 key = address(skb);
	struct flight *f;
	__u32 at;

	if (!flights_any())
		return;
	at = flight_lock(key);
	if (at == NO_FLIGHT)
		return;
	f = flight_at(at);
	if (f) {
		if ((f->path.flags & (PF_EST | PF_SLOW)) == PF_EST)
			f->path.flags |= PF_FAST;
		flight_mark(f, ST_RX_QUEUE_RCV, bpf_ktime_get_ns());
	}
	flight_unlock(at, key);
}

/* Stages of which the kernel tells only the socket. */
static __always_inline void rx_sock_stage(struct sock *sk, __u32 stage)
{
	__u64 key;

	if (!flights_any())
		return;
	key = sock_rx_packet(sk);
	if (key)
		follow(key, stage, 0);
}

/*
 * Return from tcp_rcv_established().  The packet may be gone and its address
 * taken; but an entry that reached this socket's established processing can
 * only be ours, for we still hold the socket.
 */
static __always_inline void rx_done(struct sock *sk, __u64 key)
{
	struct flight *f;
	__u32 at;

	sock_rx_end(sk);
	if (!flights_any())
		return;
	at = flight_lock(key);
	if (at == NO_FLIGHT)
		return;
	f = flight_at(at);
	if (f && f->sk == address(sk))
		flight_mark(f, ST_RX_DONE, bpf_ktime_get_ns());
	flight_unlock(at, key);
}

#endif
