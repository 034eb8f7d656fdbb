#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pathprof --stages: datagrams, readers that are not TCP's, bonds, IPsec, Open
# vSwitch, fragments.  As test_pathprof_stack.sh: each stage has as many packets
# as a counter of the kernel, and each packet one path.

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/guest/profiles.sh
. "$(dirname "$0")/profiles.sh"
# shellcheck source=tests/guest/topology.sh
. "$(dirname "$0")/topology.sh"
# shellcheck source=tests/guest/topology_devices.sh
. "$(dirname "$0")/topology_devices.sh"

cd "$TMP" || exit
stage_pathprof || exit
exec 3>&1 # numbers worth seeing even when all is well

plan 9
for module in bonding openvswitch tls esp4 veth; do
	modprobe -q "$module"
done

# udp ADDRESS SIZE COUNTER_FILE WORD...: 23 datagrams each way.
# Expected: each has been written, copied and sent, and read with its copy.
udp() {
	local sent read
	fresh
	pods6 || return
	RECORD=--udp record udp udp p1 p2 "$1" 4000 4000 23 "$2" udp || return
	sent=$("$3" "$4" p1 p2) read=$("$3" "$5" p1 p2)
	is "$(passed udp send fill udp dev)" "$sent $sent $sent $sent" &&
		is "$(passed udp copy)" "$read" &&
		is "$(fields udp 'n("tx", "delivered", "udp", "@done", "@copy")')" \
			"$read" && whole udp "$sent"
}

udp4_of() { snmp_of Udp "$@"; }

# udp6_of WORD NETNS...
udp6_of() {
	local word=$1 ns
	shift
	for ns; do
		ip netns exec "$ns" cat /proc/net/snmp6
	done | awk -v word="$word" '$1 == word { sum += $2 } END { print sum + 0 }'
}

check "UDP from write to copy" udp 10.1.0.3 100 udp4_of OutDatagrams InDatagrams
check "UDP over IPv6" udp fd01::3 100 udp6_of Udp6OutDatagrams Udp6InDatagrams

# Steps: 23 datagrams each way, each too long for one frame.
# Expected: each is divided and put together as often as IP counts; its first
# fragment carries the path, and the others are counted.
case_fragments() {
	local whole_ones parts
	fresh
	pods || return
	RECORD=--udp record fragments udp,fragment p1 p2 10.1.0.3 4000 4000 23 \
		5000 udp || return
	whole_ones=$(snmp_of Ip ReasmOKs p1 p2)
	parts=$(snmp_of Ip FragCreates p1 p2)
	more_than "$whole_ones" 40 "datagrams put together" &&
		is "$(passed fragments frag)" "$(snmp_of Ip FragOKs p1 p2)" &&
		is "$(passed fragments defrag reasm)" \
			"$whole_ones $whole_ones" &&
		more_than "$(fields fragments 'p["counters"]["fragments"]')" \
			$((parts - whole_ones - 1)) "later fragments" &&
		whole fragments "$(snmp_of Udp OutDatagrams p1 p2)"
}
check "fragments of IPv4" case_fragments

# Steps: 23 writes each way, with a destination options header before TCP.
# Expected: TCP behind that header is followed; nft counts what has its stage.
case_options() {
	local ns counted=0
	fresh
	pods6 || return
	for ns in p1 p2; do
		ip netns exec "$ns" nft "table ip6 t {
			counter options { }
			chain c {
				type filter hook input priority 0
				exthdr dst exists counter name options
			}
		}" || return
	done
	record options fragment p1 p2 fd01::3 4000 4000 23 100 options || return
	for ns in p1 p2; do
		counted=$((counted + $(ip netns exec "$ns" nft list counter ip6 t \
			options | awk '$1 == "packets" { print $2 }')))
	done
	more_than "$counted" 46 "packets with the header" &&
		is "$(passed options ext6)" "$counted" &&
		whole options "$(snmp_of Tcp OutSegs p1 p2)"
}
check "IPv6 extension headers" case_options

# data_of NETNS...: segments with new data.
data_of() {
	local ns
	for ns; do
		ip netns exec "$ns" cat /proc/net/netstat
	done | awk '$1 == "TcpExt:" {
		if (at) { sum += $at; at = 0; next }
		for (i = 2; i <= NF; i++) if ($i == "TCPOrigDataSent") at = i }
		END { print sum + 0 }'
}

# reader GROUP SIZE: 23 writes each way, read by MPTCP or kTLS.
# Expected: what TCP sent has been read, in the reader's own stage.
reader() {
	local sent data
	fresh
	pods || return
	record "$1" "$1" p1 p2 10.1.0.3 4000 4000 23 "$2" \
		"$([ "$1" = tls ] && echo ktls || echo "$1")" || return
	sent=$(snmp_of Tcp OutSegs p1 p2) data=$(data_of p1 p2)
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
