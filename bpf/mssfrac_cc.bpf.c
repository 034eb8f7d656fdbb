// SPDX-License-Identifier: GPL-2.0-only
/*
 * The congestion control of mssfrac_cc.ko as a BPF program (struct_ops), under
 * the name "mssfrac_bpf":
 *
 *   bpftool struct_ops register mssfrac_cc.bpf.o
 *   bpftool struct_ops unregister name mssfrac_bpf
 *
 * The callbacks are those of the module, from the same source.  Only entry points
 * are here.  No flag is set, so the kernel restricts it as it restricts the
 * module's.
 */
#include "tcp.bpf.h"
#include <bpf/bpf_tracing.h>

/*
 * Without what mssfrac.ko makes of it (tx_frac): the module looks that up by a
 * kernel symbol, which a BPF program cannot call.
 */
static __always_inline u32 mssfrac_cong_segment(struct sock *sk)
{
	return max(tcp_sk(sk)->mss_cache, 1U);
}

static __always_inline u8 cong_state(const struct sock *sk)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);

	return BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
}

#include "cong_callbacks.h"

char LICENSE[] SEC("license") = "GPL";

_Static_assert(sizeof(struct cong) <=
	       sizeof(((struct inet_connection_sock *)0)->icsk_ca_priv),
	       "the state fits into the socket");

SEC("struct_ops/init")
void BPF_PROG(mssfrac_init, struct sock *sk)
{
	cong_init(sk);
}

SEC("struct_ops/ssthresh")
u32 BPF_PROG(mssfrac_ssthresh, struct sock *sk)
{
	return cong_ssthresh(sk);
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(mssfrac_avoid, struct sock *sk, u32 ack, u32 acked)
{
	cong_avoid(sk, ack, acked);
}

SEC("struct_ops/set_state")
void BPF_PROG(mssfrac_state, struct sock *sk, u8 state)
{
	cong_set_state(sk, state);
}

SEC("struct_ops/undo_cwnd")
u32 BPF_PROG(mssfrac_undo, struct sock *sk)
{
	return cong_undo(sk);
}

SEC("struct_ops/pkts_acked")
void BPF_PROG(mssfrac_acked, struct sock *sk, const struct ack_sample *sample)
{
	cong_pkts_acked(sk, sample);
}

SEC("struct_ops/min_tso_segs")
u32 BPF_PROG(mssfrac_tso_segs, struct sock *sk)
{
	return cong_min_tso_segs(sk);
}

/* The name of the map, too, by which bpftool unregisters it. */
SEC(".struct_ops")
struct tcp_congestion_ops mssfrac_bpf = {
	.init		= (void *)mssfrac_init,
	.ssthresh	= (void *)mssfrac_ssthresh,
	.cong_avoid	= (void *)mssfrac_avoid,
	.set_state	= (void *)mssfrac_state,
	.undo_cwnd	= (void *)mssfrac_undo,
	.pkts_acked	= (void *)mssfrac_acked,
	.min_tso_segs	= (void *)mssfrac_tso_segs,
	.name		= "mssfrac_bpf",
};
