/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels, and the constants of the kernel that are no
 * part of its type information.  Hooks that a kernel lacks are switched off
 * by userspace before loading, so they need nothing here.
 */
#ifndef PATHPROF_COMPAT_BPF_H
#define PATHPROF_COMPAT_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>

#define ETH_P_IP	0x0800
#define ETH_P_IPV6	0x86dd
#define AF_INET		2
#define AF_INET6	10
#define IPPROTO_TCP	6
#define NETDEV_TX_BUSY	0x10

/* net/ipv4/tcp_input.c, the same value since 2.6. */
#define FLAG_SLOWPATH	0x100

/* enum gro_result: MERGED 0, MERGED_FREE 1; CONSUMED 4 since 5.12. */
static __always_inline bool gro_merged(int result)
{
	return result == 0 || result == 1 || result == 4;
}

/* TCP_SKB_CB(): the control block while TCP owns the packet. */
#define tcp_cb(skb, field) \
	BPF_CORE_READ((struct tcp_skb_cb *)&(skb)->cb, field)

/*
 * The address of a kernel object as a number.  The verifier tracks trusted
 * pointers through every move and forbids shifting or multiplying them; a
 * byte swap (twice, so that nothing changes) yields a plain number on every
 * kernel so far, for programs loaded with CAP_PERFMON.
 */
static __always_inline __u64 address(const void *pointer)
{
	__u64 v = (__u64)pointer;

	asm volatile("%0 = be64 %0; %0 = be64 %0" : "+r"(v));
	return v;
}

static __always_inline bool seq_before(u32 a, u32 b)
{
	return (__s32)(a - b) < 0;
}

/* For code that must read or write memory exactly once. */
#define READ_ONCE(x)	 (*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *)&(x) = (v))

#endif
