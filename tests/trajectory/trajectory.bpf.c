// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records the congestion window of connections to some ports, and the state of
 * the congestion control mssfrac, when each ACK arrives (tcp:tcp_probe).  The
 * record holds what the ACKs before it left behind.  What differs from one
 * connection to the next by chance is recorded as the difference from the first
 * ACK: time and sequence numbers.
 */
#include "tcp.bpf.h"
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>

#include "trajectory.h"

char LICENSE[] SEC("license") = "GPL";

const volatile u32 port_min, port_max;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TRAJECTORY_RECORDS);
	__type(key, u32);
	__type(value, struct trajectory_record);
} records SEC(".maps");

/* Of the connection whose ACKs arrive now: the tests have one at a time. */
static u32 count, port_now, us_first, una_first;

SEC("tp_btf/tcp_probe")
int BPF_PROG(ack_arrives, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct inet_connection_sock *icsk = inet_csk(sk);
	u32 port = bpf_ntohs(sk->__sk_common.skc_dport);
	u32 una = BPF_CORE_READ(tp, snd_una);
	u32 us = BPF_CORE_READ(tp, tcp_mstamp);
	struct trajectory_record *r;

	if (port < port_min || port > port_max)
		return 0;
	if (port != port_now) {
		port_now = port;
		us_first = us;
		una_first = una;
	}
	r = bpf_map_lookup_elem(&records, &count);
	if (!r)
		return 0;
	count++;
	r->port = port;
	r->us = us - us_first;
	r->una = una - una_first;
	r->snd_cwnd = BPF_CORE_READ(tp, snd_cwnd);
	r->snd_ssthresh = BPF_CORE_READ(tp, snd_ssthresh);
	r->srtt_us = BPF_CORE_READ(tp, srtt_us);
	r->in_flight = BPF_CORE_READ(tp, packets_out) +
		       BPF_CORE_READ(tp, retrans_out) -
		       BPF_CORE_READ(tp, sacked_out) -
		       BPF_CORE_READ(tp, lost_out);
	r->ca_state = BPF_CORE_READ_BITFIELD_PROBED(icsk, icsk_ca_state);
	r->pacing_status = sk->sk_pacing_status;
	r->pacing_rate = sk->sk_pacing_rate;
	bpf_core_read(&r->cong, sizeof(r->cong), &icsk->icsk_ca_priv);
	r->cong.stamp -= us_first;
	r->cong.round_end -= una_first;
	return 0;
}
