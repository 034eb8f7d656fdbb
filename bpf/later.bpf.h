/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * With --stages and --udp, or its group icmp: the fragments after the first.
 * They have no header of TCP, UDP or ICMP and no path, but an entry without a
 * direction, so that each is counted once.  A tunnel over UDP wraps each of them,
 * and what it sends is no packet of its own.
 */
#ifndef PATHPROF_LATER_BPF_H
#define PATHPROF_LATER_BPF_H

#include "compat.bpf.h"
#include "config.bpf.h"
#include "event.bpf.h"
#include "extensions.bpf.h"
#include "path.bpf.h"
#include "tracked.bpf.h"

#define IP4_HEADER	20

/* One is met at this stage: no path, and no account, only the counter. */
__noinline int later_begin(__u64 key, __u32 stage)
{
	struct tracked_pkt *t;
	__u32 at;

	if (!config.stack || (!config.udp && !config.icmp))
		return 0;
	at = tracked_new(key);
	if (at == NOT_TRACKED) {
		/* The loss is in the account. */
		count(CN_SAMPLED);
		return 0;
	}
	t = tracked_at(at);
	tracked_init(t, DIR_NONE, stage, bpf_ktime_get_ns());
	t->path.flags = PF_UDP | PF_DATA;
	tracked_unlock(at, key);
	return 0;
}

/* A fragment of these, and not the first, whose data begins at IP? */
static __always_inline bool later_fragment(struct sk_buff *skb)
{
	__u32 linear = skb->len - skb->data_len;
	__u8 ip[IP4_HEADER];

	if (linear < IP4_HEADER ||
	    bpf_probe_read_kernel(ip, sizeof(ip), skb->data))
		return false;
	if (skb->protocol == bpf_htons(ETH_P_IP))
		return ((ip[6] & 0x1f) || ip[7]) &&
		       (ip[9] == IPPROTO_TCP || ip[9] == IPPROTO_UDP ||
			(config.icmp && ip[9] == IPPROTO_ICMP));
	return skb->protocol == bpf_htons(ETH_P_IPV6) &&
	       ipv6_is_extension(ip[6]) &&
	       ipv6_transport(address(skb->data), linear) == IPV6_LATER;
}

/*
 * A followed packet enters the stack.  If it is a later fragment, a tunnel over
 * UDP brought it from another host: it began as the packet that wrapped it.
 */
static __always_inline void later_unwrapped(struct tracked_pkt *t,
					    struct sk_buff *skb)
{
	if (!config.udp || !(t->path.flags & PF_UDP) || !t->path.dir ||
	    !later_fragment(skb))
		return;
	renounce(t, CN_FRAGMENTS);
	t->path.dir = DIR_NONE;
	t->number = 0;
	t->undecided = 0;
	t->unmatched = 0;
}

#endif
