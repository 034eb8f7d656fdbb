/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entry points of --stages.  Those named stack_ replace the hook of that name
 * in pathprof.bpf.c.  Without --stages none of all these is loaded.
 */
#ifndef PATHPROF_STACK_HOOKS_BPF_H
#define PATHPROF_STACK_HOOKS_BPF_H

#include "compat.bpf.h"
#include "forward.bpf.h"
#include "stack.bpf.h"

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
{ stack_gro(skb); return 0; }
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
{ follow(KEY(skb), ST_TX_ENQUEUE, 0, FACT_QUEUED); return 0; }
STACK_TRACE(qdisc_dequeue, struct Qdisc *qdisc, struct netdev_queue *txq,
	    int packets, struct sk_buff *skb)
{ follow(KEY(skb), ST_TX_DEQUEUE, 0, 0); return 0; }
STACK_TRACE(net_dev_start_xmit, struct sk_buff *skb)
{ stack_start(skb); return 0; }
STACK_TRACE(net_dev_xmit, struct sk_buff *skb, int rc)
{ stack_sent(skb, rc); return 0; }
STACK_FEXIT(__skb_gso_segment, struct sk_buff *skb, netdev_features_t features,
	    bool tx_path, struct sk_buff *list)
{ stack_split(skb, list); return 0; }
STACK_FENTRY(kfree_skb_partial, struct sk_buff *skb)
{ stack_end(KEY(skb), END_COALESCED, 0, 0); return 0; }
STACK_FENTRY(skb_consume_udp, struct sock *sk, struct sk_buff *skb)
{
	if (skb->users.refs.counter == 1)
		stack_end(KEY(skb), END_CONSUMED, 0, 0);
	return 0;
}
STACK_TRACE(consume_skb, struct sk_buff *skb)
{ stack_end(KEY(skb), END_CONSUMED, 0, 0); return 0; }
STACK_TRACE(kfree_skb, struct sk_buff *skb, void *location, int reason)
{
	if (!stack_end(KEY(skb), END_DROPPED, reason, address(location)))
		tx_dropped(skb, reason, address(location));
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
{ follow(KEY(skb), ST_CONNTRACK, 0, 0); return 0; }
STACK_FEXIT(nf_conntrack_in, struct sk_buff *skb)
{ stage_return(KEY(skb), ST_CONNTRACK); return 0; }

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

/* tunnel */
STACK_FENTRY(vxlan_xmit, struct sk_buff *skb)
{ follow(KEY(skb), ST_ENCAP, 0, 0); return 0; }
STACK_FENTRY(vxlan_rcv, struct sock *sk, struct sk_buff *skb)
{ follow(KEY(skb), ST_DECAP, 0, 0); return 0; }
STACK_FENTRY(ip_tunnel_xmit, struct sk_buff *skb)
{ follow(KEY(skb), ST_ENCAP, 0, 0); return 0; }
STACK_FENTRY(ip_tunnel_rcv, void *tunnel, struct sk_buff *skb)
{ follow(KEY(skb), ST_DECAP, 0, 0); return 0; }
STACK_FENTRY(wg_xmit, struct sk_buff *skb)
{ follow(KEY(skb), ST_ENCAP, 0, 0); return 0; }
STACK_FEXIT(wg_xmit, struct sk_buff *skb)
{ stage_from(KEY(skb), ST_TX_START, ST_ENCAP, ST_CRYPT_WAIT); return 0; }
STACK_FENTRY(encrypt_packet, struct sk_buff *skb)
{ follow(KEY(skb), ST_CRYPT, 0, 0); return 0; }
STACK_FEXIT(encrypt_packet, struct sk_buff *skb)
{ stage_from(KEY(skb), 0, ST_CRYPT, ST_CRYPT_WAIT); return 0; }
STACK_FENTRY(wg_socket_send_skb_to_peer, void *peer, struct sk_buff *skb)
{ follow(KEY(skb), ST_ENCAP, 0, 0); return 0; }
STACK_FENTRY(wg_receive, struct sock *sk, struct sk_buff *skb)
{ follow(KEY(skb), ST_DECAP, 0, 0); return 0; }
STACK_FEXIT(wg_receive, struct sock *sk, struct sk_buff *skb)
{ stage_from(KEY(skb), 0, ST_DECAP, ST_CRYPT_WAIT); return 0; }
STACK_FENTRY(decrypt_packet, struct sk_buff *skb)
{ follow(KEY(skb), ST_CRYPT, 0, 0); return 0; }
STACK_FEXIT(decrypt_packet, struct sk_buff *skb)
{ stage_from(KEY(skb), 0, ST_CRYPT, ST_CRYPT_WAIT); return 0; }

/* tc */
STACK_FENTRY(tcf_classify, struct sk_buff *skb)
{ follow(KEY(skb), ST_TC, 0, 0); return 0; }
STACK_FEXIT(tcf_classify, struct sk_buff *skb)
{ stage_return(KEY(skb), ST_TC); return 0; }

/* xdp */
SEC("fentry/do_xdp_generic") int stack_do_xdp_generic(__u64 *ctx)
{ follow(key_xdp(ctx), ST_XDP_GENERIC, 0, 0); return 0; }
SEC("fexit/do_xdp_generic") int stack_do_xdp_generic_exit(__u64 *ctx)
{ stage_return(key_xdp(ctx), ST_XDP_GENERIC); return 0; }

/* tap */
STACK_FENTRY(packet_rcv, struct sk_buff *skb)
{ follow(KEY(skb), ST_TAP, 0, 0); return 0; }
STACK_FEXIT(packet_rcv, struct sk_buff *skb)
{ stage_return(KEY(skb), ST_TAP); return 0; }
STACK_FENTRY(tpacket_rcv, struct sk_buff *skb)
{ follow(KEY(skb), ST_TAP, 0, 0); return 0; }
STACK_FEXIT(tpacket_rcv, struct sk_buff *skb)
{ stage_return(KEY(skb), ST_TAP); return 0; }
STACK_FENTRY(dev_queue_xmit_nit, struct sk_buff *skb)
{ follow(KEY(skb), ST_TAP, 0, 0); return 0; }
STACK_FEXIT(dev_queue_xmit_nit, struct sk_buff *skb)
{ stage_return(KEY(skb), ST_TAP); return 0; }

#endif
