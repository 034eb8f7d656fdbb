/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entry points of --stages.  Those named stack_ replace the hook of that name
 * in pathprof.bpf.c.  Without --stages none of all these is loaded.
 */
#ifndef PATHPROF_STACK_HOOKS_BPF_H
#define PATHPROF_STACK_HOOKS_BPF_H

#include "compat.bpf.h"
#include "datagram.bpf.h"
#include "forward.bpf.h"
#include "icmp.bpf.h"
#include "identity.bpf.h"
#include "nat.bpf.h"
#include "reader.bpf.h"
#include "stack.bpf.h"
#include "xdp.bpf.h"

#define KEY(skb) (address(skb))
#define STACK_FENTRY(function, ...) \
SEC("fentry/" #function) int BPF_PROG(stack_##function, ##__VA_ARGS__)
#define STACK_FEXIT(function, ...) \
SEC("fexit/" #function) int BPF_PROG(stack_##function##_exit, ##__VA_ARGS__)
#define STACK_TRACE(event, ...) \
SEC("tp_btf/" #event) int BPF_PROG(stack_##event, ##__VA_ARGS__)
/* The argument is a pointer to a pointer, which BPF does not pass on. */
#define STACK_POINTER(function) \
SEC("fentry/" #function) int stack_##function(__u64 *ctx)

/* Entries, crossings, devices and ends. */
STACK_TRACE(napi_gro_receive_entry, struct sk_buff *skb)
{ stack_gro(skb, rx_linear(skb)); return 0; }
STACK_TRACE(napi_gro_frags_entry, struct sk_buff *skb)
{ stack_gro(skb, rx_in_fragment(skb)); return 0; }
STACK_TRACE(netif_receive_skb, struct sk_buff *skb)
{ stack_netif(skb); return 0; }
STACK_TRACE(netif_rx, struct sk_buff *skb)
{ stack_cross(skb, skb->dev); return 0; }
STACK_FENTRY(__dev_forward_skb, struct net_device *dev, struct sk_buff *skb)
{ stack_cross(skb, dev); return 0; }
STACK_FENTRY(__ip_queue_xmit, struct sock *sk, struct sk_buff *skb)
{ stack_ip(sk, skb); return 0; }
STACK_FENTRY(inet6_csk_xmit, struct sock *sk, struct sk_buff *skb)
{ stack_ip(sk, skb); return 0; }
STACK_TRACE(net_dev_queue, struct sk_buff *skb)
{ stack_dev(skb); return 0; }
STACK_TRACE(qdisc_enqueue, struct Qdisc *qdisc, struct netdev_queue *txq,
	    struct sk_buff *skb)
{ tx_queued(KEY(skb)); return 0; }
STACK_TRACE(qdisc_dequeue, struct Qdisc *qdisc, struct netdev_queue *txq,
	    int packets, struct sk_buff *skb)
{ follow(KEY(skb), ST_TX_DEQUEUE, 0, 0); return 0; }
STACK_TRACE(net_dev_start_xmit, struct sk_buff *skb)
{ tx_start(KEY(skb)); return 0; }
STACK_TRACE(net_dev_xmit, struct sk_buff *skb, int rc)
{ tx_sent(KEY(skb), rc); return 0; }
STACK_FEXIT(__skb_gso_segment, struct sk_buff *skb, netdev_features_t features,
	    bool tx_path, struct sk_buff *list)
{ stack_split(skb, list); return 0; }
STACK_FENTRY(kfree_skb_partial, struct sk_buff *skb)
{ stack_end(KEY(skb), END_COALESCED, 0, 0); return 0; }
STACK_FENTRY(skb_consume_udp, struct sock *sk, struct sk_buff *skb)
{ stack_udp_read(skb); return 0; }
STACK_TRACE(consume_skb, struct sk_buff *skb)
{ stack_end(KEY(skb), END_CONSUMED, 0, 0); return 0; }
STACK_TRACE(kfree_skb, struct sk_buff *skb, void *location, int reason)
{
	__u64 place = drop_place(ctx, skb, location);

	if (icmp_refused(skb, reason))
		return 0;
	if (stack_end(KEY(skb), END_DROPPED, reason, place))
		return 0;
	tx_dropped(skb, reason, place);
	xdp_copy_dropped(reason, place);
	return 0;
}

/* forward */
STACK_FENTRY(ip_route_input_noref, struct sk_buff *skb)
{ follow(KEY(skb), ST_ROUTE, 0, 0); return 0; }
STACK_FENTRY(ip6_route_input, struct sk_buff *skb)
{ follow(KEY(skb), ST_ROUTE, 0, 0); return 0; }
STACK_FENTRY(ip_forward, struct sk_buff *skb)
{ follow(KEY(skb), ST_FORWARD, 0, 0); return 0; }
STACK_FENTRY(ip6_forward, struct sk_buff *skb)
{ follow(KEY(skb), ST_FORWARD, 0, 0); return 0; }
STACK_FENTRY(ip_output, struct net *net, struct sock *sk, struct sk_buff *skb)
{ follow(KEY(skb), ST_TX_OUTPUT, 0, 0); return 0; }
STACK_FENTRY(ip6_output, struct net *net, struct sock *sk, struct sk_buff *skb)
{ follow(KEY(skb), ST_TX_OUTPUT, 0, 0); return 0; }
STACK_FENTRY(ip_finish_output2, struct net *net, struct sock *sk,
	     struct sk_buff *skb)
{ follow(KEY(skb), ST_TX_FINISH, 0, 0); return 0; }
STACK_FENTRY(ip6_finish_output2, struct net *net, struct sock *sk,
	     struct sk_buff *skb)
{ follow(KEY(skb), ST_TX_FINISH, 0, 0); return 0; }

/* netfilter */
STACK_FENTRY(nf_hook_slow, struct sk_buff *skb, struct nf_hook_state *state)
{ nf_hook(skb, state); return 0; }
STACK_FENTRY(nf_conntrack_in, struct sk_buff *skb)
{ stage_call(KEY(skb), ST_CONNTRACK); return 0; }
STACK_FEXIT(nf_conntrack_in, struct sk_buff *skb)
{ stage_return(KEY(skb), ST_CONNTRACK); return 0; }

/* Only with --nat. */
SEC("fexit/nf_conntrack_in")
int BPF_PROG(stack_nat_conntrack, struct sk_buff *skb)
{ nat_decide(skb); return 0; }
SEC("tp_btf/net_dev_queue")
int BPF_PROG(stack_nat_device, struct sk_buff *skb)
{ nat_decide(skb); return 0; }

/* bridge */
STACK_POINTER(br_handle_frame)
{ follow(key_at(ctx), ST_BRIDGE, 0, 0); return 0; }
STACK_FENTRY(br_dev_xmit, struct sk_buff *skb)
{ follow(KEY(skb), ST_BRIDGE, 0, 0); return 0; }
STACK_FENTRY(br_forward, void *port, struct sk_buff *skb)
{ follow(KEY(skb), ST_BR_PORT, 0, 0); return 0; }
STACK_FENTRY(br_flood, void *bridge, struct sk_buff *skb)
{ follow(KEY(skb), ST_BR_FLOOD, 0, 0); return 0; }

/* vlan: devices above another one */
STACK_POINTER(vlan_do_receive)
{ follow(key_at(ctx), ST_VLAN, 0, 0); return 0; }
STACK_FENTRY(vlan_dev_hard_start_xmit, struct sk_buff *skb)
{ follow(KEY(skb), ST_VLAN, 0, 0); return 0; }
STACK_POINTER(macvlan_handle_frame)
{ follow(key_at(ctx), ST_MACVLAN, 0, 0); return 0; }
STACK_FENTRY(macvlan_start_xmit, struct sk_buff *skb)
{ follow(KEY(skb), ST_MACVLAN, 0, 0); return 0; }
STACK_POINTER(ipvlan_handle_frame)
{ follow(key_at(ctx), ST_IPVLAN, 0, 0); return 0; }
STACK_FENTRY(ipvlan_start_xmit, struct sk_buff *skb)
{ follow(KEY(skb), ST_IPVLAN, 0, 0); return 0; }

STACK_FENTRY(bond_start_xmit, struct sk_buff *skb)
{ follow(KEY(skb), ST_BOND, 0, 0); return 0; }
STACK_POINTER(bond_handle_frame)
{ follow(key_at(ctx), ST_BOND, 0, 0); return 0; }
STACK_FENTRY(team_xmit, struct sk_buff *skb)
{ follow(KEY(skb), ST_BOND, 0, 0); return 0; }
STACK_POINTER(team_handle_frame)
{ follow(key_at(ctx), ST_BOND, 0, 0); return 0; }

/* tunnel */
STACK_FENTRY(vxlan_xmit, struct sk_buff *skb)
{ follow(KEY(skb), ST_ENCAP, 0, 0); return 0; }
STACK_FENTRY(vxlan_rcv, struct sock *sk, struct sk_buff *skb)
{ follow(KEY(skb), ST_DECAP, 0, 0); return 0; }
STACK_FENTRY(ip_tunnel_xmit, struct sk_buff *skb)
{ follow(KEY(skb), ST_ENCAP, 0, 0); return 0; }
STACK_FENTRY(ip_tunnel_rcv, void *tunnel, struct sk_buff *skb)
{ follow(KEY(skb), ST_DECAP, 0, 0); return 0; }
STACK_FENTRY(geneve_xmit, struct sk_buff *skb)
{ follow(KEY(skb), ST_ENCAP, 0, 0); return 0; }
STACK_FENTRY(geneve_udp_encap_recv, struct sock *sk, struct sk_buff *skb)
{ follow(KEY(skb), ST_DECAP, 0, 0); return 0; }
STACK_FENTRY(ip6_tnl_start_xmit, struct sk_buff *skb)
{ follow(KEY(skb), ST_ENCAP, 0, 0); return 0; }
STACK_FENTRY(ip6gre_tunnel_xmit, struct sk_buff *skb)
{ follow(KEY(skb), ST_ENCAP, 0, 0); return 0; }
STACK_FENTRY(__ip6_tnl_rcv, void *tunnel, struct sk_buff *skb)
{ follow(KEY(skb), ST_DECAP, 0, 0); return 0; }
STACK_FENTRY(sit_tunnel_xmit, struct sk_buff *skb)
{ follow(KEY(skb), ST_ENCAP, 0, 0); return 0; }
STACK_FENTRY(ipip6_rcv, struct sk_buff *skb)
{ follow(KEY(skb), ST_DECAP, 0, 0); return 0; }
STACK_FENTRY(gro_cells_receive, void *cells, struct sk_buff *skb)
{ follow(KEY(skb), ST_CROSS, 0, 0); return 0; }
STACK_FEXIT(skb_realloc_headroom, struct sk_buff *skb, unsigned int headroom,
	    struct sk_buff *copy)
{ stack_moves(KEY(skb), KEY(copy)); return 0; }
STACK_FENTRY(wg_xmit, struct sk_buff *skb)
{ follow(KEY(skb), ST_ENCAP, 0, 0); return 0; }
STACK_FEXIT(wg_xmit, struct sk_buff *skb)
{ stage_handed(KEY(skb), ST_ENCAP); return 0; }
STACK_FENTRY(encrypt_packet, struct sk_buff *skb)
{ crypt_begin(KEY(skb)); return 0; }
STACK_FEXIT(encrypt_packet, struct sk_buff *skb)
{ stage_from(KEY(skb), ST_CRYPT, ST_CRYPT_WAIT); return 0; }
STACK_FENTRY(wg_socket_send_skb_to_peer, void *peer, struct sk_buff *skb)
{ follow(KEY(skb), ST_ENCAP, 0, 0); return 0; }
STACK_FENTRY(wg_receive, struct sock *sk, struct sk_buff *skb)
{ follow(KEY(skb), ST_DECAP, 0, 0); return 0; }
STACK_FEXIT(wg_receive, struct sock *sk, struct sk_buff *skb)
{ stage_handed(KEY(skb), ST_DECAP); return 0; }
STACK_FENTRY(decrypt_packet, struct sk_buff *skb)
{ crypt_begin(KEY(skb)); return 0; }
STACK_FEXIT(decrypt_packet, struct sk_buff *skb)
{ stage_from(KEY(skb), ST_CRYPT, ST_CRYPT_WAIT); return 0; }

/* ipsec: each segment of a packet, and once more if a cipher needed time. */
STACK_FENTRY(xfrm_output_resume, struct sock *sk, struct sk_buff *skb)
{ follow(KEY(skb), ST_XFRM_OUT, 0, 0); return 0; }
STACK_FENTRY(xfrm_input, struct sk_buff *skb)
{ follow(KEY(skb), ST_XFRM_IN, 0, 0); return 0; }

/* ovs */
STACK_FENTRY(ovs_vport_receive, void *port, struct sk_buff *skb)
{ follow(KEY(skb), ST_OVS, 0, 0); return 0; }
STACK_FENTRY(ovs_execute_actions, void *datapath, struct sk_buff *skb)
{ follow(KEY(skb), ST_OVS_ACTIONS, 0, 0); return 0; }
STACK_FENTRY(ovs_dp_upcall, void *datapath, struct sk_buff *skb)
{ follow(KEY(skb), ST_OVS_UPCALL, 0, 0); return 0; }

/* fragment */
STACK_FENTRY(ip_do_fragment, struct net *net, struct sock *sk,
	     struct sk_buff *skb)
{ follow(KEY(skb), ST_FRAGMENT, 0, 0); return 0; }
STACK_FENTRY(ip6_fragment, struct net *net, struct sock *sk,
	     struct sk_buff *skb)
{ follow(KEY(skb), ST_FRAGMENT, 0, 0); return 0; }
/* The first one keeps the identity: the next ones find no entry to take. */
STACK_FEXIT(ip_frag_next, struct sk_buff *skb, void *state,
	    struct sk_buff *fragment)
{ stack_moves(KEY(skb), KEY(fragment)); return 0; }
STACK_FEXIT(ip6_frag_next, struct sk_buff *skb, void *state,
	    struct sk_buff *fragment)
{ stack_moves(KEY(skb), KEY(fragment)); return 0; }
STACK_FENTRY(inet_frag_queue_insert, void *queue, struct sk_buff *skb)
{ follow(KEY(skb), ST_DEFRAG, 0, 0); return 0; }
/* The fragment that came last becomes the whole: what the first one was. */
STACK_FENTRY(skb_morph, struct sk_buff *to, struct sk_buff *from)
{ stack_moves(KEY(from), KEY(to)); return 0; }
STACK_FENTRY(inet_frag_reasm_finish, void *queue, struct sk_buff *whole)
{ follow(KEY(whole), ST_REASSEMBLE, 0, 0); return 0; }
STACK_FENTRY(ipv6_parse_hopopts, struct sk_buff *skb)
{ follow(KEY(skb), ST_EXTENSION, 0, 0); return 0; }
STACK_FENTRY(ipv6_destopt_rcv, struct sk_buff *skb)
{ follow(KEY(skb), ST_EXTENSION, 0, 0); return 0; }
STACK_FENTRY(ipv6_rthdr_rcv, struct sk_buff *skb)
{ follow(KEY(skb), ST_EXTENSION, 0, 0); return 0; }

/* udp */
STACK_FENTRY(udp_sendmsg, struct sock *sk)
{ datagram_write(sk); return 0; }
STACK_FENTRY(udpv6_sendmsg, struct sock *sk)
{ datagram_write(sk); return 0; }
STACK_FENTRY(ip_generic_getfrag, void *from, char *to, int offset, int length,
	     int odd, struct sk_buff *skb)
{ datagram_fill(skb); return 0; }
STACK_FENTRY(udp_send_skb, struct sk_buff *skb, struct flowi4 *flow,
	     struct inet_cork *cork)
{ datagram_v4(skb, flow, cork); return 0; }
STACK_FENTRY(udp_v6_send_skb, struct sk_buff *skb, struct flowi6 *flow,
	     struct inet_cork *cork)
{ datagram_v6(skb, flow, cork); return 0; }
STACK_FEXIT(__skb_recv_udp, struct sock *sk, unsigned int flags, int *offset,
	    int *error, struct sk_buff *skb)
{ datagram_taken(skb, flags); return 0; }

/* icmp */
STACK_FENTRY(raw_local_deliver, struct sk_buff *skb, int protocol)
{ icmp_arrives(skb, protocol == IPPROTO_ICMP); return 0; }
STACK_FENTRY(raw6_local_deliver, struct sk_buff *skb, int protocol)
{ icmp_arrives(skb, protocol == IPPROTO_ICMPV6); return 0; }
SEC("fexit/__ip_make_skb")
int BPF_PROG(stack___ip_make_skb_exit, struct sock *sk)
{ icmp_send(sk, returned_key(ctx), 4); return 0; }
SEC("fexit/__ip6_make_skb")
int BPF_PROG(stack___ip6_make_skb_exit, struct sock *sk)
{ icmp_send(sk, returned_key(ctx), 6); return 0; }

/* mptcp, tls */
STACK_FENTRY(mptcp_data_ready, struct sock *sk, struct sock *subflow)
{ rx_sock_stage(subflow, ST_RX_MPTCP); return 0; }
STACK_FENTRY(tls_rx_one_record, struct sock *sk)
{ record_begin(queue_head(sk)); return 0; }
STACK_FEXIT(tls_rx_one_record, struct sock *sk)
{ record_end(queue_head(sk)); return 0; }
STACK_FENTRY(tls_strp_copyin, void *descriptor, struct sk_buff *skb)
{ rx_copy(skb); return 0; }
STACK_FENTRY(tcp_read_done, struct sock *sk)
{ records_freed(sk); return 0; }
STACK_FEXIT(tcp_read_done, struct sock *sk)
{ records_gone(sk); return 0; }
STACK_FENTRY(__kfree_skb, struct sk_buff *skb)
{ reader_freed(KEY(skb)); return 0; }
STACK_FENTRY(skb_attempt_defer_free, struct sk_buff *skb)
{ reader_freed(KEY(skb)); return 0; }

/* tc */
STACK_FENTRY(tcf_classify, struct sk_buff *skb)
{ stage_call(KEY(skb), ST_TC); return 0; }
STACK_FEXIT(tcf_classify, struct sk_buff *skb)
{ stage_return(KEY(skb), ST_TC); return 0; }
/*
 * Programs of others, one pair of hooks for each: tcx calls them without a
 * function of the kernel's.  Userspace finds them, and loads so many pairs.
 */
#define STACK_TC_PROGRAM(n) \
SEC("?fentry/tc_program") int stack_tc_program_##n(__u64 *ctx) \
{ stage_call(key_first(ctx), ST_TC); return 0; } \
SEC("?fexit/tc_program") int stack_tc_program_exit_##n(__u64 *ctx) \
{ stage_return(key_first(ctx), ST_TC); return 0; }

STACK_TC_PROGRAM(0)
STACK_TC_PROGRAM(1)
STACK_TC_PROGRAM(2)
STACK_TC_PROGRAM(3)
STACK_TC_PROGRAM(4)
STACK_TC_PROGRAM(5)
STACK_TC_PROGRAM(6)
STACK_TC_PROGRAM(7)

/* Of --stage, likewise: one pair for each function that the user names. */
#define STACK_USER(n) \
SEC("?fentry/user_function") int stack_user_##n(__u64 *ctx) \
{ stage_call(key_user(ctx, n), ST_USER + (n)); return 0; } \
SEC("?fexit/user_function") int stack_user_exit_##n(__u64 *ctx) \
{ stage_return(key_user(ctx, n), ST_USER + (n)); return 0; }

STACK_USER(0)
STACK_USER(1)
STACK_USER(2)
STACK_USER(3)
STACK_USER(4)
STACK_USER(5)

/* xdp */
SEC("fentry/do_xdp_generic") int stack_do_xdp_generic(__u64 *ctx)
{ xdp_generic(key_first(ctx), key_xdp(ctx)); return 0; }
SEC("fexit/do_xdp_generic") int stack_do_xdp_generic_exit(__u64 *ctx)
{ xdp_generic_done(key_xdp(ctx), returned(ctx)); return 0; }
STACK_FENTRY(bpf_prog_run_generic_xdp, struct sk_buff *skb)
{ xdp_generic_runs(skb); return 0; }
STACK_FENTRY(veth_xdp_rcv_skb, struct veth_rq *queue, struct sk_buff *skb)
{ xdp_native(queue, skb); return 0; }
STACK_FEXIT(veth_xdp_rcv_skb, struct veth_rq *queue, struct sk_buff *skb,
	    void *bulk, void *stats, struct sk_buff *left)
{ xdp_native_done(skb, left); return 0; }
STACK_FENTRY(xdp_do_generic_redirect, struct net_device *dev,
	     struct sk_buff *skb)
{ follow(KEY(skb), ST_XDP_REDIRECT, 0, 0); return 0; }
STACK_FEXIT(xsk_generic_rcv, void *socket, void *buffer, int error)
{ xdp_to_socket(error); return 0; }

/* tap */
STACK_FENTRY(packet_rcv, struct sk_buff *skb)
{ stage_call(KEY(skb), ST_TAP); return 0; }
STACK_FEXIT(packet_rcv, struct sk_buff *skb)
{ stage_return(KEY(skb), ST_TAP); return 0; }
STACK_FENTRY(tpacket_rcv, struct sk_buff *skb)
{ stage_call(KEY(skb), ST_TAP); return 0; }
STACK_FEXIT(tpacket_rcv, struct sk_buff *skb)
{ stage_return(KEY(skb), ST_TAP); return 0; }
STACK_FENTRY(dev_queue_xmit_nit, struct sk_buff *skb)
{ stage_call(KEY(skb), ST_TAP); return 0; }
STACK_FEXIT(dev_queue_xmit_nit, struct sk_buff *skb)
{ stage_return(KEY(skb), ST_TAP); return 0; }

#endif
