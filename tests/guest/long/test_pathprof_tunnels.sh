#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pathprof --stages with tunnels: as test_pathprof_stack.sh.

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/guest/profiles.sh
. "$(dirname "$0")/../profiles.sh"
# shellcheck source=tests/guest/topology.sh
. "$(dirname "$0")/../topology.sh"

cd "$TMP" || exit
stage_pathprof || exit
exec 3>&1 # numbers worth seeing even when all is well

plan 2

# Steps: 7 writes of 20,000 bytes each way, from pod to pod, through a tunnel
# between their hosts.
# Expected: both hosts forward what nft counts there, and IP drops what is too
# long for the tunnel before that; what is wrapped is unwrapped; every packet has
# one path, split or not.
tunnel() {
	local sent forwarded
	fresh
	"$1_hosts" || return
	record "$1" all p1 p2 10.3.0.2 4000 4000 7 20000 || return
	# What IP drops as too long is sent again, which OutSegs leaves out.
	sent=$(($(snmp_of Tcp OutSegs p1 p2) +
		$(snmp_of Tcp RetransSegs p1 p2)))
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
