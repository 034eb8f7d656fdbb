/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel types that the profiler and the congestion control use, with only
 * the fields that they use; libbpf relocates every access to the running kernel
 * (CO-RE).  Written by hand: a dump of one kernel's whole type list would be
 * 150,000 lines and would hide what the programs depend on.
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
typedef __s32 s32;
typedef __u64 u64;
typedef u64 netdev_features_t;
typedef _Bool bool;
enum { false = 0, true = 1 };

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_RB_NO_WAKEUP = 1,
};

enum {
	BPF_NOEXIST = 1,
};

/* Since 6.7: compat.bpf.h asks if the kernel has it, and for its own value. */
enum tsq_enum___deferred {
	TCP_ACK_DEFERRED = 1,
};

enum skb_drop_reason {
	SKB_DROP_REASON_NOT_SPECIFIED = 2,
	SKB_DROP_REASON_TCP_OVERWINDOW,
	SKB_DROP_REASON_TCP_INVALID_SEQUENCE,
	SKB_DROP_REASON_TCP_INVALID_END_SEQUENCE,
	SKB_DROP_REASON_QUEUE_PURGE,
	SKB_DROP_REASON_SOCKET_FILTER,
};

#pragma clang attribute push (__attribute__((preserve_access_index)), \
			      apply_to = record)

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct ns_common {
	unsigned int inum;
};

struct netns_ipv4 {
	u8 sysctl_tcp_early_demux;
	u8 sysctl_ip_early_demux;
	u8 sysctl_tcp_min_tso_segs;
	int sysctl_tcp_pacing_ca_ratio;
};

struct net {
	struct ns_common ns;
	struct netns_ipv4 ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	struct sock *skc_listener;
};

typedef struct {
	int owned;
} socket_lock_t;

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	atomic_t refs;
} refcount_t;

struct sk_buff;

struct sk_buff_head {
	struct sk_buff *next;
	struct sk_buff *prev;
	__u32 qlen;
};

struct kernfs_node {
	u64 id;
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct sock {
	struct sock_common __sk_common;
	socket_lock_t sk_lock;
	int sk_forward_alloc;
	int sk_rcvbuf;
	int sk_wmem_queued;
	u16 sk_protocol;
	u8 sk_shutdown;
	u32 sk_mark;
	struct sock_cgroup_data sk_cgrp_data;
	unsigned long sk_tsq_flags;
	u32 sk_pacing_status;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	struct {
		atomic_t rmem_alloc;
		int len;
	} sk_backlog;
	struct sk_buff_head sk_receive_queue;
	struct sk_buff_head sk_write_queue;
};

struct rb_node {
	unsigned long __rb_parent_color;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u8 icsk_pending;
	__u8 icsk_ca_state : 5;
	struct {
		__u8 pending;
	} icsk_ack;
	u64 icsk_ca_priv[13];
};

struct tcp_options_received {
	u32 ts_recent;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__be32 pred_flags;
	u32 rcv_nxt;
	u32 copied_seq;
	u32 snd_nxt;
	u32 snd_una;
	u32 snd_wnd;
	u32 rcv_wnd;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 max_packets_out;
	u64 bytes_acked;
	u64 tcp_mstamp;
	u8 is_cwnd_limited : 1;
	u32 srtt_us;
	u32 packets_out;
	u32 retrans_out;
	u32 lost_out;
	u32 sacked_out;
	u32 mss_cache;
	u8 nonagle;
	bool is_mptcp;
	u16 urg_data;
	struct tcp_options_received rx_opt;
	struct rb_root out_of_order_queue;
};

struct ack_sample {
	s32 rtt_us;
};

struct tcp_request_sock {
	u64 snt_synack;
};

struct net_device {
	char name[16];
	int ifindex;
	u64 features;
	possible_net_t nd_net;
};

struct sk_buff {
	struct sk_buff *next;
	struct sk_buff *prev;
	struct net_device *dev;
	struct sock *sk;
	char cb[48];
	unsigned int len;
	unsigned int data_len;
	int skb_iif;
	__be16 protocol;
	__u16 transport_header;
	__u16 network_header;
	unsigned int end;
	unsigned char *head;
	unsigned char *data;
	unsigned int truesize;
	refcount_t users;
	u64 skb_mstamp_ns;
	unsigned long _nfct;
};

struct skb_shared_info {
	__u8 flags;
	unsigned short gso_size;
	unsigned short gso_segs;
};

/* The flag of Accurate ECN, where the kernel has it. */
struct tcphdr {
	__u16 ae : 1;
};

struct napi_gro_cb {
	void *frag0;
	unsigned int frag0_len;
};

union flowi_uli {
	struct {
		__be16 dport;
		__be16 sport;
	} ports;
};

struct flowi4 {
	__be32 saddr;
	__be32 daddr;
	union flowi_uli uli;
};

struct flowi6 {
	struct in6_addr daddr;
	struct in6_addr saddr;
	union flowi_uli uli;
};

struct inet_cork {
	__u16 gso_size;
};

struct bpf_prog;

/* Of module veth. */
struct veth_rq {
	struct bpf_prog *xdp_prog;
};

/* Of module nf_conntrack. */
union nf_inet_addr {
	__u32 all[4];
};

union nf_conntrack_man_proto {
	__be16 all;
};

struct nf_conntrack_man {
	union nf_inet_addr u3;
	union nf_conntrack_man_proto u;
	u16 l3num;
};

struct nf_conntrack_tuple {
	struct nf_conntrack_man src;
	struct {
		union nf_inet_addr u3;
		union nf_conntrack_man_proto u;
	} dst;
};

struct nf_conntrack_tuple_hash {
	struct nf_conntrack_tuple tuple;
};

struct nf_conn {
	struct nf_conntrack_tuple_hash tuplehash[2];
};

struct nf_hook_state {
	u8 hook;
	u8 pf;
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
struct inet_timewait_sock;
struct dst_entry;
struct request_sock;
struct tcp_fastopen_cookie;
struct nf_hook_entries;
struct packet_type;
struct Qdisc;
struct netdev_queue;
struct msghdr;
struct flowi;

#endif
