// SPDX-License-Identifier: GPL-2.0-only
/*
 * Entry points, each named after the kernel function or tracepoint it
 * attaches to, in the order a packet meets them.  Their code is in the headers;
 * userspace loads only those this kernel has.
 */
#include "calibrate.bpf.h"
#include "compat.bpf.h"
#include "end.bpf.h"
#include "icmp.bpf.h"
#include "rx.bpf.h"
#include "rx-tcp.bpf.h"
#include "stack-hooks.bpf.h"
#include "tracked.bpf.h"
#include "tx.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define FENTRY(function, ...) \
SEC("fentry/" #function) int BPF_PROG(function, ##__VA_ARGS__)
#define FEXIT(function, ...) \
SEC("fexit/" #function) int BPF_PROG(function, ##__VA_ARGS__)
#define TRACE(event, ...) \
SEC("tp_btf/" #event) int BPF_PROG(event, ##__VA_ARGS__)

#define RX(skb) (address(skb))
#define TX(skb) (address(skb) | KEY_TX)

/*
 * A hook returns 0, as the verifier requires, and in so many words: which value
 * a function called last returns is known to some compilers only.
 */

/* Not hooks: userspace runs them. */
SEC("syscall") int calibrate(void *unused)
{ probe_measure(); return 0; }
SEC("syscall") int cut_off(void *unused)
{ bpf_loop(TRACKED_MAX, cut_one, 0, 0); return 0; }

/* Receive. */
TRACE(napi_gro_receive_entry, struct sk_buff *skb)
{ rx_gro(skb, rx_linear(skb)); return 0; }
TRACE(napi_gro_receive_exit, int ret)
{ rx_gro_result(ret); return 0; }
TRACE(napi_gro_frags_entry, struct sk_buff *skb)
{ rx_gro(skb, rx_in_fragment(skb)); return 0; }
TRACE(napi_gro_frags_exit, int ret)
{ rx_gro_result(ret); return 0; }
TRACE(netif_receive_skb, struct sk_buff *skb)
{ rx_netif(skb); return 0; }
FENTRY(sk_filter_trim_cap, struct sock *sk, struct sk_buff *skb)
{ icmp_queued(sk, skb); rx_decide_udp(sk, skb); rx_socket(sk, skb); return 0; }
FENTRY(tcp_add_backlog, struct sock *sk, struct sk_buff *skb)
{ rx_decide(sk, skb); follow(RX(skb), ST_RX_BACKLOG, 0, 0); return 0; }
TRACE(tcp_probe, struct sock *sk, struct sk_buff *skb)
{ rx_decide(sk, skb); rx_established(sk, skb); return 0; }
FEXIT(tcp_rcv_established, struct sock *sk)
{ rx_done(sk); return 0; }
FENTRY(tcp_rcv_state_process, struct sock *sk, struct sk_buff *skb)
{ rx_decide(sk, skb); rx_state(sk, skb); return 0; }
SEC("fexit/tcp_rcv_state_process")
int BPF_PROG(tcp_rcv_state_process_exit, struct sock *sk)
{ rx_done(sk); return 0; }
FENTRY(tcp_timewait_state_process, struct inet_timewait_sock *tw,
       struct sk_buff *skb)
{ follow(RX(skb), ST_RX_TIMEWAIT, 0, 0); return 0; }
FENTRY(tcp_check_req, struct sock *sk, struct sk_buff *skb)
{ follow(RX(skb), ST_RX_REQUEST, 0, 0); return 0; }
FENTRY(tcp_make_synack, struct sock *sk, struct dst_entry *dst,
       struct request_sock *req, struct tcp_fastopen_cookie *cookie,
       int type, struct sk_buff *syn)
{ follow(RX(syn), ST_RX_SYNACK, 0, 0); return 0; }
/* The first where the kernel has it: it costs less than the second. */
TRACE(sk_data_ready, const struct sock *sk)
{ rx_sock_stage(sk, ST_RX_READY); return 0; }
FENTRY(sock_def_readable, struct sock *sk)
{ rx_sock_stage(sk, ST_RX_READY); return 0; }
TRACE(softirq_exit)
{ rx_close(); return 0; }
TRACE(skb_copy_datagram_iovec, struct sk_buff *skb)
{ rx_copy(skb); return 0; }
TRACE(tcp_rcv_space_adjust, struct sock *sk)
{ rx_read(sk); return 0; }

/* Ends of either direction. */
FENTRY(kfree_skb_partial, struct sk_buff *skb)
{ packet_end(RX(skb), END_COALESCED, 0, 0, FROM_DEVICE); return 0; }
FENTRY(skb_consume_udp, struct sock *sk, struct sk_buff *skb)
{ udp_read(skb); return 0; }
TRACE(consume_skb, struct sk_buff *skb)
{ packet_end(RX(skb), END_CONSUMED, 0, 0, FROM_DEVICE); return 0; }
TRACE(kfree_skb, struct sk_buff *skb, void *location, int reason)
{
	__u64 place = drop_place(ctx, skb, location);

	if (!packet_end(RX(skb), END_DROPPED, reason, place, packet_from(skb)))
		tx_dropped(skb, reason, place);
	return 0;
}

/* Transmit. */
FENTRY(tcp_sendmsg_locked, struct sock *sk)
{ tx_write(sk); return 0; }
FENTRY(__tcp_transmit_skb, struct sock *sk, struct sk_buff *skb)
{ tx_transmit(sk, skb); return 0; }
TRACE(net_dev_queue, struct sk_buff *skb)
{ tx_dev(skb); return 0; }
TRACE(qdisc_enqueue, struct Qdisc *qdisc, struct netdev_queue *txq,
      struct sk_buff *skb)
{ tx_queued(TX(skb)); return 0; }
TRACE(qdisc_dequeue, struct Qdisc *qdisc, struct netdev_queue *txq,
      int packets, struct sk_buff *skb)
{ follow(TX(skb), ST_TX_DEQUEUE, 0, 0); return 0; }
TRACE(net_dev_start_xmit, struct sk_buff *skb)
{ tx_start(TX(skb)); return 0; }
TRACE(net_dev_xmit, struct sk_buff *skb, int rc)
{ tx_sent(TX(skb), rc); return 0; }

/* Finer stages, attached on request only. */
FENTRY(ip_rcv_core, struct sk_buff *skb)
{ follow(RX(skb), ST_RX_IP, 0, 0); return 0; }
FENTRY(ip6_rcv_core, struct sk_buff *skb)
{ follow(RX(skb), ST_RX_IP, 0, 0); return 0; }
FENTRY(ip_local_deliver, struct sk_buff *skb)
{ follow(RX(skb), ST_RX_DELIVER, 0, 0); return 0; }
FENTRY(ip6_input, struct sk_buff *skb)
{ follow(RX(skb), ST_RX_DELIVER, 0, 0); return 0; }
FENTRY(tcp_v4_rcv, struct sk_buff *skb)
{ follow(RX(skb), ST_RX_TCP, 0, 0); return 0; }
FENTRY(tcp_v6_rcv, struct sk_buff *skb)
{ follow(RX(skb), ST_RX_TCP, 0, 0); return 0; }
FENTRY(tcp_v4_do_rcv, struct sock *sk, struct sk_buff *skb)
{ follow(RX(skb), ST_RX_DO_RCV, 0, 0); return 0; }
FENTRY(tcp_v6_do_rcv, struct sock *sk, struct sk_buff *skb)
{ follow(RX(skb), ST_RX_DO_RCV, 0, 0); return 0; }
FENTRY(tcp_validate_incoming, struct sock *sk, struct sk_buff *skb)
{ rx_validated(skb); return 0; }
FENTRY(tcp_ack, struct sock *sk, struct sk_buff *skb, int flag)
{
	follow(RX(skb), flag & FLAG_SLOWPATH ? ST_RX_ACK_SLOW : ST_RX_ACK_FAST,
	       0, 0);
	return 0;
}
FENTRY(tcp_data_queue, struct sock *sk, struct sk_buff *skb)
{ follow(RX(skb), ST_RX_DATA_QUEUE, 0, 0); return 0; }
FENTRY(tcp_queue_rcv, struct sock *sk, struct sk_buff *skb)
{ follow(RX(skb), ST_RX_QUEUE_RCV, 0, 0); return 0; }
FENTRY(tcp_send_ack, struct sock *sk)
{ rx_sock_stage(sk, ST_RX_SEND_ACK); return 0; }
FENTRY(tcp_send_delayed_ack, struct sock *sk)
{ rx_sock_stage(sk, ST_RX_DELAY_ACK); return 0; }
FENTRY(__ip_queue_xmit, struct sock *sk, struct sk_buff *skb)
{ tx_ip(sk, skb); return 0; }
FENTRY(inet6_csk_xmit, struct sock *sk, struct sk_buff *skb)
{ tx_ip(sk, skb); return 0; }
FENTRY(ip_output, struct net *net, struct sock *sk, struct sk_buff *skb)
{ follow(TX(skb), ST_TX_OUTPUT, 0, 0); return 0; }
FENTRY(ip6_output, struct net *net, struct sock *sk, struct sk_buff *skb)
{ follow(TX(skb), ST_TX_OUTPUT, 0, 0); return 0; }
FENTRY(ip_finish_output2, struct net *net, struct sock *sk,
       struct sk_buff *skb)
{ follow(TX(skb), ST_TX_FINISH, 0, 0); return 0; }
FENTRY(ip6_finish_output2, struct net *net, struct sock *sk,
       struct sk_buff *skb)
{ follow(TX(skb), ST_TX_FINISH, 0, 0); return 0; }
FENTRY(__skb_gso_segment, struct sk_buff *skb)
{ follow(TX(skb), ST_TX_SPLIT, 0, 0); return 0; }
