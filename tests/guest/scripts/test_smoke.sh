#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The least that has to work on a kernel: the module loads, a policy acts,
# pathprof counts every packet, and the module can be removed.  `make check` runs
# this where it does not run the other guest tests.

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/guest/profiles.sh
. "$(dirname "$0")/../profiles.sh"

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

load() {
	"$TOP/scripts/load" && is "$(ip netns exec a sysctl -n net.mssfrac.tx_frac)" 0
}
check "the module loads and only observes" load

# Steps: a transfer through a window of 2.5 MSS, from a sender with tx_frac.
# Expected: the sender chooses sizes, and no other setting changed.
policy() {
	ip netns exec a sysctl -qw net.mssfrac.tx_frac=8 &&
		tcpload bulk --from a --to b --address 10.9.0.2 --window 22370 \
			--writes 64 >/dev/null &&
		more_than "$(counter a treated_tx_sized)" 0 treated_tx_sized
}
check "tx_frac sizes segments in a small window" policy

# Steps: the same while pathprof follows every packet.
# Expected: as many segments as the kernel counts, none unaccounted.
profile() {
	local before after
	wait_for 60 closed || return
	before=$(segments)
	"$PP" record --sample 1 -o p.json -- bash -c "$(declare -f wait_for closed)
		tcpload bulk --from a --to b --address 10.9.0.2 --port 5202 \
			--window 22370 --writes 64 && wait_for 60 closed" || return
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
