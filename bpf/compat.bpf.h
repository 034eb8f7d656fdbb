/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The differences between kernels, and the constants of the kernel that are not
 * in its type information.  Hooks that a kernel lacks are switched off
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
#define IPPROTO_ICMP	1
#define IPPROTO_TCP	6
#define IPPROTO_UDP	17
#define IPPROTO_ICMPV6	58
#define TCP_SYN_SENT	2
#define TCP_SYN_RECV	3
#define TCP_FIN_WAIT1	4
#define TCP_FIN_WAIT2	5
#define TCP_TIME_WAIT	6	/* the head of a socket only */
#define TCP_CLOSE	7
#define TCP_LISTEN	10
#define TCP_NEW_SYN_RECV 12	/* a request, not a socket */
#define RCV_SHUTDOWN	1
#define ICSK_ACK_SCHED	1
#define ICSK_ACK_TIMER	2
#define ICSK_TIME_LOSS_PROBE 5
#define NETDEV_TX_BUSY	0x10
#define NET_XMIT_CN	2	/* sent, but others will be dropped soon */

/* net/ipv4/tcp_input.c, the same value since 2.6. */
#define FLAG_SLOWPATH	0x100

/* enum gro_result: MERGED 0, MERGED_FREE 1; CONSUMED 4 since 5.12. */
static __always_inline bool gro_merged(int result)
{
	return result == 0 || result == 1 || result == 4;
}

/* NETIF_F_*_BIT are an enum without a name; these have not moved since 3.x. */
#define NETIF_F_GRO	(1ULL << 14)
#define NETIF_F_TSO	(1ULL << 16)
#define NETIF_F_TSO6	(1ULL << 20)

/*
 * TCP_SKB_CB(): the control block while TCP owns the packet.  A direct load
 * from skb->cb[]: BPF_CORE_READ would call a helper for each field.
 */
#define tcp_cb(skb, field) ({						\
	__u64 offset_ = bpf_core_field_offset(struct tcp_skb_cb, field); \
	*(volatile typeof(((struct tcp_skb_cb *)0)->field) *)		\
		((char *)(skb)->cb + offset_); })

/*
 * The address of a kernel object as a number.  The verifier tracks trusted
 * pointers through every move and forbids shifting or multiplying them; a
 * byte swap (twice, so that nothing changes) yields a plain number on every
 * kernel so far, for programs loaded with CAP_PERFMON.
 */
static __always_inline __u64 address(const void *pointer)
{
	__u64 v = (__u64)pointer;

#ifdef __bpf__	/* the unit cases run this file on the host */
	asm volatile("%0 = be64 %0; %0 = be64 %0" : "+r"(v));
#endif
	return v;
}

/*
 * From an skb's data to one of its headers, in bytes.  Newer kernels (7.2) take
 * head and data for pointers as well, and refuse 32-bit arithmetic with them.
 */
static __always_inline __u32 ahead_of_data(struct sk_buff *skb, __u16 header)
{
	return address(skb->head) + header - address(skb->data);
}

extern int LINUX_KERNEL_VERSION __kconfig;

#define VERSION(major, minor, patch) ((major) << 16 | (minor) << 8 | (patch))

/*
 * Header prediction refuses an ACK before snd_una since "tcp: exclude old ACKs
 * from tcp fast path": 7.3, and these releases of stable series.
 */
static __always_inline bool old_ack_is_slow(void)
{
	int at = LINUX_KERNEL_VERSION;

	return at >= VERSION(7, 2, 8) ||
	       (at >= VERSION(6, 12, 112) && at < VERSION(6, 13, 0)) ||
	       (at >= VERSION(6, 1, 189) && at < VERSION(6, 2, 0));
}

/* do_xdp_generic() takes a pointer to the packet's pointer: 6.9. */
static __always_inline bool xdp_has_pointer(void)
{
	return LINUX_KERNEL_VERSION >= VERSION(6, 9, 0);
}

/*
 * From 6.7 on an ACK that is due while the backlog is emptied is sent when the
 * socket is released (TCP_ACK_DEFERRED); it looks like one of the delayed ACK
 * timer that had to wait for the owner.
 */
static __always_inline bool acks_deferred(void)
{
	return bpf_core_enum_value_exists(enum tsq_enum___deferred,
					  TCP_ACK_DEFERRED);
}

/*
 * From 6.18 on no tracepoint reports that the reader of a datagram freed it
 * (skb_attempt_defer_free()).
 */
static __always_inline bool reads_unreported(void)
{
	return LINUX_KERNEL_VERSION >= VERSION(6, 18, 0);
}

/* icmpv6_rcv() frees what it has used as if it were dropped: until 6.3. */
static __always_inline bool icmpv6_reports_use(void)
{
	return LINUX_KERNEL_VERSION >= VERSION(6, 3, 0);
}

#define IS(name) (bpf_core_enum_value_exists(enum skb_drop_reason, name) && \
		  reason == bpf_core_enum_value(enum skb_drop_reason, name))

/*
 * Is a drop's reason the general one?  What header checks refuse has its own
 * reason; what a closing connection has no use for, after its acknowledgement
 * was taken, has not.  What waits in its queue is freed with it, which has a
 * reason on newer kernels (skb_queue_purge_reason()).
 */
static __always_inline bool reason_is_general(__u32 reason)
{
	return IS(SKB_DROP_REASON_NOT_SPECIFIED) ||
	       IS(SKB_DROP_REASON_QUEUE_PURGE);
}

/* Data ahead of its turn that is refused: tcp_sequence(), tcp_data_queue(). */
static __always_inline bool reason_is_window(__u32 reason)
{
	return IS(SKB_DROP_REASON_TCP_OVERWINDOW) ||
	       IS(SKB_DROP_REASON_TCP_INVALID_SEQUENCE) ||
	       IS(SKB_DROP_REASON_TCP_INVALID_END_SEQUENCE);
}

/* The filter of a socket refuses it: SO_ATTACH_FILTER, or a security module. */
static __always_inline bool reason_is_filter(__u32 reason)
{
	return IS(SKB_DROP_REASON_SOCKET_FILTER);
#undef IS
}

static __always_inline bool seq_before(u32 a, u32 b)
{
	return (__s32)(a - b) < 0;
}

/* For code that must read or write memory exactly once. */
#define READ_ONCE(x)	 (*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *)&(x) = (v))

#endif
