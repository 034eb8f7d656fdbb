/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The transmit side.  A packet is chosen where TCP builds its header; what
 * led there (a write, an ACK, a timer) is taken from the socket's entry, and
 * the clone that IP gets is what is followed to the driver.
 */
#ifndef PATHPROF_TX_BPF_H
#define PATHPROF_TX_BPF_H

#include "rx.bpf.h"

static __always_inline void tx_write(struct sock *sk)
{
	struct sock_work *w = sock_work(sk);

	w->origin = ST_TX_WRITE;
	w->push = 0;
	w->origin_ns = sample_next() ? bpf_ktime_get_ns() : 0;
}

static __always_inline void tx_push(struct sock *sk, __u8 stage)
{
	struct sock_work *w = sock_work(sk);

	/* tcp_release_cb() never pushes: somebody else is at work. */
	if (w->origin == ST_TX_RELEASE)
		w->origin = 0;
	w->push = stage;
}

static __always_inline void tx_xmit(struct sock *sk)
{
	struct sock_work *w = sock_work(sk);

	/* tcp_push*() call tcp_write_xmit() at once: the mark is used up. */
	w->xmit = w->push ? w->push : ST_TX_XMIT;
	w->push = 0;
	w->retrans = 0;
	w->xmit_ns = sample_next() ? bpf_ktime_get_ns() : 0;
}

static __always_inline void tx_retransmit(struct sock *sk)
{
	struct sock_work *w = sock_work(sk);

	w->retrans = 1;
	w->xmit = 0;
}

static __always_inline void tx_transmit(struct sock *sk, struct sk_buff *skb)
{
	struct sock_work *w = sock_work(sk);
	__u32 bytes = skb->len;

	if (w->pending) {
		count(CN_ABANDONED);
		w->pending = 0;
	}
	if (!sample_due())
		return;
	if (!filter_sock(sk)) {
		count(CN_FILTERED);
		return;
	}
	count(CN_SAMPLED);
	w->flags = tcp_flags_of(tcp_cb(skb, tcp_flags), bytes);
	w->bytes = bytes;
	w->segments = bytes ? tcp_cb(skb, tcp_gso_segs) : 1;
	if (!w->segments)
		w->segments = 1;
	w->transmit_ns = bpf_ktime_get_ns();
	w->pending = 1;
}

static __always_inline void tx_add(struct flight *f, __u8 stage, __u64 now)
{
	/* Stages passed before the choice was made have no clock reading. */
	if (!now)
		f->last_ns = 0;
	else if (!f->last_ns)
		f->last_ns = now;
	if (!f->last_ns) {
		f->path.stages[f->path.n & (PATH_STAGES - 1)] = stage;
		f->path.n++;
		return;
	}
	flight_mark(f, stage, now);
}

/* What happened before TCP built the header. */
static __always_inline void tx_history(struct flight *f, struct sock_work *w)
{
	bool carries = w->flags & (PF_DATA | PF_SYN | PF_FIN);

	if (carries && w->retrans) {
		f->path.flags |= PF_RETRANS;
		tx_add(f, ST_TX_RETRANS, 0);
		w->retrans = 0;
	} else if (carries && w->xmit) {
		if (w->origin)
			tx_add(f, w->origin, w->origin_ns);
		if (w->xmit != ST_TX_XMIT)
			tx_add(f, w->xmit, w->xmit_ns);
		tx_add(f, ST_TX_XMIT, w->xmit_ns);
		/* Later packets of the loop did not cost this again. */
		w->origin_ns = 0;
		w->xmit_ns = 0;
	}
	tx_add(f, ST_TX_TRANSMIT, w->transmit_ns);
}

/* IP gets the packet: from here on it has the address it will keep. */
static __always_inline void tx_ip(struct sock *sk, struct sk_buff *skb,
				  __u8 family)
{
	struct sock_work *w = sock_work(sk);
	__u64 key = address(skb) | KEY_TX;
	struct flight *f;
	__u32 at;

	follow_end(key, ST_TX_IP, END_STALE);
	if (!w->pending)
		return;
	w->pending = 0;
	at = flight_new(key);
	if (at == NO_FLIGHT)
		return;
	f = flight_at(at);
	if (f) {
		flight_init(f, DIR_TX);
		f->path.flags = w->flags;
		f->path.family = family;
		f->bytes = w->bytes;
		f->segments = w->segments;
		if (f->segments > 1)
			f->path.flags |= PF_SUPER;
		tx_history(f, w);
		flight_mark(f, ST_TX_IP, bpf_ktime_get_ns());
	}
	flight_unlock(at, key);
}

static __always_inline void tx_sent(struct sk_buff *skb, int rc)
{
	if (rc == NETDEV_TX_BUSY)
		follow(address(skb) | KEY_TX, ST_TX_BUSY, 0);
	else
		follow_end(address(skb) | KEY_TX, ST_TX_SENT, END_SENT);
}

/*
 * A packet is freed, or its data joined to another.  The sender's entry is
 * left alone once the driver has the packet: then it is the receiver (or the
 * driver) that frees it, and the driver call's return ends the path.
 */
__noinline int packet_end(__u64 key, __u32 rx_stage, __u32 end,
				 __u32 reason)
{
	struct flight *f;
	__u32 at;

	if (!flights_any())
		return 0;
	at = flight_lock(key);
	if (at != NO_FLIGHT) {
		f = flight_at(at);
		if (f) {
			f->path.reason = reason;
			if (end == END_CONSUMED && f->path.flags & PF_DATA)
				end = f->path.flags & PF_COPIED ?
				      END_DELIVERED : END_UNREAD;
			flight_mark(f, rx_stage, bpf_ktime_get_ns());
			flight_sum(at, end);
		}
		flight_release(at);
		return 0;
	}
	key |= KEY_TX;
	at = flight_lock(key);
	if (at == NO_FLIGHT)
		return 0;
	f = flight_at(at);
	if (f && flight_last(f) == ST_TX_START) {
		flight_unlock(at, key);
		return 0;
	}
	if (f) {
		f->path.reason = reason;
		flight_mark(f, rx_stage == ST_DROP ? ST_DROP : ST_TX_FREE,
			    bpf_ktime_get_ns());
		flight_sum(at, rx_stage == ST_DROP ? END_DROPPED : END_FREED);
	}
	flight_release(at);
	return 0;
}

#endif
