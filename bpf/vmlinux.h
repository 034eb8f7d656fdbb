/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel types the profiler reads, with only the fields it reads; libbpf
 * relocates every access to the running kernel (CO-RE).  Written by hand: a
 * dump of one kernel's whole type list would be 150,000 lines and would hide
 * what the profiler depends on.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef _Bool bool;
enum { false = 0, true = 1 };

enum bpf_map_type {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
};

#pragma clang attribute push (__attribute__((preserve_access_index)), \
			      apply_to = record)

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
};

struct tcp_sock {
	u32 rcv_nxt;
	u32 snd_nxt;
	u32 snd_una;
};

struct net_device {
	int ifindex;
};

struct sk_buff {
	struct net_device *dev;
	char cb[48];
	unsigned int len;
	unsigned int data_len;
	__be16 protocol;
	unsigned int end;
	unsigned char *head;
	unsigned char *data;
};

struct skb_shared_info {
	unsigned short gso_size;
	unsigned short gso_segs;
};

struct tcp_skb_cb {
	__u32 seq;
	__u32 end_seq;
	u16 tcp_gso_segs;
	__u8 tcp_flags;
	__u32 ack_seq;
};

#pragma clang attribute pop

/* Only ever pointers here. */
struct napi_struct;
struct Qdisc;
struct netdev_queue;
struct net;
struct msghdr;
struct flowi;
struct tcphdr;

#endif
