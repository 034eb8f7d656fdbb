// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reference for pathprof's times: how long three stages of a packet last, and
 * delays injected in them and in WireGuard's encryption.  A stage has two
 * programs, and each reads the clock first.  So the timer adds to a stage the
 * remainder of the first program and the way to the clock of the second: about
 * the cost of one program.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

enum { RX, DRIVER, COPY, STAGES, CRYPT = STAGES, DELAYS };

const volatile __u32 rounds[DELAYS];	/* how long to keep busy */

struct watch {
	__u64 count, ns;
	__u64 begin, skb;
} watches[STAGES];

static __always_inline void begin(int stage, __u64 now, const void *skb)
{
	struct watch *w = &watches[stage];

	w->skb = (__u64)skb;
	w->begin = now;
}

static __always_inline void end(int stage, __u64 now, const void *skb)
{
	struct watch *w = &watches[stage];

	if (!w->begin || (skb && w->skb != (__u64)skb))
		return;
	w->ns += now - w->begin;
	w->count++;
	w->begin = 0;
}

#define WATCH(name, event, call, ...) \
SEC("tp_btf/" event) int BPF_PROG(name, ##__VA_ARGS__) \
{ __u64 now = bpf_ktime_get_ns(); call; return 0; }

WATCH(rx_begin, "netif_receive_skb", begin(RX, now, skb), struct sk_buff *skb)
WATCH(rx_end, "tcp_probe", end(RX, now, skb), struct sock *sk,
      struct sk_buff *skb)
WATCH(driver_begin, "net_dev_start_xmit", begin(DRIVER, now, skb),
      struct sk_buff *skb)
WATCH(driver_end, "net_dev_xmit", end(DRIVER, now, skb), struct sk_buff *skb)
WATCH(copy_begin, "skb_copy_datagram_iovec", begin(COPY, now, skb),
      struct sk_buff *skb)
WATCH(copy_end, "tcp_rcv_space_adjust", end(COPY, now, NULL), struct sock *sk)

static int turn(__u32 round, void *unused)
{
	(void)round;
	(void)unused;
	return 0;
}

#define PLANT(function, stage) \
SEC("fentry/" #function) int BPF_PROG(function) \
{ bpf_loop(rounds[stage], turn, 0, 0); return 0; }

PLANT(tcp_v4_rcv, RX)
PLANT(loopback_xmit, DRIVER)
PLANT(simple_copy_to_iter, COPY)
/* What WireGuard calls for each packet. */
PLANT(chacha20poly1305_encrypt_sg_inplace, CRYPT)
PLANT(chacha20poly1305_decrypt_sg_inplace, CRYPT)
