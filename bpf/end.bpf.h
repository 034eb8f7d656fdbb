/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How the path of a packet ends, in either direction: at its last stage, when
 * the kernel frees it, when its address is used again, or when a sampling
 * burst closes.
 */
#ifndef PATHPROF_END_BPF_H
#define PATHPROF_END_BPF_H

#include "compat.bpf.h"
#include "config.bpf.h"
#include "cpu.bpf.h"
#include "path.bpf.h"
#include "tracked.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, DROP_STACKS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, DROP_FRAMES * sizeof(__u64));
} drop_stacks SEC(".maps");

/*
 * Where a packet is dropped.  The stack is only walked for one that is followed,
 * or whose socket TCP has announced it for.
 */
static __always_inline __u64 drop_place(void *ctx, struct sk_buff *skb,
					void *location)
{
	__u64 at = address(location), key = address(skb);
	long id;

	if (!drop_stacks_on || !tracked_any() ||
	    (!skb->sk && tracked_seek(key) == NOT_TRACKED &&
	     tracked_seek(key | KEY_TX) == NOT_TRACKED))
		return at;
	id = bpf_get_stackid(ctx, &drop_stacks, 0);
	return id < 0 ? at :
	       (at & DROP_ADDRESS) | (__u64)(id + 1) << DROP_STACK_SHIFT;
}

/* The last stage of a path. */
__noinline int follow_end(__u64 key, __u32 stage, __u32 end)
{
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_find(key, &at);
	if (!t)
		return 0;
	tracked_mark(t, stage, bpf_ktime_get_ns());
	path_sum(t, end);
	tracked_release(at);
	return 0;
}

/* A sampling burst has ended: packets that have not arrived are cut off. */
static int cut_one(__u32 i, void *unused)
{
	__u64 key;

	(void)unused;
	i &= TRACKED_MAX - 1;
	key = READ_ONCE(tracked_keys[i]);
	if (!key || key & KEY_BUSY || !tracked_claim(i, key))
		return 0;
	path_sum(tracked_at(i), END_CUT);
	tracked_release(i);
	return 0;
}

/*
 * How a packet ended that is followed at `key`, now that a packet of this
 * address enters the stack.  The kernel reports each free, except those by TCP,
 * which never passes a packet on.  So one that TCP has not had is the same
 * packet, which a bridge or a tunnel brings in again.  `again`: this is
 * certain, as it has an input device already.
 *
 * Of the others, one that waited for its reader was spliced, or freed unread.
 * An ACK that TCP has looked at is used up, although TCP's function may have
 * been interrupted and has not returned yet.  Where the hooks do not report
 * when TCP takes a packet, one that only opens or closes a connection is taken
 * for used up.  Nothing reports there what is joined to a packet queued before,
 * which data that disappears mostly was; and of the data that came before the
 * connection was established, only the copy is seen.  The end of any other
 * packet was not seen.
 *
 * Nor do they report, on some kernels, when the reader of a datagram is done with
 * it.  What a tunnel brings in again is shorter than the datagram that it was in,
 * and ends where that ended, or before a trailer.
 */
#define TUNNEL_TRAILER	32	/* WireGuard: a tag of 16 bytes, and padding */

struct rx_extent {
	__u32 length, end;	/* from IP on; from the start of the buffer */
};

static __always_inline struct rx_extent rx_extent(struct sk_buff *skb)
{
	return (struct rx_extent){ skb->len, address(skb->data) -
					     address(skb->head) + skb->len };
}

static __always_inline bool rx_within(const struct tracked_pkt *t,
				      struct rx_extent e)
{
	return t->bytes >= e.length && t->end_seq - e.end <= TUNNEL_TRAILER;
}

/*
 * Has the reader all of the data, though none of it was copied?  splice() does so
 * (tcp_read_sock()).  The socket may be another one by now, whose sequence numbers
 * are elsewhere.
 */
#define READ_SINCE	(1U << 26)	/* bytes */

static __always_inline bool rx_spliced(const struct tracked_pkt *t)
{
	struct tcp_sock *tp = (struct tcp_sock *)t->sk;

	return t->last == ST_RX_DONE && tp &&
	       !(t->path.flags & (PF_UDP | PF_ICMP)) &&
	       BPF_CORE_READ(tp, copied_seq) - t->end_seq < READ_SINCE;
}

static __always_inline __u32 rx_left(const struct tracked_pkt *t, bool again,
				     struct rx_extent e)
{
	bool had = t->sk || t->path.flags & PF_EST;

	if (again)
		return END_REENTERED;
	if (t->last == ST_RX_GRO)
		return END_MERGED;
	if (!config.exits && (t->path.flags & (PF_DATA | PF_UDP | PF_COPIED)) ==
			     PF_DATA)
		return END_COALESCED;
	/* Without data only a FIN waits for a reader, who is not told of it. */
	if (t->last == ST_RX_DONE && !(t->path.flags & (PF_DATA | PF_ICMP)))
		return END_CONSUMED;
	if (stage_waits(t->last))
		return rx_spliced(t) ? END_DELIVERED : END_UNREAD;
	if (!config.exits && t->last == ST_RX_COPY)
		return END_DELIVERED;
	if (!config.exits && t->path.flags & PF_UDP && reads_unreported() &&
	    !rx_within(t, e))
		return END_CONSUMED;
	if (!had && (config.exits || t->path.flags & PF_UDP))
		return END_REENTERED;
	return t->path.flags & PF_PURE_ACK ? END_CONSUMED : END_STALE;
}

/*
 * A packet that enters the stack again does so in the same round of the softirq,
 * or soon after: a round ends after two ticks (netdev_budget_usecs), 8 ms at
 * 250 Hz.  After a longer time it is more likely another packet, and the end of
 * the first was not seen, as when the kernel skipped a hook.
 */
#define AGAIN_NS	8000000

/* End the path of the packet that had this one's address before. */
__noinline int rx_leftover(__u64 key, __u32 again, __u32 length, __u32 last)
{
	struct tracked_pkt *t;
	__u32 at, end;
	__u64 now;

	t = tracked_find(key, &at);
	if (!t)
		return 0;
	end = rx_left(t, again, (struct rx_extent){ length, last });
	/* When any other packet ended was not seen: bill it no work. */
	now = bpf_ktime_get_ns();
	if (end == END_REENTERED)
		tracked_mark(t, ST_RX_AGAIN,
			     again || now - t->last_ns < AGAIN_NS ? now :
								    t->last_ns);
	path_sum(t, end);
	tracked_release(at);
	return 0;
}

/*
 * Of ICMP: what a reader has copied was read, and what its socket still had at
 * close() was not.  ICMP reports if it has used a message, but for ICMPv6 on some
 * kernels, which free all that has no other reason as dropped.
 */
static __always_inline __u32 icmp_ended(const struct tracked_pkt *t, __u32 end,
					__u32 reason)
{
	if (end == END_DROPPED && !reason_is_general(reason))
		return end;
	if (t->path.flags & PF_COPIED)
		return END_DELIVERED;
	if (t->last == ST_RX_DONE)
		return END_UNREAD;
	if (t->last == ST_RX_ICMP && t->path.family == 6 &&
	    !icmpv6_reports_use())
		return END_CONSUMED;
	return end;
}

/*
 * A hook that frees a packet says that it was dropped, or not; for some that is
 * not what happened.  A connection's last packets end as drops without a
 * reason, as does a SYN that is answered once more.  A SYN that a listener
 * refuses ends as if it were used.  What is dropped before the socket's state
 * was looked at is refused, as the ACK of a SYN cookie by a full queue.
 */
static __always_inline __u32 rx_ended(const struct tracked_pkt *t, __u32 end,
				      __u32 reason)
{
	__u32 flags = t->path.flags;

	if (config.icmp && flags & PF_ICMP)
		return icmp_ended(t, end, reason);
	if (end == END_DROPPED && reason_is_general(reason) &&
	    !(flags & PF_DATA) &&
	    (t->last == ST_RX_TIMEWAIT ||
	     (t->last == ST_RX_REQUEST ? !!(flags & PF_SYN) :
	      t->sk && t->last != ST_RX_SOCK && t->last != ST_RX_DO_RCV &&
	      !(flags & PF_UDP))))
		return END_CONSUMED;
	if (end == END_DROPPED && reason_is_general(reason) &&
	    flags & PF_DATA && t->last == ST_RX_DONE)
		return END_UNREAD;
	if (end != END_CONSUMED)
		return end;
	if (config.synacks && t->last == ST_RX_LISTEN)
		return END_DROPPED;
	/* The copy of a UDP packet that is in one piece is not seen. */
	if (flags & PF_DATA)
		return flags & (PF_COPIED | PF_UDP) ? END_DELIVERED :
						      END_UNREAD;
	return end;
}

/*
 * Dropped while the driver's call has not returned: by that call, on its CPU?
 * Once a receiver has the packet, `entered`, it has an input device.
 */
static __always_inline bool by_driver(const struct tracked_pkt *t, __u32 end,
				      bool entered)
{
	return end == END_DROPPED && !entered &&
	       t->cpu == bpf_get_smp_processor_id();
}

/* Where a dropped packet is from, as far as its buffer tells. */
#define FROM_DEVICE	1	/* a receiver has it */
#define FROM_HERE	2	/* this host made it: ICMP, or no IP at all */

static __always_inline __u32 packet_from(struct sk_buff *skb)
{
	bool v4 = skb->protocol == bpf_htons(ETH_P_IP);
	__u8 proto = 0;

	if (skb->skb_iif || config.exits || !tracked_any())
		return skb->skb_iif ? FROM_DEVICE : 0;
	if (!v4 && skb->protocol != bpf_htons(ETH_P_IPV6))
		return FROM_HERE;
	if (bpf_probe_read_kernel(&proto, 1, skb->head + skb->network_header +
					     (v4 ? 9 : 6)))
		return 0;
	return proto == (v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6) ? FROM_HERE : 0;
}

/*
 * Where the hooks do not report when TCP takes a packet, its entry may wait for
 * long, and another packet has its address meanwhile.  One that this host made has
 * no input device; a forwarded packet that a tunnel or veth has scrubbed has none
 * either, but it goes on at once.  See AGAIN_NS.
 */
static __always_inline bool of_another(const struct tracked_pkt *t, __u32 end,
				       __u32 from)
{
	if (config.exits || end != END_DROPPED || from & FROM_DEVICE)
		return false;
	return from & FROM_HERE ||
	       (t->last != ST_RX_GRO &&
		bpf_ktime_get_ns() - t->last_ns >= AGAIN_NS);
}

/*
 * GRO may deliver the packet that it has merged this one into before its call
 * returns.  A device that splits it frees both, and reports a drop without a
 * reason.  What the backlog of RPS refuses within the call has a reason.
 */
static __always_inline bool rx_in_merge(const struct tracked_pkt *t, __u64 key,
					__u32 end, __u32 reason)
{
	struct cpu_work *c;

	if (t->last != ST_RX_GRO ||
	    (end != END_CONSUMED && !reason_is_general(reason)))
		return false;
	c = cpu_work();
	return c && c->gro_key == key;
}

/* The stage that goes with an end which the kernel reports. */
static __always_inline __u32 rx_end_stage(__u32 end)
{
	return end == END_DROPPED ? ST_DROP :
	       end == END_MERGED ? ST_RX_MERGED :
	       end == END_COALESCED ? ST_RX_COALESCED : ST_RX_FREE;
}

/* A received packet was freed: its locked entry ends. */
static __always_inline void rx_freed(struct tracked_pkt *t, __u32 at, __u64 key,
				     __u32 end, __u32 reason, __u64 location)
{
	if (rx_in_merge(t, key, end, reason))
		end = END_MERGED;
	/* Refused before its acknowledgement was looked at? */
	if (end == END_DROPPED && !reason_is_general(reason))
		t->path.flags &= ~(PF_HPACK | PF_PUREACKS);
	/* It never reached the queue of what is out of order. */
	if (end == END_DROPPED && reason_is_window(reason))
		t->path.flags &= ~PF_OOO;
	end = rx_ended(t, end, reason);
	if (end == END_DROPPED) {
		t->path.reason = reason;
		t->path.location = location;
	}
	tracked_mark(t, rx_end_stage(end), bpf_ktime_get_ns());
	path_sum(t, end);
	tracked_release(at);
}

/*
 * Unlock the entry of a packet that waits for a reader.  If that has read and
 * freed the packet meanwhile, on another CPU, end the path.
 */
__noinline int rx_yield(__u64 key, __u32 at)
{
	__u32 end = tracked_yield(at, key);

	if (end)
		rx_freed(tracked_at(at), at, key, end, 0, 0);
	return 0;
}

/*
 * A packet is freed, or its data joined to another.  Until the driver has it,
 * the packet is the sender's.  If there is a receiver's entry as well, TCP has
 * freed that packet on another CPU, in a function that has not returned yet.
 * From then on it is the receiver's (or the driver's), and the return of the
 * driver's call ends the sender's path.  location: of the call that drops it;
 * from: see packet_from().
 */
__noinline int packet_end(__u64 key, __u32 end, __u32 reason, __u64 location,
			  __u32 from)
{
	struct tracked_pkt *t;
	int sent = 0;
	__u32 at;

	if (!tracked_any())
		return 0;
	/* Only a receiver joins data. */
	at = end == END_COALESCED ? NOT_TRACKED : tracked_seek(key | KEY_TX);
	if (at == NOT_TRACKED)
		goto received;
	t = tracked_at(at);
	if (READ_ONCE(t->last) == ST_TX_START &&
	    !by_driver(t, end, from & FROM_DEVICE)) {
		sent = 1;
		goto received;
	}
	if (!tracked_claim(at, key | KEY_TX))
		goto received;
	if (end == END_DROPPED) {
		t->path.reason = reason;
		t->path.location = location;
	} else if (t->segments > 1) {
		/* A GSO skb gave way to its segments. */
		end = END_SPLIT;
		t->path.facts |= FACT_SPLIT;
	} else {
		end = END_FREED;
	}
	tracked_mark(t, end == END_DROPPED ? ST_DROP : ST_TX_FREE,
		     bpf_ktime_get_ns());
	path_sum(t, end);
	tracked_release(at);
	return 1;

received:
	at = tracked_lock(key);
	if (at == NOT_TRACKED)
		return sent;
	t = tracked_at(at);
	if (of_another(t, end, from)) {
		tracked_unlock(at, key);
		return sent;
	}
	rx_freed(t, at, key, end, reason, location);
	return 1;
}

/*
 * The reader of a datagram is done with it.  One that only peeked holds one
 * reference of several.  From 6.18 on no tracepoint reports that the reader
 * freed it (skb_attempt_defer_free()).  The CPU that queued it may still note
 * that it woke the reader.
 */
static __always_inline void udp_read(struct sk_buff *skb)
{
	__u64 key = address(skb);

	if (skb->users.refs.counter != 1 || !tracked_any())
		return;
	packet_end(key, END_CONSUMED, 0, 0, FROM_DEVICE);
	if (tracked_hand(key, END_CONSUMED))
		packet_end(key, END_CONSUMED, 0, 0, FROM_DEVICE);
}

#endif
