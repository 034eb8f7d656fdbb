/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one table of stages, and the small vocabularies that go with it (how a
 * path ends, what a packet was, what the profiler lost), shared by the BPF
 * programs and by userspace.  Ids are written to profile files: append only.
 */
#ifndef PATHPROF_STAGES_H
#define PATHPROF_STAGES_H

/*
 * STAGE(id, symbol, name, direction, order, kind, category, hooks, meaning)
 *
 * Ids 35, 37, 38 and 39 were stages of format version 1.  There can be no more ids
 * than a per-CPU value has histograms, so 37 and 38 have others since: a file has
 * a table of its own stages.
 *
 * kind: WORK   the time until the next stage is work on the packet
 *       WAIT   the packet lies in a queue until the next stage
 *       END    nothing follows
 * category: one of PATHPROF_CATEGORIES, what most of the time there goes to
 * order sorts stages along the way of a packet; hooks are program names of
 * pathprof.bpf.c, any one of which provides the stage.
 */
#define PATHPROF_STAGES(STAGE) \
STAGE(1, RX_GRO, "gro", RX, 10, WORK, DEVICE, \
      "napi_gro_receive_entry napi_gro_frags_entry", \
      "driver hands the packet to GRO") \
STAGE(2, RX_MERGED, "merged", RX, 20, END, DEVICE, \
      "napi_gro_receive_exit napi_gro_frags_exit", \
      "GRO merged it into an earlier packet") \
STAGE(3, RX_NETIF, "netif", RX, 30, WORK, TCPIP, "netif_receive_skb", \
      "packet enters the stack") \
STAGE(4, RX_IP, "ip", RX, 40, WORK, TCPIP, "ip_rcv_core ip6_rcv_core", \
      "IP header checks") \
STAGE(5, RX_DELIVER, "local", RX, 50, WORK, TCPIP, \
      "ip_local_deliver ip6_input", \
      "routed to this host") \
STAGE(24, RX_SOCK, "socket", RX, 65, WORK, TCPIP, "sk_filter_trim_cap", \
      "the socket is found") \
STAGE(6, RX_TCP, "tcp", RX, 60, WORK, TCPIP, "tcp_v4_rcv tcp_v6_rcv", \
      "TCP looks up the socket") \
STAGE(7, RX_BACKLOG, "backlog", RX, 70, WAIT, QUEUE, "tcp_add_backlog", \
      "socket busy: waits for its owner") \
STAGE(8, RX_DO_RCV, "do_rcv", RX, 80, WORK, TCPIP, \
      "tcp_v4_do_rcv tcp_v6_do_rcv", \
      "socket owned, processing begins") \
STAGE(9, RX_EST, "estab", RX, 90, WORK, TCPIP, "tcp_probe", \
      "established socket: header prediction") \
STAGE(10, RX_STATE, "state", RX, 90, WORK, TCPIP, "tcp_rcv_state_process", \
      "any other state: opening, closing") \
STAGE(11, RX_VALIDATE, "validate", RX, 100, WORK, TCPIP, \
      "tcp_validate_incoming", \
      "not predicted: full header checks") \
STAGE(12, RX_ACK_FAST, "ack", RX, 110, WORK, TCPIP, "tcp_ack", \
      "acknowledgement, predicted") \
STAGE(13, RX_ACK_SLOW, "ack_slow", RX, 110, WORK, TCPIP, "tcp_ack", \
      "acknowledgement, all checks") \
STAGE(14, RX_DATA_QUEUE, "sort", RX, 120, WORK, TCPIP, "tcp_data_queue", \
      "not predicted: place data by sequence") \
STAGE(15, RX_QUEUE_RCV, "queue", RX, 130, WORK, TCPIP, "tcp_queue_rcv", \
      "in order: onto the receive queue") \
STAGE(16, RX_SEND_ACK, "ack_now", RX, 140, WORK, TCPIP, "tcp_send_ack", \
      "an ACK is sent at once") \
STAGE(17, RX_DELAY_ACK, "ack_late", RX, 140, WORK, TCPIP, \
      "tcp_send_delayed_ack", \
      "the ACK is delayed") \
STAGE(18, RX_READY, "wake", RX, 150, WORK, WAKE, \
      "sk_data_ready sock_def_readable", \
      "the reader is woken") \
STAGE(19, RX_DONE, "done", RX, 160, WAIT, QUEUE, \
      "tcp_rcv_established tcp_rcv_state_process softirq_exit", \
      "TCP is done: waits for the reader") \
STAGE(20, RX_COPY, "copy", RX, 170, WORK, COPY, "skb_copy_datagram_iovec", \
      "copied to the reader") \
STAGE(25, RX_READ, "read", RX, 175, END, COPY, "tcp_rcv_space_adjust", \
      "the reader has all of it") \
STAGE(26, RX_USED, "used", RX, 175, END, OTHER, \
      "tcp_rcv_established tcp_rcv_state_process softirq_exit", \
      "used up by TCP, as a pure ACK is") \
STAGE(21, RX_FREE, "free", RX, 180, END, OTHER, \
      "consume_skb skb_consume_udp", \
      "packet freed after use") \
STAGE(28, RX_TIMEWAIT, "timewait", RX, 90, WORK, TCPIP, \
      "tcp_timewait_state_process", \
      "a connection that has closed (TIME_WAIT)") \
STAGE(29, RX_LISTEN, "listen", RX, 90, WORK, TCPIP, "tcp_rcv_state_process", \
      "a SYN at a listening socket") \
STAGE(30, RX_SYNACK, "synack", RX, 130, WORK, TCPIP, "tcp_make_synack", \
      "a SYN is answered") \
STAGE(31, RX_REQUEST, "request", RX, 85, WORK, TCPIP, "tcp_check_req", \
      "a connection that is not yet accepted") \
STAGE(27, RX_AGAIN, "again", RX, 185, END, OTHER, \
      "netif_receive_skb napi_gro_receive_entry napi_gro_frags_entry", \
      "entered the stack again: bridge, tunnel") \
STAGE(22, RX_COALESCED, "joined", RX, 180, END, OTHER, "kfree_skb_partial", \
      "data joined to the packet queued before") \
STAGE(23, DROP, "drop", ANY, 190, END, OTHER, "kfree_skb", \
      "dropped by the kernel, with a reason") \
STAGE(32, TX_WRITE, "write", TX, 10, WORK, COPY, "tcp_sendmsg_locked", \
      "a write by the application") \
STAGE(33, TX_ACKED, "acked", TX, 10, WORK, TCPIP, "tcp_probe", \
      "an arriving packet made room to send") \
STAGE(34, TX_TSQ, "tsq", TX, 10, WORK, TCPIP, "__tcp_transmit_skb", \
      "room in the device queue (TSQ)") \
STAGE(36, TX_TIMER, "timer", TX, 10, WORK, TCPIP, "__tcp_transmit_skb", \
      "a retransmission or probe timer") \
STAGE(37, RX_ICMP, "icmp", RX, 60, WORK, TCPIP, \
      "raw_local_deliver raw6_local_deliver", \
      "ICMP answers or uses it, or a socket gets it") \
STAGE(38, TX_ICMP, "icmp_out", TX, 40, WORK, TCPIP, \
      "__ip_make_skb __ip6_make_skb", \
      "an ICMP message has its headers") \
STAGE(40, TX_RETRANS, "retrans", TX, 30, WORK, TCPIP, "__tcp_transmit_skb", \
      "sent again") \
STAGE(41, TX_TRANSMIT, "transmit", TX, 40, WORK, TCPIP, "__tcp_transmit_skb", \
      "TCP header is built") \
STAGE(42, TX_IP, "ip", TX, 50, WORK, TCPIP, "__ip_queue_xmit inet6_csk_xmit", \
      "route and IP header") \
STAGE(43, TX_OUTPUT, "output", TX, 60, WORK, TCPIP, "ip_output ip6_output", \
      "output hooks") \
STAGE(44, TX_FINISH, "neigh", TX, 70, WORK, TCPIP, \
      "ip_finish_output2 ip6_finish_output2", \
      "neighbour and link header") \
STAGE(45, TX_DEV, "dev", TX, 80, WORK, DEVICE, "net_dev_queue", \
      "handed to the device layer") \
STAGE(46, TX_ENQUEUE, "qdisc", TX, 90, WAIT, QUEUE, "qdisc_enqueue", \
      "waits in the queueing discipline") \
STAGE(47, TX_DEQUEUE, "dequeue", TX, 100, WORK, DEVICE, "qdisc_dequeue", \
      "taken from the queueing discipline") \
STAGE(48, TX_SPLIT, "split", TX, 105, WORK, DEVICE, "__skb_gso_segment", \
      "split in software: device lacks the offload") \
STAGE(49, TX_START, "driver", TX, 110, WORK, DEVICE, "net_dev_start_xmit", \
      "handed to the driver") \
STAGE(50, TX_SENT, "sent", TX, 120, END, DEVICE, "net_dev_xmit", \
      "the driver took it") \
STAGE(51, TX_BUSY, "busy", TX, 115, WAIT, QUEUE, "net_dev_xmit", \
      "the driver was busy: queued again") \
STAGE(53, TX_READER, "reader", TX, 10, WORK, TCPIP, "__tcp_transmit_skb", \
      "the application read, or closed") \
STAGE(52, TX_FREE, "freed", TX, 180, END, OTHER, "consume_skb", \
      "freed before the driver had it") \
STAGE(54, CROSS, "cross", ANY, 25, WAIT, QUEUE, \
      "netif_rx __dev_forward_skb gro_cells_receive", \
      "at another device of this host: waits for softirq") \
STAGE(55, ROUTE, "route", ANY, 45, WORK, TCPIP, \
      "ip_route_input_noref ip6_route_input", \
      "routing lookup of a received packet") \
STAGE(56, FORWARD, "forward", ANY, 52, WORK, TCPIP, "ip_forward ip6_forward", \
      "IP forwards it to another device") \
STAGE(57, NF_PRE, "nf_pre", ANY, 42, WORK, TCPIP, "nf_hook_slow", \
      "netfilter: prerouting") \
STAGE(58, NF_IN, "nf_in", ANY, 55, WORK, TCPIP, "nf_hook_slow", \
      "netfilter: input") \
STAGE(59, NF_FORWARD, "nf_fwd", ANY, 53, WORK, TCPIP, "nf_hook_slow", \
      "netfilter: forward") \
STAGE(60, NF_OUT, "nf_out", ANY, 58, WORK, TCPIP, "nf_hook_slow", \
      "netfilter: output") \
STAGE(61, NF_POST, "nf_post", ANY, 62, WORK, TCPIP, "nf_hook_slow", \
      "netfilter: postrouting") \
STAGE(62, NF_DEVICE, "nf_dev", ANY, 34, WORK, TCPIP, "nf_hook_slow", \
      "netfilter: ingress or egress of a device") \
STAGE(73, NF_BRIDGE, "nf_bridge", ANY, 37, WORK, TCPIP, "nf_hook_slow", \
      "netfilter: any hook of a bridge") \
STAGE(64, CONNTRACK, "conntrack", ANY, 43, WORK, TCPIP, "nf_conntrack_in", \
      "connection tracking, within a hook of netfilter") \
STAGE(65, BRIDGE, "bridge", ANY, 35, WORK, DEVICE, \
      "br_handle_frame br_dev_xmit", \
      "a bridge learns and looks up the address") \
STAGE(66, BR_PORT, "br_port", ANY, 38, WORK, DEVICE, "br_forward", \
      "bridge: to one port") \
STAGE(67, BR_FLOOD, "br_flood", ANY, 38, WORK, DEVICE, "br_flood", \
      "bridge: to all ports, address not known") \
STAGE(68, VLAN, "vlan", ANY, 33, WORK, DEVICE, \
      "vlan_do_receive vlan_dev_hard_start_xmit", \
      "VLAN device") \
STAGE(69, MACVLAN, "macvlan", ANY, 33, WORK, DEVICE, \
      "macvlan_handle_frame macvlan_start_xmit", \
      "macvlan device") \
STAGE(70, IPVLAN, "ipvlan", ANY, 33, WORK, DEVICE, \
      "ipvlan_handle_frame ipvlan_start_xmit", \
      "ipvlan device") \
STAGE(78, ENCAP, "encap", ANY, 112, WORK, DEVICE, \
      "vxlan_xmit geneve_xmit ip_tunnel_xmit ip6_tnl_start_xmit " \
      "ip6gre_tunnel_xmit sit_tunnel_xmit wg_xmit " \
      "wg_socket_send_skb_to_peer", \
      "a tunnel adds its headers") \
STAGE(72, DECAP, "decap", ANY, 60, WORK, DEVICE, \
      "vxlan_rcv geneve_udp_encap_recv ip_tunnel_rcv __ip6_tnl_rcv " \
      "ipip6_rcv wg_receive", \
      "a tunnel removes its headers") \
STAGE(63, CRYPT_WAIT, "crypt_q", ANY, 114, WAIT, QUEUE, \
      "wg_xmit wg_receive encrypt_packet decrypt_packet", \
      "WireGuard: waits for a worker or its turn") \
STAGE(74, CRYPT, "crypt", ANY, 113, WORK, OTHER, \
      "encrypt_packet decrypt_packet", \
      "WireGuard: encrypted or decrypted by a worker") \
STAGE(75, TC, "tc", ANY, 34, WORK, DEVICE, "tcf_classify tc_program", \
      "filters and programs of tc") \
STAGE(76, XDP_GENERIC, "xdp", ANY, 31, WORK, DEVICE, "do_xdp_generic", \
      "generic XDP program") \
STAGE(77, TAP, "tap", ANY, 32, WORK, DEVICE, \
      "packet_rcv tpacket_rcv dev_queue_xmit_nit", \
      "copied for AF_PACKET, as tcpdump does") \
STAGE(71, BOND, "bond", ANY, 33, WORK, DEVICE, \
      "bond_start_xmit bond_handle_frame team_xmit team_handle_frame", \
      "bonding or team device") \
STAGE(79, TX_SEND, "send", TX, 10, WORK, TCPIP, "udp_sendmsg udpv6_sendmsg", \
      "a datagram is written: route, memory") \
STAGE(80, TX_FILL, "fill", TX, 20, WORK, COPY, "ip_generic_getfrag", \
      "its data is copied from the writer") \
STAGE(81, TX_UDP, "udp", TX, 40, WORK, TCPIP, "udp_send_skb udp_v6_send_skb", \
      "UDP header is built") \
STAGE(82, RX_MPTCP, "mptcp", RX, 152, WORK, TCPIP, "mptcp_data_ready", \
      "a subflow hands data to MPTCP") \
STAGE(83, RX_TLS, "tls", RX, 168, WORK, OTHER, "tls_rx_one_record", \
      "kTLS decrypts records, of which it holds the first byte") \
STAGE(84, XFRM_OUT, "xfrm_out", ANY, 64, WORK, OTHER, "xfrm_output_resume", \
      "IPsec encrypts, and adds its headers") \
STAGE(85, XFRM_IN, "xfrm_in", ANY, 60, WORK, OTHER, "xfrm_input", \
      "IPsec decrypts, and removes its headers") \
STAGE(86, OVS, "ovs", ANY, 36, WORK, DEVICE, "ovs_vport_receive", \
      "Open vSwitch looks up the flow") \
STAGE(87, OVS_ACTIONS, "ovs_act", ANY, 37, WORK, DEVICE, \
      "ovs_execute_actions", \
      "Open vSwitch executes the flow's actions") \
STAGE(88, OVS_UPCALL, "ovs_up", ANY, 37, WORK, DEVICE, "ovs_dp_upcall", \
      "Open vSwitch asks userspace: no flow, or by an action") \
STAGE(89, FRAGMENT, "frag", ANY, 63, WORK, TCPIP, \
      "ip_do_fragment ip6_fragment", \
      "divided into fragments") \
STAGE(90, DEFRAG, "defrag", ANY, 41, WAIT, QUEUE, "inet_frag_queue_insert", \
      "waits for the other fragments") \
STAGE(91, REASSEMBLE, "reasm", ANY, 41, WORK, TCPIP, \
      "inet_frag_reasm_finish", \
      "put together from its fragments") \
STAGE(92, EXTENSION, "ext6", ANY, 41, WORK, TCPIP, \
      "ipv6_parse_hopopts ipv6_destopt_rcv ipv6_rthdr_rcv", \
      "an IPv6 extension header") \
STAGE(93, XDP_NATIVE, "xdp_drv", ANY, 26, WORK, DEVICE, "veth_xdp_rcv_skb", \
      "native XDP program of a veth device") \
STAGE(94, XDP_REDIRECT, "xdp_out", ANY, 31, WORK, DEVICE, \
      "veth_xdp_rcv_skb xdp_do_generic_redirect", \
      "an XDP program sends it elsewhere") \
STAGE(95, XSK, "xsk", ANY, 31, WORK, COPY, "xsk_generic_rcv", \
      "copied to an AF_XDP socket")

/*
 * Ids of --stage: functions that the user names.  A profile has their names; of
 * the others of these ids it says nothing.
 */
#define ST_USER		96
#define USER_STAGES	6

/* CATEGORY(symbol, name): coarser than stages, as attach points allow. */
#define PATHPROF_CATEGORIES(CATEGORY) \
CATEGORY(COPY, "copy") \
CATEGORY(TCPIP, "TCP/IP") \
CATEGORY(DEVICE, "device") \
CATEGORY(WAKE, "wake-up") \
CATEGORY(QUEUE, "waiting") \
CATEGORY(OTHER, "other")

/* END(id, symbol, name, meaning): how a path ended; counted one by one. */
#define PATHPROF_ENDS(END) \
END(0, FOLLOWED, "still followed", "still on its way when the recording ended") \
END(1, DELIVERED, "delivered", "read by the application") \
END(2, COALESCED, "joined", "data joined to the packet queued before") \
END(3, MERGED, "merged", "merged by GRO into an earlier packet") \
END(4, CONSUMED, "consumed", "used up by the stack, as a pure ACK is") \
END(5, SENT, "sent", "the driver took it") \
END(6, FREED, "freed", "freed before the driver had it") \
END(7, DROPPED, "dropped", "dropped by the kernel") \
END(8, EVICTED, "evicted", "pathprof gave its slot to a newer packet") \
END(9, STALE, "stale", "its end was not seen; the address was reused") \
END(10, REENTERED, "reentered", "entered the stack again: bridge, tunnel") \
END(11, UNREAD, "unread", "data freed without being copied to a reader") \
END(12, CUT, "cut off", "still on its way when a sampling burst ended") \
END(13, FORWARDED, "forwarded", "received, and sent on by the driver") \
END(14, SPLIT, "split", "gave way to its segments, split in software")

/* FLAG(bit, symbol, name, meaning): what is known of the packet. */
#define PATHPROF_FLAGS(FLAG) \
FLAG(0, DATA, "data", "carries payload") \
FLAG(1, PURE_ACK, "ack", "acknowledgement without payload, SYN, FIN, RST") \
FLAG(2, SYN, "syn", "SYN set") \
FLAG(3, FIN, "fin", "FIN set") \
FLAG(4, RST, "rst", "RST set") \
FLAG(5, EST, "established", "reached an established socket") \
FLAG(6, FAST, "fast", "header prediction succeeded") \
FLAG(7, SLOW, "slow", "header prediction failed") \
FLAG(8, OOO, "ooo", "arrived out of order") \
FLAG(9, BACKLOG, "backlog", "waited for a busy socket") \
FLAG(10, GRO_MERGED, "gro", "GRO merged later packets into it") \
FLAG(11, SUPER, "super", "stands for several segments") \
FLAG(12, RETRANS, "retransmit", "sent again") \
FLAG(13, HPACK, "hpack", "counted by the kernel as TCPHPAcks") \
FLAG(14, PUREACKS, "pureack", "counted by the kernel as TCPPureAcks") \
FLAG(15, COPIED, "copied", "copied to a reader") \
FLAG(16, CUT, "cut", "more stages than a path can hold") \
FLAG(17, UDP, "udp", "UDP") \
FLAG(18, PROBE, "probe", "keepalive or zero window probe") \
FLAG(19, ICMP, "icmp", "ICMP or ICMPv6")

/*
 * FACT(bit, symbol, name, branch, meaning): why a branch was taken, read from
 * the kernel's state before it was.  branch groups them for `explain`.  Bit 29
 * is reserved: "zerocopy", which no version recorded.
 */
#define PATHPROF_FACTS(FACT) \
FACT(0, PRED_OFF, "prediction off", "prediction", \
     "header prediction was switched off") \
FACT(1, PRED_FLAGS, "flags", "prediction", \
     "a TCP flag or option length was not the predicted one") \
FACT(2, PRED_WINDOW, "window change", "prediction", \
     "the peer changed the window it advertises") \
FACT(3, PRED_SEQ, "sequence", "prediction", \
     "not the next byte expected") \
FACT(4, PRED_ACK, "ack range", "prediction", \
     "acknowledges what was not sent") \
FACT(5, PRED_OOO, "out-of-order queue", "prediction", \
     "data waits in the out-of-order queue") \
FACT(6, PRED_MEMORY, "forward alloc", "prediction", \
     "the socket's reserved memory was too small for it") \
FACT(7, PRED_URGENT, "urgent", "prediction", \
     "urgent data, now or pending") \
FACT(8, PRED_TIMESTAMP, "timestamp", "prediction", \
     "no timestamp, or an older one than the last (PAWS)") \
FACT(9, PRED_SYN_FIN, "syn or fin", "prediction", \
     "SYN, FIN or RST set") \
FACT(10, PRED_RCVBUF, "receive buffer", "prediction", \
     "the receive buffer is full") \
FACT(11, PRED_ZERO_WINDOW, "zero window", "prediction", \
     "no window is advertised") \
FACT(12, PRED_MPTCP, "mptcp", "prediction", \
     "a subflow of MPTCP") \
FACT(13, GRO_OFF, "gro off", "gro", \
     "the device has GRO switched off") \
FACT(14, GRO_NONE, "no gro", "gro", \
     "the driver does not use GRO") \
FACT(15, DEMUX_OFF, "early demux off", "demux", \
     "early demux is switched off (sysctl)") \
FACT(16, OWNED, "socket owned", "backlog", \
     "the socket was owned by a process when it arrived") \
FACT(17, ACK_NOW, "ack now", "ack", \
     "an ACK was sent while it was processed") \
FACT(18, ACK_LATER, "ack delayed", "ack", \
     "the ACK was put off") \
FACT(19, ACK_TIMER, "delayed ack", "transmit", \
     "sent by the delayed ACK timer") \
FACT(20, ACK_WINDOW, "window update", "transmit", \
     "an ACK that the reader caused") \
FACT(21, HELD_RWND, "held by rwnd", "hold", \
     "the peer's window held it back before") \
FACT(22, HELD_CWND, "held by cwnd", "hold", \
     "the congestion window held it back before") \
FACT(23, HELD_NAGLE, "held by nagle or cork", "hold", \
     "less than a segment: Nagle or a cork held it back before") \
FACT(24, HELD_TSO, "held by tso or pacing", "hold", \
     "TSO deferral or pacing held it back before") \
FACT(25, HELD_TSQ, "held by tsq", "hold", \
     "too much of the socket in the device's queue (TSQ)") \
FACT(26, TSO_OFF, "tso off", "split", \
     "the device does not split segments") \
FACT(27, QUEUED, "queued", "qdisc", \
     "a queueing discipline held it") \
FACT(28, SPLIT, "software split", "split", \
     "split into segments in software") \
FACT(30, PRED_OTHER, "unknown test", "prediction", \
     "all known conditions were met, and the kernel did not predict it")

/*
 * COUNTER(id, symbol, name, lost, meaning); lost: this counter is part of
 * the account's right-hand side although no path was stored.  Names are keys of
 * profile files, so "windows" stays the name of the number of bursts.
 */
#define PATHPROF_COUNTERS(COUNTER) \
COUNTER(0, SAMPLED, "sampled", 0, "packets chosen and matching the filter") \
COUNTER(1, NO_SLOT, "no_slot", 1, "no free slot to follow it") \
COUNTER(2, MAP_FULL, "map_full", 1, "path table full or busy") \
COUNTER(3, ABANDONED, "abandoned", 1, "TCP gave up before IP saw it") \
COUNTER(4, SOCK_CLASH, "sock_clash", 1, "two sockets shared a work entry") \
COUNTER(5, NOT_TCP, "not_tcp", 0, "chosen, but of a protocol that is not followed") \
COUNTER(6, FILTERED, "filtered", 0, "chosen, but not matching the filter") \
COUNTER(7, UNPARSED, "unparsed", 0, "chosen, but its headers were not linear") \
COUNTER(8, BURSTS, "windows", 0, "sampling bursts") \
COUNTER(9, SPLIT, "segments", 0, \
	"segments of a packet split in software, followed one by one") \
COUNTER(10, COPIES, "copies", 0, \
	"copies of packets, or others first seen on their way") \
COUNTER(11, FRAGMENTS, "fragments", 0, \
	"fragments without a TCP, UDP or ICMP header: all but the first")

enum pathprof_stage {
#define STAGE(id, sym, name, dir, order, kind, cat, hooks, meaning) \
	ST_##sym = id,
	PATHPROF_STAGES(STAGE)
#undef STAGE
	/* A per-CPU value is 32 KiB at most: no more than 102 histograms. */
	PATHPROF_STAGE_MAX = ST_USER + USER_STAGES,
};

enum pathprof_category {
#define CATEGORY(sym, name) CAT_##sym,
	PATHPROF_CATEGORIES(CATEGORY)
#undef CATEGORY
	PATHPROF_CATEGORY_MAX
};

enum pathprof_end {
#define END(id, sym, name, meaning) END_##sym = id,
	PATHPROF_ENDS(END)
#undef END
	PATHPROF_END_MAX = 16,
};

enum pathprof_flag {
#define FLAG(bit, sym, name, meaning) PF_##sym = 1U << bit,
	PATHPROF_FLAGS(FLAG)
#undef FLAG
};

enum pathprof_fact {
#define FACT(bit, sym, name, branch, meaning) FACT_##sym = 1U << bit,
	PATHPROF_FACTS(FACT)
#undef FACT
};

enum pathprof_counter {
#define COUNTER(id, sym, name, lost, meaning) CN_##sym = id,
	PATHPROF_COUNTERS(COUNTER)
#undef COUNTER
	PATHPROF_COUNTER_MAX = 16,
};

#endif
