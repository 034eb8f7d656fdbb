/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which packets are followed: the draw (1 in N, by a countdown of random
 * geometric gaps, so that an unsampled packet costs one decrement) and the
 * filter by port and address.
 */
#ifndef PATHPROF_SAMPLE_BPF_H
#define PATHPROF_SAMPLE_BPF_H

#include "compat.bpf.h"
#include "config.bpf.h"
#include "owner.bpf.h"

/*
 * Gaps between samples, one from each of GAPS equally likely parts of the
 * geometric distribution; picking one at random draws from it without the
 * logarithm that BPF lacks.
 */
const volatile __u32 gaps[GAPS] = {};
/* Set when every hook is attached, cleared before the first is detached. */
bool enabled;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} countdown SEC(".maps");

static __always_inline __u64 draw_gap(void)
{
	return gaps[bpf_get_prandom_u32() & (GAPS - 1)];
}

/* Is this packet sampled?  To be called once per packet. */
static __always_inline bool sample_due(__u8 dir)
{
	__u64 *left;

	if (!READ_ONCE(enabled) || (config.dir && config.dir != dir))
		return false;
	if (config.sample == 1)
		return true;
	left = bpf_map_lookup_elem(&countdown, &(__u32){ 0 });
	if (!left)
		return false;
	if (!*left)
		*left = draw_gap();
	if (--*left)
		return false;
	*left = draw_gap();
	return true;
}

/* Will the next packet on this CPU be sampled?  Guards early clock reads. */
static __always_inline bool sample_next(void)
{
	__u64 *left;

	if (!READ_ONCE(enabled))
		return false;
	if (config.sample == 1)
		return true;
	left = bpf_map_lookup_elem(&countdown, &(__u32){ 0 });
	return left && *left == 1;
}

static __always_inline bool filter_ports(__u16 a, __u16 b)
{
	return !config.port || a == config.port || b == config.port;
}

static __always_inline bool filter_is_v4(__u32 a)
{
	return !((a ^ config.addr[0]) & config.mask[0]);
}

static __always_inline bool filter_v4(__u32 a, __u32 b)
{
	if (!config.addr_family)
		return true;
	return config.addr_family == 4 && (filter_is_v4(a) || filter_is_v4(b));
}

static __always_inline bool filter_is_v6(const __u32 *a)
{
	return !(((a[0] ^ config.addr[0]) & config.mask[0]) |
		 ((a[1] ^ config.addr[1]) & config.mask[1]) |
		 ((a[2] ^ config.addr[2]) & config.mask[2]) |
		 ((a[3] ^ config.addr[3]) & config.mask[3]));
}

static __always_inline bool filter_v6(const __u32 *a, const __u32 *b)
{
	if (!config.addr_family)
		return true;
	return config.addr_family == 6 && (filter_is_v6(a) || filter_is_v6(b));
}

/* Interface and namespace, of received packets and at the device. */
static __always_inline bool filter_dev(struct net_device *dev)
{
	if (config.ifindex && dev->ifindex != config.ifindex)
		return false;
	return !config.netns || dev->nd_net.net->ns.inum == config.netns;
}

/* Does the connection match the filter? */
static __always_inline bool filter_sock(struct sock *sk)
{
	struct in6_addr a, b;

	if (config.netns &&
	    sk->__sk_common.skc_net.net->ns.inum != config.netns)
		return false;
	if (!filter_ports(sk->__sk_common.skc_num,
			  bpf_ntohs(sk->__sk_common.skc_dport)))
		return false;
	if (config.by_owner && !owner_matches(sk))
		return false;
	if (!config.addr_family)
		return true;
	if (config.addr_family == 4)
		return filter_v4(sk->__sk_common.skc_daddr,
				 sk->__sk_common.skc_rcv_saddr);
	BPF_CORE_READ_INTO(&a, sk, __sk_common.skc_v6_daddr);
	BPF_CORE_READ_INTO(&b, sk, __sk_common.skc_v6_rcv_saddr);
	return filter_v6(a.in6_u.u6_addr32, b.in6_u.u6_addr32);
}

#endif
