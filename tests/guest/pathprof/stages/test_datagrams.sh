#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pathprof --stages: datagrams from write to copy, fragments, IPv6 extension
# headers.  As test_stack.sh: each stage has as many packets as a counter
# of the kernel, and each packet one path.
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

plan 7

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
		is "$(fields fragments 'p["counters"]["fragments"]')" \
			$((parts - whole_ones)) &&
		whole fragments "$(snmp_of Udp OutDatagrams p1 p2)"
}
check "fragments of IPv4" case_fragments

# later_of NETNS...: fragments after the first, of all that were divided.
later_of() {
	echo $(($(snmp_of Ip FragCreates "$@") - $(snmp_of Ip FragOKs "$@")))
}

# wrapped KIND: 200 datagrams each way, each too long for one frame, through a
# tunnel over UDP between the hosts, which divide the fragments once more.
# Expected: each datagram is one packet, put together and read; the fragments
# after the first are counted, once each, and what wraps them is no packet.
# (WireGuard's handshake and keepalive are packets, and no fragments.)
wrapped() {
	local sent whole_ones
	fresh
	"$1_hosts" || return
	RECORD=--udp record "$1" udp,fragment,tunnel p1 p2 10.3.0.2 4000 4000 \
		200 5000 udp || return
	sent=$(snmp_of Udp OutDatagrams p1 p2)
	whole_ones=$(snmp_of Ip ReasmOKs p1 p2)
	more_than "$(later_of p1 g1 p2 g2)" 2000 "later fragments" || return
	is "$(fields "$1" '(n("delivered", "@send", "@encap", "@decap"),
		n("@defrag"), n("@reasm"), p["counters"]["fragments"],
		n("dropped"), n("stale"), a["unaccounted"])')" \
		"$sent $whole_ones $whole_ones $(later_of p1 g1 p2 g2) 0 0 0" || {
		each_path "$1"
		return 1
	}
}
check "fragments in VXLAN" wrapped vxlan
check "fragments in WireGuard" wrapped wireguard

# Steps: the same, but only what is seen in g2 begins: there half of the
# fragments come out of the tunnel.
# Expected: as before.
case_unwrapped() {
	local sent
	fresh
	vxlan_hosts || return
	RECORD="--udp --netns g2" record unwrapped udp,fragment,tunnel p1 p2 \
		10.3.0.2 4000 4000 23 5000 udp || return
	sent=$(snmp_of Udp OutDatagrams p1 p2)
	is "$(fields unwrapped '(a["sampled"], n("rx", "delivered"),
		p["counters"]["fragments"])')" \
		"$sent $sent $(later_of p1 g1 p2 g2)"
}
check "fragments out of VXLAN from another host" case_unwrapped

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
		whole options "$(($(snmp_of Tcp OutSegs p1 p2) +
			$(snmp_of Tcp RetransSegs p1 p2)))"
}
check "IPv6 extension headers" case_options
