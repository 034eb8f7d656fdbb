#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pathprof --stages with tunnels: as test_stack.sh.
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

plan 8
for module in wireguard vxlan ip6_gre ip6_tunnel sit; do
	modprobe -q "$module"
done

# Steps: 7 writes of 20,000 bytes each way, from pod to pod, through a tunnel
# between their hosts.
# Expected: both hosts forward what nft counts there, and IP drops what is too
# long for the tunnel before that; what is wrapped is unwrapped; every packet has
# one path, split or not, and so has every message of ICMP that says so.
tunnel() {
	local sent forwarded
	fresh
	"$1_hosts" || return
	record "$1" all p1 p2 10.3.0.2 4000 4000 7 20000 || return
	# What IP drops as too long is sent again, which OutSegs leaves out.
	sent=$(($(snmp_of Tcp OutSegs p1 p2) +
		$(snmp_of Tcp RetransSegs p1 p2) + $(snmp_of Icmp OutMsgs g1 g2)))
	# Segments of a packet that WireGuard split have its path so far.
	forwarded=$(($(nft_of g1 forward) + $(nft_of g2 forward) +
		$(fields "$1" 'p["counters"].get("segments", 0)')))
	is "$(entered "$1" nf_fwd forward)" "$forwarded $((forwarded +
		$(snmp_of Ip FragFails g1 g2)))" &&
		more_than "$(passed "$1" encap)" 30 encap &&
		is "$(passed "$1" decap)" "$(passed "$1" encap)" &&
		whole "$1" "$sent"
}

check "VXLAN between two hosts" tunnel vxlan
check "GRE between two hosts" tunnel gre
check "WireGuard between two hosts" tunnel wireguard

# Steps: 23 messages each way through WireGuard; look at one.
# Expected: one path and one journey from pod to pod, though it has more stages
# than a path holds: both devices and workers of the tunnel, and the wire.
case_wireguard() {
	local sent number
	fresh
	wireguard_hosts || return
	record short all p1 p2 10.3.0.2 4000 4000 23 100 || return
	sent=$(snmp_of Tcp OutSegs p1 p2)
	is "$(passed short encap) $(passed short crypt) $(passed short decap)" \
		"$sent $sent $sent" && whole short "$sent" || return
	number=$("$PP" journey --list short.events |
		awk '/ data/ { print $1; exit }')
	"$PP" journey short.events "$number" >way || return
	is "$(grep "^-- " way | sed 's/^-- //; s/,.*//' | paste -sd ' ')" \
		"eth0 to-p1 br1 tunnel wire wire tunnel br2 to-p2 eth0" &&
		is "$(grep -cE ' crypt$' way)" 2 && grep -q '^End: delivered' way
}
check "a journey through WireGuard" case_wireguard

# overlay KIND: 23 writes each way, from pod to pod, through a tunnel over IPv6.
# Expected: both devices of the tunnel count what is wrapped and unwrapped.
overlay() {
	local sent
	fresh
	"$1_hosts" || return
	record "$1" tunnel,forward p1 p2 10.3.0.2 4000 4000 23 100 || return
	sent=$(snmp_of Tcp OutSegs p1 p2)
	is "$(passed "$1" encap decap)" "$(($(link_of g1 tunnel tx) +
		$(link_of g2 tunnel tx))) $(($(link_of g1 tunnel rx) +
		$(link_of g2 tunnel rx)))" &&
		is "$(passed "$1" encap)" "$sent" && whole "$1" "$sent"
}
check "VXLAN over IPv6" overlay vxlan6
check "GRE over IPv6" overlay ip6gre
check "IPv4 in IPv6" overlay ip4ip6

# Steps: 23 writes each way through IPv6 in IPv4.
# Expected: as before.
case_sit() {
	local sent
	fresh
	sit_hosts || return
	record sit tunnel p1 p2 fd01::3 4000 4000 23 100 || return
	sent=$(snmp_of Tcp OutSegs p1 p2)
	is "$(passed sit encap decap)" "$sent $sent" && whole sit "$sent"
}
check "IPv6 in IPv4" case_sit
