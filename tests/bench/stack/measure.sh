#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Inside a deterministic guest: instructions per packet of a ping-pong between
# two pods while nothing, pathprof, or bpftrace observes it.

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/guest/topology.sh
. "$(dirname "$0")/../../guest/topology.sh"

trap - EXIT
cd "$TMP" || exit
stage_pathprof && cp "$TOP/build/bin/tcpload" run/ || exit
container_host || exit
ROUNDS=2000
# A line for each packet and function, as tracers print them.
HOOKS="ip_output ip_rcv tcp_v4_rcv tcp_rcv_established ip_forward nf_hook_slow"

load() {
	ip netns exec p1 "$TMP/run/tcpload" rounds --answers --count "$1" \
		--size 1 --to p2 --address 10.3.0.2 --device eth0
}

# median FILE...: of the loads' instructions per packet.
measure() {
	load 200 >/dev/null
	for _ in 1 2 3; do load $ROUNDS; done | python3 -IS -c '
import json, sys
ns = sorted(d["ns"] / d["packets"] for d in map(json.loads, sys.stdin))
print(ns[1])'
}

# arm NAME COMMAND...: ready when the file "ready" has a byte.
arm() {
	local name=$1 cost
	shift
	[[ $name =~ $only ]] || return 0
	if [ $# -eq 0 ]; then
		cost=$(measure)
		base=${base:-$cost}
	else
		: >ready
		"$@" &
		wait_for 300 test -s ready || exit
		cost=$(measure)
		kill -INT $!
		wait $!
	fi
	python3 -IS -c "print('%-24s %9.0f %+9.0f %+7.1f %%' % ('$name', $cost,
		$cost - $base, ($cost / $base - 1) * 100))"
}

record() { exec "$PP" record --sample 1 "$@" -o p.json --ready-fd 9 9>ready 2>/dev/null; }
default() { exec "$PP" record -o p.json --ready-fd 9 9>ready 2>/dev/null; }
trace() {
	local hook program='BEGIN { printf("up\n"); }'
	for hook in $HOOKS; do
		program+=" kfunc:$hook { printf(\"%llx %llu $hook\\n\", (uint64)args->skb, nsecs); }"
	done
	exec bpftrace -e "$program" >ready
}

only=${1-}
base=
echo "arm                      per packet     added"
arm unprofiled
base=${base:-$(measure)}
arm default default
arm "--sample 1" record
for groups in forward netfilter bridge all; do
	arm "--stages $groups" record --stages "$groups"
done
command -v bpftrace >/dev/null && arm "bpftrace, 6 functions" trace
arm "unprofiled again"
