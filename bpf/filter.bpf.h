/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The filters by port, address, interface and network namespace, and all that
 * can be asked of a socket.  What was not asked for is a constant 0, and the
 * verifier removes its code.
 */
#ifndef PATHPROF_FILTER_BPF_H
#define PATHPROF_FILTER_BPF_H

#include "compat.bpf.h"
#include "config.bpf.h"
#include "owner.bpf.h"

/* --nat: what does not match may do so on the other side of NAT (nat.bpf.h). */
const volatile bool nat_on = false;

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

/* Is the socket where it was asked for, and whose? */
static __always_inline bool filter_owner(struct sock *sk)
{
	if (config.netns &&
	    sk->__sk_common.skc_net.net->ns.inum != config.netns)
		return false;
	return !config.by_owner || owner_matches(sk);
}

/* Do the connection's ends match the filter? */
static __always_inline bool filter_sock(struct sock *sk)
{
	struct in6_addr a, b;

	if (!filter_ports(sk->__sk_common.skc_num,
			  bpf_ntohs(sk->__sk_common.skc_dport)))
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
