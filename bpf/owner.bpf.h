/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The filter by the owner of a packet's socket: a cgroup, or an arm of mssfrac.
 * If neither was asked for, the verifier removes all of it.
 */
#ifndef PATHPROF_OWNER_BPF_H
#define PATHPROF_OWNER_BPF_H

#include "compat.bpf.h"
#include "config.bpf.h"
#include "arm.h"

#define CGROUP_DEPTH	64	/* of nested cgroups; the verifier wants an end */

/* Is the socket's cgroup the one asked for, or below it? */
static __always_inline bool in_cgroup(struct sock *sk)
{
	struct cgroup *c = BPF_CORE_READ(sk, sk_cgrp_data.cgroup);
	int i;

	for (i = 0; i < CGROUP_DEPTH && c; i++) {
		if (BPF_CORE_READ(c, kn, id) == config.cgroup)
			return true;
		c = BPF_CORE_READ(c, self.parent, cgroup);
	}
	return false;
}

static __always_inline void arm_ends(struct sock *sk, struct arm_end *local,
				     struct arm_end *peer)
{
	__u16 port = BPF_CORE_READ(sk, __sk_common.skc_num);

	local->port = bpf_htons(port);
	peer->port = BPF_CORE_READ(sk, __sk_common.skc_dport);
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET6) {
		bpf_core_read(local->addr, 16,
			      &sk->__sk_common.skc_v6_rcv_saddr);
		bpf_core_read(peer->addr, 16, &sk->__sk_common.skc_v6_daddr);
		return;
	}
	/* ::ffff:a.b.c.d; the address is the upper half of the word. */
	local->addr[0] = peer->addr[0] = 0;
	local->addr[1] = 0xffff0000 |
		(__u64)BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr) << 32;
	peer->addr[1] = 0xffff0000 |
		(__u64)BPF_CORE_READ(sk, __sk_common.skc_daddr) << 32;
}

/* A connection's mark pins it to an arm, else the hash of its ends decides. */
static __always_inline bool in_arm(struct sock *sk)
{
	__u32 above = BPF_CORE_READ(sk, sk_mark) - config.arm_mark;
	struct arm_end local, peer;
	bool treated;

	if (config.arm_mark && above < 2) {
		treated = above;
	} else {
		arm_ends(sk, &local, &peer);
		treated = arm_slot(&local, &peer, config.arm_seed) <
			  config.arm_percent;
	}
	return treated == (config.arm == ARM_TREATED);
}

/* Is the socket, of any kind, one of those asked for? */
static __always_inline bool owner_matches(struct sock *sk)
{
	__u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);

	/* Only the head of a socket, without a cgroup. */
	if (state == TCP_TIME_WAIT)
		return false;
	/* No connection, or not one yet. */
	if (config.arm && (state == TCP_NEW_SYN_RECV || state == TCP_LISTEN ||
			   state == TCP_CLOSE || !in_arm(sk)))
		return false;
	if (!config.cgroup)
		return true;
	/* A request belongs to its listener's. */
	if (state == TCP_NEW_SYN_RECV)
		sk = BPF_CORE_READ(sk, __sk_common.skc_listener);
	return in_cgroup(sk);
}

#endif
