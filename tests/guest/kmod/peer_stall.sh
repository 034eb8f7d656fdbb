#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The sender's module alone ends the stall below one MSS at a receiver on another
# kernel, which has no module.  Runs in the first of two guests on one cable
# (scripts/guest --peer); "peer COMMAND" runs in the second one.
. "$(dirname "$0")/../../lib.sh"
plan 4

MTU=9000
SECONDS_EACH=4
# After accept: 5 to 7 KB of window, by kernel and card; below the MSS of 8,948.
RCVBUF=4096
STALL=$TOP/tests/guest/kmod/stall.py

# Steps: run commands on the peer.
# Expectation: it runs a kernel of its own, and its status and output come back.
answers() {
	local out
	out=$(peer sh -c 'uname -r; echo error >&2; exit 7')
	is $? 7 || return
	[ "${out##*$'\n'}" = error ] && [ "${out%%$'\n'*}" != "$(uname -r)" ]
}
check "the peer runs commands, on another kernel" answers

# transfer SO_RCVBUF: bytes per second into a buffer of that size at the peer
transfer() {
	"$STALL" transfer "$1" $SECONDS_EACH >"$TMP/result" || return
	sed 's/^/# /' "$TMP/result" >&2
	sed 's/.*"bytes_per_s": \([0-9]*\).*/\1/' "$TMP/result"
}

# Steps: set the MTU at both ends; transfer into the buffer that the kernel chose.
# Expectation: large frames cross the cable, and nothing waits.
cable() {
	ip link set eth0 mtu $MTU && peer ip link set eth0 mtu $MTU || return
	local before after rate
	before=$(peer cat /sys/class/net/eth0/statistics/rx_packets)
	rate=$(transfer 0) || return
	after=$(peer cat /sys/class/net/eth0/statistics/rx_packets)
	echo "$rate bytes/s in $((after - before)) packets"
	[ "$rate" -gt 1000000 ] &&
		[ $((rate * SECONDS_EACH / (after - before))) -gt $((MTU / 2)) ]
}
check "frames of $MTU bytes cross the cable" cable

# Steps: transfer for some seconds without the module.
# Expectation: at most one window per 200 ms.
stalls() {
	stock=$(transfer $RCVBUF) || return
	echo "$stock bytes/s"
	[ "$stock" -gt 5000 ] && [ "$stock" -le 40000 ]
}
check "without the module the sender waits 200 ms for each window" stalls

# Steps: the same, with tx_frac at the sender.
# Expectation: at least 20 times as much, on a busy machine too: 200 ms by the round
# trip of two emulated hosts.
cured() {
	insmod "$MODULE" && sysctl -qw net.mssfrac.tx_frac=64 || return
	defer "rmmod mssfrac"
	local treated
	treated=$(transfer $RCVBUF) || return
	echo "$treated bytes/s, without the module ${stock:-none}"
	[ "$treated" -ge $((20 * ${stock:-1000000000})) ]
}
check "with tx_frac it delivers at least 20 times as much" cured
