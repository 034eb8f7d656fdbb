/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What kmod/cong_callbacks.h takes from the kernel's headers, for a BPF program:
 * constants, macros and the small functions of net/tcp.h under the names that
 * they have there.  It holds no policy.
 */
#ifndef MSSFRAC_TCP_BPF_H
#define MSSFRAC_TCP_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define U32_MAX			((u32)~0U)
#define USEC_PER_MSEC		1000L
#define TCP_INFINITE_SSTHRESH	0x7fffffff

/* enum tcp_ca_state and enum sk_pacing: the same values in every kernel. */
#define TCP_CA_Disorder		1
#define TCP_CA_Loss		4
#define SK_PACING_NONE		0
#define SK_PACING_NEEDED	1

#define min_t(type, a, b) ({						\
	type a_ = (a), b_ = (b);					\
	a_ < b_ ? a_ : b_; })
#define max_t(type, a, b) ({						\
	type a_ = (a), b_ = (b);					\
	a_ > b_ ? a_ : b_; })
#define min(a, b)		min_t(typeof(a), a, b)
#define max(a, b)		max_t(typeof(a), a, b)
#define clamp_t(type, v, lo, hi) ({					\
	type v_ = (v), lo_ = (lo), hi_ = (hi);				\
	v_ < lo_ ? lo_ : v_ > hi_ ? hi_ : v_; })
#define memset(p, c, n)		__builtin_memset(p, c, n)
#define READ_ONCE(x)		(*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v)	(*(volatile typeof(x) *)&(x) = (v))
#define cmpxchg(p, old, new)	((void)__sync_val_compare_and_swap(p, old, new))

#define tcp_sk(sk)		((struct tcp_sock *)(sk))
#define inet_csk(sk)		((struct inet_connection_sock *)(sk))
#define inet_csk_ca(sk)		((void *)inet_csk(sk)->icsk_ca_priv)
#define sock_net(sk)		((sk)->__sk_common.skc_net.net)

static __always_inline bool after(u32 seq, u32 than)
{
	return (s32)(than - seq) < 0;
}

static __always_inline u32 tcp_snd_cwnd(const struct tcp_sock *tp)
{
	return tp->snd_cwnd;
}

static __always_inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 segs)
{
	tp->snd_cwnd = segs;
}

static __always_inline bool tcp_in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

static __always_inline u32 tcp_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out + tp->retrans_out - tp->sacked_out - tp->lost_out;
}

/* In slow start a window of which half was used may grow, too. */
static __always_inline bool tcp_is_cwnd_limited(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tcp_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* The callbacks that are used; libbpf finds each by its name in the kernel's. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 state);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
	void (*init)(struct sock *sk);
};

#endif
