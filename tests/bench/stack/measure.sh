#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Inside a deterministic guest: instructions per packet of a ping-pong between
# two pods while nothing, pathprof, or another tracer observes it.

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/guest/lib/topology.sh
. "$(dirname "$0")/../../guest/lib/topology.sh"

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

# The median of three loads' instructions per packet.  They have ended before
# Python starts: beside it, on the one CPU of this guest, they took 40 % more.
measure() {
	load 200 >/dev/null
	for _ in 1 2 3; do load $ROUNDS; done >loads
	python3 -IS -c '
import json, sys
ns = sorted(d["ns"] / d["packets"] for d in map(json.loads, sys.stdin))
print(ns[1])' <loads
}

# arm NAME COMMAND...: begins when the file "ready" has a line with READY.
READY=
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
		wait_for 900 grep -q "$READY" ready || exit
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

# Those in the folder PEERS, each with all it can say of a packet's way.
pwru() {
	exec "$PEERS/pwru" --all-kmods --filter-track-skb --timestamp absolute \
		--output-file lines tcp >ready 2>&1
}
retis() {
	local hook probes=()
	for hook in $HOOKS; do probes+=(-p "$hook"); done
	# It says when it has begun by starting a command, and ends with it.
	printf '#!/bin/sh\necho up >ready\nexec sleep 1000000\n' >begun
	chmod +x begun
	exec "$PEERS/retis" collect --cmd ./begun \
		-c skb,skb-tracking,skb-drop,ct,nft,ns,dev \
		-p net:netif_receive_skb -p net:net_dev_start_xmit \
		"${probes[@]}" -f tcp -o lines >log 2>&1
}
nettrace() {
	exec "$PEERS/nettrace" -p tcp --date >lines 2>ready
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
ROUNDS=300
arm "unprofiled, short"
command -v bpftrace >/dev/null && arm "bpftrace, 6 functions" trace
peer() {
	local lines
	[ -x "${PEERS-}/$1" ] && [[ $1 =~ $only ]] || return 0
	: >lines
	READY=$2 arm "$1" "$1"
	lines=$(wc -l <lines)
	echo "# $1: $lines lines, $(wc -c <lines) bytes"
	tail -n 2 ready | cut -c1-200 | sed 's/^/# /'
}
peer retis up
pkill sleep
peer nettrace "begin trace"
peer pwru "Listening"
arm "unprofiled again"
