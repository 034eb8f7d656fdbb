/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TCP's receive decisions, read from its state before it takes them: will
 * header prediction succeed, and why not; what the kernel will count an
 * acknowledgement as; what held waiting data back until now.
 */
#ifndef PATHPROF_RX_TCP_BPF_H
#define PATHPROF_RX_TCP_BPF_H

#include "compat.bpf.h"
#include "config.bpf.h"
#include "parse.bpf.h"
#include "rx.bpf.h"
#include "sock.bpf.h"
#include "tracked.bpf.h"

/*
 * Of the fourth header word as loaded: all but reserved bits and PSH.  One of
 * the four reserved bits is a flag where the kernel has Accurate ECN.
 */
#define HP_BITS		(bpf_core_field_exists(struct tcphdr, ae) ? \
			 0xfffff7f1U : 0xfffff7f0U)
#define HP_FLAGS	0x0000f7f1U
#define HP_WINDOW	0xffff0000U
#define HP_URG		0x00002000U
#define HP_SYN_FIN_RST	0x00000700U
#define HP_LENGTH	0x000000f0U
#define HP_LENGTH_TS	0x00000080U	/* 32 bytes: timestamps agreed */
#define TSQ_THROTTLED	1

/* Why prediction is switched off: what tcp_fast_path_check() asks. */
static __always_inline __u32 prediction_off(struct sock *sk,
					    struct tcp_sock *tp)
{
	__u32 facts = FACT_PRED_OFF;

	if (tp->out_of_order_queue.rb_node)
		facts |= FACT_PRED_OOO;
	if (!tp->rcv_wnd)
		facts |= FACT_PRED_ZERO_WINDOW;
	if (sk->sk_backlog.rmem_alloc.counter >= sk->sk_rcvbuf)
		facts |= FACT_PRED_RCVBUF;
	if (tp->urg_data)
		facts |= FACT_PRED_URGENT;
	if (bpf_core_field_exists(tp->is_mptcp) && tp->is_mptcp)
		facts |= FACT_PRED_MPTCP;
	return facts;
}

/* The reasons against the fast path, as tcp_rcv_established() tests them. */
static __always_inline __u32 unpredicted(struct sock *sk, struct tcp_sock *tp,
					 struct sk_buff *skb, struct tracked_pkt *t)
{
	__u32 pred = tp->pred_flags, differ = (t->tcp_word ^ pred) & HP_BITS;
	__u32 ack = tcp_cb(skb, ack_seq), facts = 0;

	if (!pred) {
		facts = prediction_off(sk, tp);
		if (t->tcp_word & HP_URG)
			facts |= FACT_PRED_URGENT;
		if (t->tcp_word & HP_SYN_FIN_RST)
			facts |= FACT_PRED_SYN_FIN;
	} else if (differ) {
		if (differ & HP_WINDOW)
			facts |= FACT_PRED_WINDOW;
		if (t->tcp_word & HP_URG)
			facts |= FACT_PRED_URGENT;
		else if (t->tcp_word & HP_SYN_FIN_RST)
			facts |= FACT_PRED_SYN_FIN;
		else if ((pred & HP_LENGTH) == HP_LENGTH_TS &&
			 (t->tcp_word & HP_LENGTH) < HP_LENGTH_TS)
			facts |= FACT_PRED_TIMESTAMP;
		else if (differ & HP_FLAGS)
			facts |= FACT_PRED_FLAGS;
	}
	if (tcp_cb(skb, seq) != tp->rcv_nxt)
		facts |= FACT_PRED_SEQ;
	if (seq_before(tp->snd_nxt, ack) ||
	    (old_ack_is_slow() && seq_before(ack, tp->snd_una)))
		facts |= FACT_PRED_ACK;
	/* A header of 32 bytes must be that of a timestamp. */
	if ((t->tcp_word & HP_LENGTH) == HP_LENGTH_TS &&
	    (!t->has_ts || seq_before(t->tsval, tp->rx_opt.ts_recent)))
		facts |= FACT_PRED_TIMESTAMP;
	if (!facts && t->path.flags & PF_DATA &&
	    (int)skb->truesize > sk->sk_forward_alloc)
		facts |= FACT_PRED_MEMORY;
	return facts;
}

/* Older than what came before (RFC 7323 section 5): tcp_paws_discard(). */
static __always_inline bool too_old(struct tcp_sock *tp, struct tracked_pkt *t)
{
	return t->has_ts && (__s32)(tp->rx_opt.ts_recent - t->tsval) > 1;
}

/*
 * How the kernel is about to count this acknowledgement.  It ignores that of a
 * reset.
 */
static __always_inline __u32 ack_class(struct tcp_sock *tp,
				       struct sk_buff *skb, bool fast)
{
	__u32 una = tp->snd_una, ack = tcp_cb(skb, ack_seq);

	if (tcp_cb(skb, tcp_flags) & TCPH_RST)
		return 0;
	if (seq_before(ack, una) || seq_before(tp->snd_nxt, ack))
		return 0;
	if (fast && ack != una)
		return PF_HPACK;
	return tcp_cb(skb, seq) == tcp_cb(skb, end_seq) ? PF_PUREACKS : 0;
}

/* Data waits to be sent while this ACK arrives: for what? */
static __always_inline __u32 held_by(struct sock *sk, struct tcp_sock *tp)
{
	struct sk_buff *head;
	__u32 len, mss = tp->mss_cache;

	if (!sk->sk_write_queue.qlen)
		return 0;
	if (sk->sk_tsq_flags & TSQ_THROTTLED)
		return FACT_HELD_TSQ;
	if (tp->packets_out - tp->sacked_out - tp->lost_out +
	    tp->retrans_out >= tp->snd_cwnd)
		return FACT_HELD_CWND;
	head = sk->sk_write_queue.next;
	len = tcp_cb(head, end_seq) - tcp_cb(head, seq);
	if (seq_before(tp->snd_una + tp->snd_wnd,
		       tcp_cb(head, seq) + (len < mss ? len : mss)))
		return FACT_HELD_RWND;
	return len < mss ? FACT_HELD_NAGLE : FACT_HELD_TSO;
}

/*
 * A packet leaves the backlog, where others may have been joined to it: an
 * ACK carries data now, the window is that of the last.
 */
static __always_inline void rx_from_backlog(struct sk_buff *skb,
					    struct tracked_pkt *t)
{
	__u8 bits = tcp_cb(skb, tcp_flags);
	__u32 end = tcp_cb(skb, end_seq) - (bits & TCPH_FIN) -
		    (bits >> 1 & 1);	/* SYN */

	t->path.flags &= ~(PF_DATA | PF_PURE_ACK);
	t->path.flags |= PF_BACKLOG |
			 tcp_flags_of(bits, end - tcp_cb(skb, seq));
	t->path.facts |= FACT_OWNED;
	t->end_seq = end;
	bpf_probe_read_kernel(&t->tcp_word, sizeof(t->tcp_word),
			      skb->data + 12);
	/* Where its entry is not hooked, it waited since the last stage. */
	if (!config.backlog)
		tracked_mark(t, ST_RX_BACKLOG, t->last_ns);
}

/* What tcp_data_queue() will do with what came before its turn. */
static __always_inline void rx_sequence(struct tcp_sock *tp,
					struct sk_buff *skb,
					struct tracked_pkt *t)
{
	if (t->path.flags & (PF_DATA | PF_FIN) && !too_old(tp, t) &&
	    seq_before(tp->rcv_nxt, tcp_cb(skb, seq)))
		t->path.flags |= PF_OOO;
}

static __always_inline void rx_learn(struct sock *sk, struct tcp_sock *tp,
				     struct sk_buff *skb, struct tracked_pkt *t)
{
	struct net *net = sk->__sk_common.skc_net.net;
	__u32 facts = unpredicted(sk, tp, skb, t);

	t->path.facts |= facts;
	if (!net->ipv4.sysctl_ip_early_demux ||
	    !net->ipv4.sysctl_tcp_early_demux)
		t->path.facts |= FACT_DEMUX_OFF;
	t->path.flags |= PF_EST | (facts ? PF_SLOW : PF_FAST) |
			 ack_class(tp, skb, !facts);
	rx_sequence(tp, skb, t);
}

/* First statement of tcp_rcv_established(). */
static __always_inline void rx_established(struct sock *sk,
					   struct sk_buff *skb)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	__u64 key = address(skb), number = address(sk), now;
	__u32 at = NOT_TRACKED;	/* the compiler keeps it across calls */
	struct sock_work *w;
	struct tracked_pkt *t;

	if (!tp)
		return;
	t = tracked_find(key, &at);
	now = t ? bpf_ktime_get_ns() : 0;
	/* This is work on the packet before, so after this one's clock. */
	if (!config.exits)
		rx_close();
	w = sock_work(number);
	w->rx_key = key;
	w->origin_ns = 0;
	w->hold = held_by(sk, tp);
	if (!config.exits)
		rx_open(key, number);
	if (!t)
		return;
	t->sk = number;
	if (sk->sk_lock.owned)
		rx_from_backlog(skb, t);
	rx_learn(sk, tp, skb, t);
	tracked_mark(t, ST_RX_EST, now);
	if (groups_on || state_on)
		detail_sock(t, number);
	tracked_leave(t);
	tracked_unlock(at, key);
}

/*
 * Only what was not predicted gets here.  If all conditions were met, this
 * kernel asks for something else, too.
 */
static __always_inline void rx_validated(struct sk_buff *skb)
{
	__u64 key = address(skb);
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_find(key, &at);
	if (!t)
		return;
	if (t->path.flags & PF_FAST) {
		if ((t->path.flags & (PF_HPACK | PF_DATA)) == PF_HPACK)
			t->path.flags |= PF_PUREACKS;
		t->path.flags &= ~(PF_FAST | PF_HPACK);
		t->path.flags |= PF_SLOW;
		t->path.facts |= FACT_PRED_OTHER;
	}
	tracked_mark(t, ST_RX_VALIDATE, bpf_ktime_get_ns());
	tracked_unlock(at, key);
}

/* Any other state: opening and closing connections, listeners. */
static __always_inline void rx_state(struct sock *sk, struct sk_buff *skb)
{
	__u64 key = address(skb), number = address(sk);
	__u8 state = sk->__sk_common.skc_state;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct tracked_pkt *t;
	__u32 at;

	/* A listener works on several SYNs at once, and is woken for others. */
	if (state != TCP_LISTEN)
		sock_work(number)->rx_key = key;
	t = tracked_find(key, &at);
	if (!t)
		return;
	t->sk = number;
	if (sk->sk_lock.owned)
		rx_from_backlog(skb, t);
	/* SYN_SENT, CLOSE, LISTEN: no acknowledgement is looked at. */
	if (tp && state != TCP_SYN_SENT && state != TCP_CLOSE &&
	    state != TCP_LISTEN)
		t->path.flags |= ack_class(tp, skb, false);
	/* Others take no data; one that will not read answers with a reset. */
	if (tp && (state == TCP_SYN_RECV ||
		   ((state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2) &&
		    !(sk->sk_shutdown & RCV_SHUTDOWN))))
		rx_sequence(tp, skb, t);
	tracked_mark(t, state == TCP_LISTEN && t->path.flags & PF_SYN ?
		     ST_RX_LISTEN : ST_RX_STATE, bpf_ktime_get_ns());
	tracked_unlock(at, key);
}

/* Return from tcp_rcv_established() or tcp_rcv_state_process(). */
static __always_inline void rx_done(struct sock *sk)
{
	struct sock_work *w = sock_known(address(sk));
	struct tcp_sock *tp;
	__u32 facts = 0;
	__u64 key;

	/* Once: another socket may take the entry meanwhile. */
	key = READ_ONCE(w->rx_key);
	if (!key)
		return;
	w->rx_key = 0;
	w->hold = 0;
	if (!tracked_any())
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	if (tp && tp->inet_conn.icsk_ack.pending & ICSK_ACK_SCHED)
		facts = FACT_ACK_LATER;
	rx_finish(key, w->sk, facts);
}

#endif
