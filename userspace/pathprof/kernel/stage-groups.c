// SPDX-License-Identifier: GPL-2.0-only
/*
 * The groups of hooks that --stages names.  A hook of --stages that no group
 * lists is attached with any of them: it keeps the packet's identity.
 */
#include <stdio.h>
#include <string.h>
#include "base/tool.h"
#include "kernel/stage-groups.h"

#define FORWARD		1
#define NETFILTER	2
#define BRIDGE		4
#define VLAN		8
#define TUNNEL		16
#define TC		32
#define TAP		64
#define XDP		128
#define IPSEC		256
#define OVS		512
#define FRAGMENT	1024
#define UDP		2048
#define MPTCP		4096
#define TLS		8192
#define ICMP		16384
/* What keeps a packet's identity, and no stage of a group: for --stage. */
#define IDENTITY	(1U << 31)

/* netfilter has those of forward: they end the stages of its hooks. */
static const struct {
	const char *name;
	unsigned int set;
} groups[] = {
	{ "forward", FORWARD }, { "netfilter", NETFILTER | FORWARD },
	{ "bridge", BRIDGE }, { "vlan", VLAN }, { "tunnel", TUNNEL },
	{ "ipsec", IPSEC }, { "ovs", OVS }, { "fragment", FRAGMENT },
	{ "udp", UDP }, { "icmp", ICMP }, { "mptcp", MPTCP },
	{ "tls", TLS },
	{ "tc", TC }, { "tap", TAP }, { "xdp", XDP }, { "all", ~0U },
};

static const struct {
	unsigned int group;
	const char *hook;
} members[] = {
	{ FORWARD, "ip_rcv_core" }, { FORWARD, "ip6_rcv_core" },
	{ FORWARD, "ip_route_input_noref" }, { FORWARD, "ip6_route_input" },
	{ FORWARD, "ip_forward" }, { FORWARD, "ip6_forward" },
	{ FORWARD, "ip_local_deliver" }, { FORWARD, "ip6_input" },
	{ FORWARD, "ip_output" }, { FORWARD, "ip6_output" },
	{ FORWARD, "ip_finish_output2" }, { FORWARD, "ip6_finish_output2" },
	{ NETFILTER, "nf_hook_slow" }, { NETFILTER, "nf_conntrack_in" },
	{ BRIDGE, "br_handle_frame" }, { BRIDGE, "br_dev_xmit" },
	{ BRIDGE, "br_forward" }, { BRIDGE, "br_flood" },
	{ VLAN, "vlan_do_receive" }, { VLAN, "vlan_dev_hard_start_xmit" },
	{ VLAN, "macvlan_handle_frame" }, { VLAN, "macvlan_start_xmit" },
	{ VLAN, "ipvlan_handle_frame" }, { VLAN, "ipvlan_start_xmit" },
	{ VLAN, "bond_handle_frame" }, { VLAN, "bond_start_xmit" },
	{ VLAN, "team_handle_frame" }, { VLAN, "team_xmit" },
	{ TUNNEL, "vxlan_xmit" }, { TUNNEL, "vxlan_rcv" },
	{ TUNNEL, "ip_tunnel_xmit" }, { TUNNEL, "ip_tunnel_rcv" },
	{ TUNNEL, "geneve_xmit" }, { TUNNEL, "geneve_udp_encap_recv" },
	{ TUNNEL, "ip6_tnl_start_xmit" }, { TUNNEL, "ip6gre_tunnel_xmit" },
	{ TUNNEL, "__ip6_tnl_rcv" },
	{ TUNNEL, "sit_tunnel_xmit" }, { TUNNEL, "ipip6_rcv" },
	{ TUNNEL, "skb_realloc_headroom" },
	{ TUNNEL | IPSEC, "gro_cells_receive" },
	{ TUNNEL, "wg_xmit" }, { TUNNEL, "wg_receive" },
	{ TUNNEL, "encrypt_packet" }, { TUNNEL, "decrypt_packet" },
	{ TUNNEL, "wg_socket_send_skb_to_peer" },
	{ TC, "tcf_classify" }, { TC, "tc_program" },
	{ TAP, "packet_rcv" }, { TAP, "tpacket_rcv" },
	{ TAP, "dev_queue_xmit_nit" },
	{ XDP, "do_xdp_generic" }, { XDP, "bpf_prog_run_generic_xdp" },
	{ XDP, "xdp_do_generic_redirect" },
	{ XDP, "xsk_generic_rcv" }, { XDP, "veth_xdp_rcv_skb" },
	{ IPSEC, "xfrm_output_resume" }, { IPSEC, "xfrm_input" },
	{ OVS, "ovs_vport_receive" }, { OVS, "ovs_execute_actions" },
	{ OVS, "ovs_dp_upcall" },
	{ FRAGMENT, "ip_do_fragment" }, { FRAGMENT, "ip6_fragment" },
	{ FRAGMENT | ICMP, "ip_frag_next" }, { FRAGMENT | ICMP, "ip6_frag_next" },
	{ FRAGMENT, "inet_frag_queue_insert" },
	{ FRAGMENT | ICMP, "skb_morph" },
	{ FRAGMENT, "inet_frag_reasm_finish" },
	{ FRAGMENT, "ipv6_parse_hopopts" }, { FRAGMENT, "ipv6_destopt_rcv" },
	{ FRAGMENT, "ipv6_rthdr_rcv" },
	{ UDP, "udp_sendmsg" }, { UDP, "udpv6_sendmsg" },
	{ UDP, "ip_generic_getfrag" }, { UDP, "udp_send_skb" },
	{ UDP, "udp_v6_send_skb" }, { UDP, "__skb_recv_udp" },
	{ ICMP, "raw_local_deliver" }, { ICMP, "raw6_local_deliver" },
	{ ICMP, "__ip_make_skb" }, { ICMP, "__ip6_make_skb" },
	{ MPTCP, "mptcp_data_ready" },
	{ TLS, "tls_rx_one_record" }, { TLS, "tls_strp_copyin" },
	{ TLS, "tcp_read_done" },
	{ MPTCP | TLS, "__kfree_skb" },
	{ MPTCP | TLS, "skb_attempt_defer_free" },
};

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

static unsigned int group_of(const char *word, size_t len)
{
	size_t i;

	for (i = 0; i < COUNT(groups); i++)
		if (strlen(groups[i].name) == len &&
		    !strncmp(groups[i].name, word, len))
			return groups[i].set;
	return 0;
}

unsigned int stage_groups__none(void)
{
	return IDENTITY;
}

bool stage_groups__icmp(unsigned int set)
{
	return set & ICMP;
}

unsigned int stage_groups__read(const char *text, char *err, size_t len)
{
	const char *names[COUNT(groups)], *s;
	unsigned int set = 0, one;
	char word[32];
	size_t n, i;

	for (s = text;; s += n + 1) {
		n = strcspn(s, ",");
		one = group_of(s, n);
		if (!one)
			break;
		set |= one;
		if (!s[n])
			return set;
	}
	for (i = 0; i < COUNT(groups); i++)
		names[i] = groups[i].name;
	snprintf(word, sizeof(word), "%.*s", (int)(n < 31 ? n : 31), s);
	snprintf(err, len, "no group of stages \"%s\"%s", word,
		 nearest(word, names, COUNT(groups)));
	return 0;
}

bool stage_groups__want(unsigned int set, bool udp, const char *hook)
{
	size_t i;

	if (!set)
		return false;
	/* Datagrams are followed only where they are asked for. */
	if (!udp)
		set &= ~UDP;
	for (i = 0; i < COUNT(members); i++)
		if (!strcmp(members[i].hook, hook))
			return set & members[i].group;
	return true;
}
