#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The least that has to work on a kernel: the module loads, a policy acts,
# pathprof counts every packet, and the module can be removed.  `make check` runs
# this where it does not run the other guest tests.

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/guest/lib/profiles.sh
. "$(dirname "$0")/../lib/profiles.sh"

cd "$TMP" || exit
stage_pathprof || exit
plan 4

counter() { ip netns exec "$1" sed -n "s/^$2 //p" /proc/net/mssfrac; }
# segments: received and sent by TCP, in both namespaces
segments() {
	cat <(ip netns exec a cat /proc/net/snmp) \
		<(ip netns exec b cat /proc/net/snmp) |
		awk '/^Tcp: [0-9]/ { in_ += $11; out += $12 } END { print in_, out }'
}
closed() { ! ip netns exec a ss -Htan | grep -qv TIME-WAIT; }
pair a b 9000
# A receive buffer of few segments, and a round trip in which they wait.
ip netns exec b sysctl -qw net.ipv4.tcp_moderate_rcvbuf=0 \
	net.ipv4.tcp_rmem="4096 70000 70000" net.ipv4.tcp_window_scaling=0
tc -n a qdisc add dev va root netem delay 10ms limit 1000 || exit

load() {
	"$TOP/scripts/load" && is "$(ip netns exec a sysctl -n net.mssfrac.tx_frac)" 0
}
check "the module loads and only observes" load

# Steps: a transfer through a window of a few MSS, from a sender with tx_frac.
# Expected: the policy judges the round trips.  What it chooses depends on the
# clock, so the deterministic guest tests that (det_policy.sh).
policy() {
	ip netns exec a sysctl -qw net.mssfrac.tx_frac=64 &&
		tcpload bulk --from a --to b --address 10.9.0.2 --warmup-ms 2000 \
			--measure-ms 500 >/dev/null &&
		more_than "$(counter a treated_tx_rounds)" 20 treated_tx_rounds
}
check "tx_frac judges the round trips of a small window" policy

# Steps: the same while pathprof follows every packet.
# Expected: as many segments as the kernel counts, none unaccounted.
profile() {
	local before after
	wait_for 60 closed || return
	before=$(segments)
	"$PP" record --sample 1 -o p.json -- bash -c "$(declare -f wait_for closed)
		tcpload bulk --from a --to b --address 10.9.0.2 --port 5202 \
			--writes 16 && wait_for 60 closed" || return
	after=$(segments)
	read -r in1 out1 in2 out2 <<<"$before $after"
	is "$(fields p.json 'n("rx") - n("rx", "merged"), n("tx", k="segments"),
		a["unaccounted"], sum(h["missed"] for h in p["hooks"])')" \
		"$((in2 - in1)) $((out2 - out1)) 0 0" &&
		more_than $((in2 - in1)) 60 InSegs
}
check "pathprof counts as many segments as the kernel" profile

unload() {
	"$TOP/scripts/load" --unload && ! grep '^mssfrac ' /proc/modules
}
check "the module is removed" unload
