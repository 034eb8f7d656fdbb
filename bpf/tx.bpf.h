/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The transmit side.  A packet is chosen where TCP builds its header.  The
 * cause (a write, an ACK, a timer) follows from the socket's state, and the
 * clone that the device gets is followed to the driver.  Packets without such
 * a beginning (answers of no socket, UDP, or all if that function is not
 * hooked) are chosen where the device layer gets them.
 */
#ifndef PATHPROF_TX_BPF_H
#define PATHPROF_TX_BPF_H

#include "capture.bpf.h"
#include "compat.bpf.h"
#include "config.bpf.h"
#include "end.bpf.h"
#include "event.bpf.h"
#include "filter.bpf.h"
#include "owner.bpf.h"
#include "parse.bpf.h"
#include "path.bpf.h"
#include "pcap.bpf.h"
#include "sample.bpf.h"
#include "sock.bpf.h"
#include "tracked.bpf.h"

static __always_inline void tx_write(struct sock *sk)
{
	struct sock_work *w;

	if (!sample_next())
		return;
	w = sock_work(address(sk));
	w->origin = ST_TX_WRITE;
	w->origin_ns = bpf_ktime_get_ns();
}

/*
 * Is this ACK the delayed ACK timer's?  It has just cleared its own bit.  With
 * data out of order, it is the one that compresses SACKs.
 */
static __always_inline bool ack_was_late(struct tcp_sock *tp)
{
	__u8 pending = tp->inet_conn.icsk_ack.pending;

	return pending & ICSK_ACK_SCHED && !(pending & ICSK_ACK_TIMER) &&
	       !tp->out_of_order_queue.rb_node;
}

/* The cause of this packet, as a stage id; sets facts that go with it. */
static __always_inline __u32 tx_origin(struct sock *sk, struct tcp_sock *tp,
				       struct sock_work *w, __u32 bytes)
{
	if (w->rx_key) {
		w->facts |= bytes ? w->hold : 0;
		return ST_TX_ACKED;
	}
	if (!sk->sk_lock.owned) {
		if (!bytes) {
			if (ack_was_late(tp))
				w->facts |= FACT_ACK_TIMER;
			return ST_TX_TIMER;
		}
		if (w->flags & PF_RETRANS ||
		    tp->inet_conn.icsk_pending == ICSK_TIME_LOSS_PROBE)
			return ST_TX_TIMER;
		w->facts |= FACT_HELD_TSQ;
		return ST_TX_TSQ;
	}
	if (bytes)
		return ST_TX_WRITE;
	if (!acks_deferred() && ack_was_late(tp))
		w->facts |= FACT_ACK_TIMER;
	else if (!(w->flags & (PF_SYN | PF_FIN | PF_RST)))
		w->facts |= FACT_ACK_WINDOW;
	return ST_TX_READER;
}

/* An IPv6 socket's peer may be an IPv4 one, ::ffff:a.b.c.d. */
static __always_inline __u8 tx_family(struct sock *sk)
{
	__u32 *peer = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32;

	if (sk->__sk_common.skc_family != AF_INET6)
		return 4;
	return !peer[0] && !peer[1] && peer[2] == bpf_htonl(0xffff) ? 4 : 6;
}

static __always_inline void tx_transmit(struct sock *sk, struct sk_buff *skb)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	__u32 bytes = skb->len, seq, at;
	struct tracked_pkt *t;
	struct sock_work *w;
	__u64 now, key;

	if (!tp || tracked_frozen())
		return;
	w = sock_work(address(sk));
	now = w->origin_ns ? bpf_ktime_get_ns() : 0;
	if (w->pending) {
		count(CN_ABANDONED);
		w->pending = 0;
	}
	/*
	 * The packet in hand is answered at once.  Its key is read once: another
	 * socket may take the entry meanwhile, and unlocking writes the key.
	 */
	key = READ_ONCE(w->rx_key);
	t = bytes ? NULL : tracked_of(key, w->sk, &at);
	if (t) {
		t->path.facts |= FACT_ACK_NOW;
		tracked_unlock(at, key);
	}
	if (!sample_due(DIR_TX))
		return;
	w->unmatched = !filter_sock(sk);
	if (!filter_owner(sk) || (w->unmatched && !nat_on)) {
		count(CN_FILTERED);
		return;
	}
	count(CN_SAMPLED);
	seq = tcp_cb(skb, seq);
	w->facts = 0;
	w->bytes = bytes;
	w->segments = bytes ? tcp_cb(skb, tcp_gso_segs) : 1;
	if (!w->segments)
		w->segments = 1;
	w->flags = tcp_flags_of(tcp_cb(skb, tcp_flags), bytes);
	if (seq_before(seq, tp->snd_nxt)) {
		if (bytes || w->flags & (PF_SYN | PF_FIN))
			w->flags |= PF_RETRANS;
		else
			w->flags |= PF_PROBE;
	}
	at = tx_origin(sk, tp, w, bytes);
	w->family = tx_family(sk);
	w->transmit_ns = bpf_ktime_get_ns();
	/*
	 * A write's clock counts for the first packet it sends; pathprof's
	 * work here is not the write's time.
	 */
	if (at != ST_TX_WRITE || w->origin != ST_TX_WRITE)
		w->origin_ns = 0;
	else if (w->origin_ns)
		w->origin_ns += w->transmit_ns - now;
	w->origin = at;
	w->pending = 1;
}

/*
 * The data stored when TCP sent the packet becomes the beginning of its path;
 * from here on it has the address it will keep.  The caller unlocks the entry.
 */
static __always_inline struct tracked_pkt *tx_claim(__u32 at, struct sock_work *w,
					       __u32 stage)
{
	__u64 begin = w->origin_ns ? w->origin_ns : w->transmit_ns;
	struct tracked_pkt *t = tracked_at(at);

	tracked_init(t, DIR_TX, w->origin, begin);
	if (w->flags & PF_RETRANS)
		tracked_mark(t, ST_TX_RETRANS, begin);
	tracked_mark(t, ST_TX_TRANSMIT, w->transmit_ns);
	w->origin_ns = 0;
	t->path.flags = w->flags;
	t->path.facts = w->facts;
	t->path.family = w->family;
	t->bytes = w->bytes;
	t->segments = w->segments;
	t->sk = w->sk;
	t->unmatched = w->unmatched;
	if (t->segments > 1)
		t->path.flags |= PF_SUPER;
	if ((config.ifindex || pcap_length) && stage != ST_TX_DEV)
		t->undecided = 1;
	tracked_mark(t, stage, bpf_ktime_get_ns());
	return t;
}

/*
 * End the path of the packet that had this one's address before.  One that the
 * driver got was freed by its receiver, and the driver's call, on another CPU,
 * has not returned yet.  How any other one ended was not seen.
 */
__noinline int tx_leftover(__u64 key)
{
	struct tracked_pkt *t;
	__u32 at, end;

	t = tracked_find(key, &at);
	if (!t)
		return 0;
	end = END_STALE;
	if (t->last == ST_TX_START) {
		end = t->path.dir == DIR_RX ? END_FORWARDED : END_SENT;
		tracked_mark(t, ST_TX_SENT, bpf_ktime_get_ns());
	}
	path_sum(t, end);
	tracked_release(at);
	return 0;
}

/* Take up a packet that TCP announced: its entry, locked; NULL without room. */
static __always_inline struct tracked_pkt *tx_take(__u64 key, struct sock_work *w,
					      __u32 stage, __u32 *at)
{
	tx_leftover(key);
	*at = tracked_new(key);
	return *at == NOT_TRACKED ? NULL : tx_claim(*at, w, stage);
}

/*
 * The entry of this packet's socket if TCP announced a packet of it; taken at
 * most once.  What came in is not the announced one: veth leaves an earlier
 * packet its socket, and a bridge sends that on while TCP builds the next.
 */
static __always_inline struct sock_work *tx_announced(struct sock *sk,
						      struct sk_buff *skb)
{
	struct sock_work *w;

	if (!config.transmits || !sk || skb->skb_iif)
		return NULL;
	w = sock_known(address(sk));
	if (!w->pending)
		return NULL;
	w->pending = 0;
	return w;
}

/* IP gets the packet (only with --fine; else the device is the first). */
static __always_inline void tx_ip(struct sock *sk, struct sk_buff *skb)
{
	__u64 key = address(skb) | KEY_TX;
	struct sock_work *w;
	struct tracked_pkt *t;
	__u32 at;

	if (tracked_frozen())
		return;
	w = tx_announced(sk, skb);
	if (!w) {
		tx_leftover(key);
		return;
	}
	t = tx_take(key, w, ST_TX_IP, &at);
	if (!t)
		return;
	if (events_on) {
		event_socket(t, address(sk), address(skb->data));
		tracked_leave(t);
	}
	tracked_unlock(at, key);
}

/* Chosen at the device: begin with what the headers contain. */
static __always_inline void tx_begin(struct tracked_pkt *t, struct sk_buff *skb,
				     struct headers *h)
{
	tracked_init(t, DIR_TX, ST_TX_DEV, 0);
	t->path.flags = h->flags;
	t->path.family = h->family;
	t->bytes = h->payload;
	t->unmatched = h->unmatched;
	if (!skb->data_len)
		return;
	t->segments = gso_segments(skb);
	if (t->segments > 1)
		t->path.flags |= PF_SUPER;
}

/* Is a packet without an announcement for us to choose? */
static __always_inline bool tx_unannounced(struct sk_buff *skb)
{
	struct sock *sk = skb->sk;
	__u8 state;

	/* IPv6's answers of no socket have none; what is forwarded came in. */
	if (!sk)
		return !skb->skb_iif;
	state = sk->__sk_common.skc_state;
	if (!config.transmits || state == TCP_NEW_SYN_RECV)
		return true;
	/* The kernel's own socket for IPv4's: never connects. */
	return sk->sk_protocol != IPPROTO_TCP || state == TCP_CLOSE ||
	       state == TCP_LISTEN;
}

/* Is this SYN-ACK another than the request's first? */
static __always_inline bool synack_again(struct sock *sk, struct sk_buff *skb)
{
	struct tcp_request_sock *req = (struct tcp_request_sock *)sk;

	return BPF_CORE_READ(req, snt_synack) != skb->skb_mstamp_ns / 1000;
}

/* Followed already: from IP on, or a device above this one had it before. */
static __always_inline bool tx_again(__u64 key, struct sk_buff *skb)
{
	struct tracked_pkt *t;
	__u32 at;

	if (!tracked_any())
		return false;
	at = tracked_lock(key);
	if (at == NOT_TRACKED)
		return false;
	t = tracked_at(at);
	if ((config.ifindex || pcap_length) && t->undecided) {
		if (!filter_dev(skb->dev) || !pcap_match_tx(skb)) {
			disown(t);
			tracked_release(at);
			return true;
		}
		t->undecided = 0;
	}
	tracked_mark(t, ST_TX_DEV, bpf_ktime_get_ns());
	tracked_unlock(at, key);
	return true;
}

/*
 * A received packet is sent on: from here on it is found as a sent one, and its
 * path goes on.  A device may have sent it to this host before: if that call
 * has not returned, the packet has left it all the same.
 */
static __always_inline bool tx_forward(__u64 received)
{
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_find(received, &at);
	if (!t)
		return false;
	tracked_mark(t, ST_TX_DEV, bpf_ktime_get_ns());
	follow_end(received | KEY_TX, ST_TX_SENT, END_SENT);
	tracked_unlock(at, received | KEY_TX);
	return true;
}

/* A whole socket of TCP, and no request or time-wait. */
static __always_inline bool is_connection(struct sock *sk)
{
	__u8 state = sk->__sk_common.skc_state;

	return state != TCP_NEW_SYN_RECV && state != TCP_TIME_WAIT &&
	       sk->sk_protocol == IPPROTO_TCP;
}

static __always_inline void tx_capture(struct tracked_pkt *t,
				       struct sk_buff *skb)
{
	__u32 skip = ahead_of_data(skb, skb->network_header);

	if (capture && skip <= 64)
		capture_bytes(t, address(skb->head) + skb->network_header,
			      skb->len - skb->data_len - skip,
			      skb->len - skip);
}

/* The device layer gets the packet: it has the address it will keep. */
static __always_inline void tx_dev(struct sk_buff *skb)
{
	__u64 key = address(skb) | KEY_TX;
	struct sock *sk = skb->sk;
	struct headers h = {};
	struct sock_work *w;
	struct tracked_pkt *t;
	__u32 at;

	if (tracked_frozen())
		return;
	w = tx_announced(sk, skb);
	/* TCP did not know the device, and had no headers. */
	if (w && ((config.ifindex && !filter_dev(skb->dev)) ||
		  !pcap_match_tx(skb))) {
		disown(NULL);
		return;
	}
	if (!w) {
		if ((skb->skb_iif && tx_forward(address(skb))) ||
		    tx_again(key, skb) || !tx_unannounced(skb) ||
		    !sample_due(DIR_TX))
			return;
		if (!filter_dev(skb->dev) ||
		    (config.by_owner && (!sk || !owner_matches(sk)))) {
			count(CN_FILTERED);
			return;
		}
		if (!parse_tx(skb, &h))
			return;
		if (!pcap_match_tx(skb)) {
			count(CN_FILTERED);
			return;
		}
		count(CN_SAMPLED);
	}
	if (w) {
		t = tx_take(key, w, ST_TX_DEV, &at);
		if (!t)
			return;
		if (groups_on || state_on)
			detail_begin(t, skb->dev, port_of(sk));
	} else {
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
		tracked_leave(t);
	}
	if ((groups_on || state_on) && sk && is_connection(sk)) {
		detail_sock(t, address(sk));
		tracked_leave(t);
	}
	if (events_on) {
		event_headers(t, address(skb->head) + skb->network_header,
			      address(skb->dev));
		tx_capture(t, skb);
		tracked_leave(t);
	}
	if (t->segments > 1 &&
	    !(skb->dev->features & (NETIF_F_TSO | NETIF_F_TSO6)))
		t->path.facts |= FACT_TSO_OFF;
	tracked_unlock(at, key);
}

/*
 * In a queue.  One without a lock may have given the packet to the driver, on
 * another CPU, before this is reported.
 */
static __always_inline void tx_queued(__u64 key)
{
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_find(key, &at);
	if (!t)
		return;
	if (t->last != ST_TX_START) {
		t->path.facts |= FACT_QUEUED;
		tracked_mark(t, ST_TX_ENQUEUE, bpf_ktime_get_ns());
	}
	tracked_unlock(at, key);
}

/* The driver gets the packet.  What it drops in this call, it drops here. */
static __always_inline void tx_start(__u64 key)
{
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_find(key, &at);
	if (!t)
		return;
	t->cpu = bpf_get_smp_processor_id();
	tracked_mark(t, ST_TX_START, bpf_ktime_get_ns());
	tracked_unlock(at, key);
}

/*
 * What the driver's call returned, NETDEV_TX_*, NET_XMIT_* or an error, for the
 * locked entry `at` of `key`.
 */
static __always_inline void tx_returned(struct tracked_pkt *t, __u32 at,
					__u64 key, int rc)
{
	__u32 end;

	if (rc == NETDEV_TX_BUSY) {
		tracked_mark(t, ST_TX_BUSY, bpf_ktime_get_ns());
		tracked_unlock(at, key);
		return;
	}
	if (!rc || rc == NET_XMIT_CN) {
		end = t->path.dir == DIR_RX ? END_FORWARDED : END_SENT;
		tracked_mark(t, ST_TX_SENT, bpf_ktime_get_ns());
	} else {
		end = END_DROPPED;
		t->path.reason = bpf_core_enum_value(enum skb_drop_reason,
					SKB_DROP_REASON_NOT_SPECIFIED);
		tracked_mark(t, ST_DROP, bpf_ktime_get_ns());
	}
	path_sum(t, end);
	tracked_release(at);
}

/*
 * The driver's call has returned.  If the packet is not at the driver any more,
 * it is on another device of this host, or in a queue of a lower one.  Its
 * receiver may have freed it, too: what another CPU gave to its driver is
 * another packet.
 */
static __always_inline void tx_sent(__u64 key, int rc)
{
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_in(key, ST_TX_START, &at);
	if (!t || READ_ONCE(t->cpu) != bpf_get_smp_processor_id())
		return;
	if (tracked_claim(at, key))
		tx_returned(t, at, key, rc);
}

/* Dropped between TCP and the device: its announcement ends here. */
static __always_inline void tx_dropped(struct sk_buff *skb, __u32 reason,
				       __u64 location)
{
	struct sock *sk = skb->sk;
	struct sock_work *w;
	struct tracked_pkt *t;
	__u32 at;

	if (tracked_frozen())
		return;
	w = tx_announced(sk, skb);
	if (!w)
		return;
	at = tracked_new(address(skb) | KEY_TX);
	if (at == NOT_TRACKED)
		return;
	t = tx_claim(at, w, ST_DROP);
	t->path.reason = reason;
	t->path.location = location;
	if (events_on)
		event_socket(t, address(sk), 0);
	path_sum(t, END_DROPPED);
	tracked_release(at);
}

#endif
