/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * --nat: a filter by port, address or expression also matches the ends that a
 * packet's connection has on the other side of NAT.  A packet whose own headers
 * do not match is followed, as unmatched, until connection tracking knows; if it
 * never does, it was not asked for.  NAT changes the reply's ends when the
 * first packet is translated, so the device is asked once more.
 */
#ifndef PATHPROF_NAT_BPF_H
#define PATHPROF_NAT_BPF_H

#include "compat.bpf.h"
#include "config.bpf.h"
#include "filter.bpf.h"
#include "pcap.bpf.h"
#include "tracked.bpf.h"

#define NFCT_PTRMASK	(~7ULL)		/* of skb->_nfct, below: the state */
#define IP_CT_IS_REPLY	3		/* and further ones */

static __always_inline void nat_read(const struct nf_conntrack_tuple *tuple,
				     struct pcap_ends *e, bool invert, bool ports)
{
	__u32 from[4] = {}, to[4] = {};
	__u16 from_port = 0, to_port = 0;

	BPF_CORE_READ_INTO(&from, tuple, src.u3.all);
	BPF_CORE_READ_INTO(&to, tuple, dst.u3.all);
	if (ports) {
		from_port = BPF_CORE_READ(tuple, src.u.all);
		to_port = BPF_CORE_READ(tuple, dst.u.all);
	}
	__builtin_memcpy(e->source, invert ? to : from, 16);
	__builtin_memcpy(e->destination, invert ? from : to, 16);
	e->source_port = invert ? to_port : from_port;
	e->destination_port = invert ? from_port : to_port;
	e->family = BPF_CORE_READ(tuple, src.l3num);
}

/* Do these ends match; for an expression, in the packet's headers? */
static __always_inline bool nat_match(struct sk_buff *skb,
				      const struct pcap_ends *e)
{
	if (!filter_ports(bpf_ntohs(e->source_port),
			  bpf_ntohs(e->destination_port)) ||
	    !(e->family == AF_INET ?
	      filter_v4(e->source[0], e->destination[0]) :
	      filter_v6(e->source, e->destination)))
		return false;
	return pcap_match_skb(skb, e);
}

/* Of a packet that connection tracking has seen: is it asked for? */
static __always_inline void nat_decide(struct sk_buff *skb)
{
	__u64 key = address(skb), begin;
	struct pcap_ends ends = {};
	const struct nf_conn *ct;
	struct tracked_pkt *t;
	bool reply, ports;
	__u32 at;

	t = tracked_find(key, &at);
	if (!t)
		return;
	ct = (const struct nf_conn *)(skb->_nfct & NFCT_PTRMASK);
	if (t->unmatched && ct) {
		begin = bpf_ktime_get_ns();
		reply = (skb->_nfct & ~NFCT_PTRMASK) >= IP_CT_IS_REPLY;
		/* Of ICMP the tuple has type and number there. */
		ports = !config.icmp || !(t->path.flags & PF_ICMP);
		/* Before or after NAT, as this packet would have them. */
		nat_read(&ct->tuplehash[0].tuple, &ends, reply, ports);
		if (nat_match(skb, &ends))
			t->unmatched = 0;
		nat_read(&ct->tuplehash[1].tuple, &ends, !reply, ports);
		if (t->unmatched && nat_match(skb, &ends))
			t->unmatched = 0;
		/* No time of the packet's. */
		t->last_ns += bpf_ktime_get_ns() - begin;
	}
	tracked_unlock(at, key);
}

#endif
