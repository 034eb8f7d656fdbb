/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How the path of a packet ends, in either direction: at its last stage, when
 * the kernel frees it, when its address is used again, or when a sampling
 * burst closes.
 */
#ifndef PATHPROF_END_BPF_H
#define PATHPROF_END_BPF_H

#include "compat.bpf.h"
#include "path.bpf.h"
#include "tracked.bpf.h"

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
	if (!key || key & KEY_BUSY ||
	    __sync_val_compare_and_swap(&tracked_keys[i], key,
					key | KEY_BUSY) != key)
		return 0;
	path_sum(tracked_at(i), END_CUT);
	tracked_release(i);
	return 0;
}

/*
 * How a packet ended if another packet has its address now.  One that waited
 * for its reader was freed unread, or spliced.  An ACK that TCP has looked at
 * is used up, although TCP's function was interrupted and has not returned
 * yet.  The end of any other packet was not seen.
 */
static __always_inline __u32 rx_left(const struct tracked_pkt *t)
{
	if (stage_waits(t->last))
		return END_UNREAD;
	return t->last == ST_RX_EST && t->path.flags & PF_PURE_ACK ?
	       END_CONSUMED : END_STALE;
}

static __always_inline void rx_leftover(__u64 key)
{
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_find(key, &at);
	if (!t)
		return;
	path_sum(t, rx_left(t));
	tracked_release(at);
}

/*
 * A packet is freed, or its data joined to another.  Until the driver has it,
 * the packet is the sender's.  If there is a receiver's entry as well, TCP has
 * freed that packet on another CPU, in a function that has not returned yet.
 * From then on it is the receiver's (or the driver's), and the return of the
 * driver's call ends the sender's path.
 */
__noinline int packet_end(__u64 key, __u32 rx_stage, __u32 end, __u32 reason)
{
	struct tracked_pkt *t;
	int sent = 0;
	__u32 at;

	if (!tracked_any())
		return 0;
	at = tracked_lock(key | KEY_TX);
	if (at == NOT_TRACKED)
		goto received;
	t = tracked_at(at);
	if (t->last == ST_TX_START) {
		tracked_unlock(at, key | KEY_TX);
		sent = 1;
		goto received;
	}
	t->path.reason = reason;
	/* A GSO skb that is not dropped gave way to its segments. */
	if (rx_stage != ST_DROP && t->segments > 1)
		t->path.facts |= FACT_SPLIT;
	tracked_mark(t, rx_stage == ST_DROP ? ST_DROP : ST_TX_FREE,
		    bpf_ktime_get_ns());
	path_sum(t, rx_stage == ST_DROP ? END_DROPPED : END_FREED);
	tracked_release(at);
	return 1;

received:
	at = tracked_lock(key);
	if (at == NOT_TRACKED)
		return sent;
	t = tracked_at(at);
	t->path.reason = reason;
	/* The copy of a UDP packet that is in one piece is not seen. */
	if (end == END_CONSUMED && t->path.flags & PF_DATA)
		end = t->path.flags & (PF_COPIED | PF_UDP) ?
		      END_DELIVERED : END_UNREAD;
	/* Refused before its acknowledgement was looked at? */
	if (end == END_DROPPED && !reason_is_general(reason))
		t->path.flags &= ~(PF_HPACK | PF_PUREACKS);
	tracked_mark(t, rx_stage, bpf_ktime_get_ns());
	path_sum(t, end);
	tracked_release(at);
	return 1;
}

/*
 * The reader of a datagram is done with it.  One that only peeked holds one
 * reference of several.  From 6.18 on no tracepoint reports that the reader
 * freed it (skb_attempt_defer_free()).
 */
static __always_inline void udp_read(struct sk_buff *skb)
{
	if (skb->users.refs.counter == 1)
		packet_end(address(skb), ST_RX_FREE, END_CONSUMED, 0);
}

#endif
