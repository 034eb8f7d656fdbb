#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pathprof --stages: readers that are not TCP's, bonds, IPsec, Open vSwitch.  As
# test_stack.sh: each stage has as many packets as a counter of the
# kernel, and each packet one path.
# long: attaches the hooks of --stages for each case

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../../lib.sh"
# shellcheck source=tests/guest/lib/profiles.sh
. "$(dirname "$0")/../../lib/profiles.sh"
# shellcheck source=tests/guest/lib/topology.sh
. "$(dirname "$0")/../../lib/topology.sh"
# shellcheck source=tests/guest/lib/topology_devices.sh
. "$(dirname "$0")/../../lib/topology_devices.sh"

cd "$TMP" || exit
stage_pathprof || exit
exec 3>&1 # numbers worth seeing even when all is well

plan 6
for module in bonding openvswitch tls esp4 tun; do
	modprobe -q "$module"
done

# reader GROUP SIZE: 23 writes each way, read by MPTCP or kTLS.
# Expected: each write, a packet of TCP's, has been read, in the reader's own
# stage.  (TCPOrigDataSent also counts the end of MPTCP's data, without payload.)
reader() {
	local sent data=46
	fresh
	pods || return
	record "$1" "$1" p1 p2 10.1.0.3 4000 4000 23 "$2" \
		"$([ "$1" = tls ] && echo ktls || echo "$1")" || return
	sent=$(snmp_of Tcp OutSegs p1 p2)
	fields "$1" '"\n".join(str((x["packets"], x["end"], *x["flags"],
		*(names[i] for i in x["stages"]))) for x in p["paths"])' |
		sed 's/^/# /' >&3
	is "$(fields "$1" 'n("tx", "data", "delivered"), n("tx", "data"),
		n("unread"), n("stale")')" "$data $data 0 0" &&
		is "$(fields "$1" "n('@$1', 'data')")" "$data" &&
		whole "$1" "$sent"
}
check "MPTCP" reader mptcp 100
check "kTLS" reader tls 100

# Steps: 23 writes each way over bonds of two cables.
# Expected: the bonds count what has their stage.
case_bond() {
	local sent
	fresh
	bonded || return
	record bond vlan p1 p2 10.1.0.3 4000 4000 23 100 || return
	sent=$(snmp_of Tcp OutSegs p1 p2)
	is "$(($(link_of p1 bond tx) + $(link_of p2 bond tx)))" "$sent" &&
		is "$(entered bond bond)" "$((sent + $(link_of p1 bond rx) +
			$(link_of p2 bond rx)))" && whole bond "$sent"
}
check "bonding" case_bond

# Steps: 23 writes each way from pod to pod through ESP.
# Expected: the security associations count what has the stages.
case_ipsec() {
	local sent
	fresh
	ipsec_hosts || return
	record ipsec ipsec,forward p1 p2 10.3.0.2 4000 4000 23 100 || return
	sent=$(snmp_of Tcp OutSegs p1 p2)
	is "$(passed ipsec xfrm_out xfrm_in)" \
		"$(($(xfrm_of g1 1) + $(xfrm_of g2 2))) $(($(xfrm_of g2 1) +
			$(xfrm_of g1 2)))" &&
		is "$(passed ipsec xfrm_out xfrm_in)" "$sent $sent" &&
		whole ipsec "$sent"
}
check "IPsec" case_ipsec

# Steps: 23 writes each way through Open vSwitch; then 7 datagrams that have no
# flow there.
# Expected: the datapath counts what has the stages.
case_ovs() {
	local sent
	fresh
	switched && datapath connect || return
	record ovs ovs p1 p2 10.1.0.3 4000 4000 23 100 || return
	sent=$(snmp_of Tcp OutSegs p1 p2)
	is "$(passed ovs ovs ovs_act ovs_up)" "$sent $sent 0" &&
		is "$(datapath stats)" "$sent 0" && whole ovs "$sent" || return
	fresh
	switched || return
	"$PP" record --sample 1 --udp --stages ovs -o upcall -- \
		ip netns exec p1 python3 -IS -c 'import socket
s = socket.socket(type=socket.SOCK_DGRAM)
for i in range(7):
    s.sendto(b"x" * 100, ("10.1.0.3", 4000))' || return
	is "$(datapath stats)" "0 7" &&
		is "$(fields upcall 'n("tx", "@ovs_up", "dropped")')" 7
}
check "Open vSwitch" case_ovs

# Steps: a driver that calls napi_gro_frags() gets 16 segments.
# Expected: all are followed from GRO on, as many as the device counts.
case_fragments() {
	"$PP" record --sample 1 --addr 10.7.0.1 --dir rx -o frags -- \
		python3 "$TOP/tests/guest/pathprof/stages/fragments.py" 16 >count || return
	is "$(cat count) $(fields frags 'n("rx", "@gro", "dropped"),
		n("rx", "fact no gro"), a["unaccounted"]')" "16 16 0 0"
}
check "a driver of fragments" case_fragments
