#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Adds a known cost to one stage of a forwarded packet, and measures it twice:
# as what the load takes longer without pathprof, in instructions per packet,
# and as what the stage takes longer in a profile of --stages.  Also measures
# what --stages itself costs.  Deterministic guest: a nanosecond is an
# instruction.
# long: profiles every stage of many packets in virtual time

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../../lib.sh"
# shellcheck source=tests/guest/lib/profiles.sh
. "$(dirname "$0")/../../lib/profiles.sh"
# shellcheck source=tests/guest/lib/topology.sh
. "$(dirname "$0")/../../lib/topology.sh"

LOAD=$TOP/build/bin/tcpload
cd "$TMP" || exit
stage_pathprof || exit
cp "$LOAD" "$TOP"/build/tests/reference-timer{,.bpf.o} run/ || exit
exec 3>&1
ROUNDS=${STACK_ROUNDS:-2000}

container_host || exit

# load: a ping-pong between the pods, under SLOWED.
SLOWED=()
load() {
	"${SLOWED[@]}" ip netns exec p1 "$TMP/run/tcpload" rounds --answers \
		--count "${1:-$ROUNDS}" --size 1 --to p2 --address 10.3.0.2 \
		--device eth0
}
# The load has ended before Python starts: the start of Python beside it, on the
# one CPU of this guest, took up to 60 % of its time.
per_packet() {
	load >load.json || return
	python3 -IS -c 'import json
with open("load.json") as f:
    d = json.load(f)
print(round(d["ns"] / d["packets"], 1))'
}

# unprofiled: the median of three runs.
unprofiled() {
	for _ in 1 2 3; do
		per_packet
	done | sort -n | sed -n 2p
}

# stage FILE NAME: its mean of the packets that pass it, without pathprof's own.
stage() {
	fields "$1" "sum(ns - own for x in p['paths'] for i, ns, own in
		zip(x['stages'], x['stage_ns'], x['stage_probe_ns'])
		if names[i] == '$2') / max(1, n('@$2'))"
}

# profiled FILE [OPTION...]: instructions per packet meanwhile.
profiled() {
	local out=$1
	shift
	[ $# -gt 0 ] || set -- --stages all
	: >ready
	"$PP" record --sample 1 "$@" -o "$out" --ready-fd 9 9>ready &
	wait_for 60 test -s ready || return
	per_packet
	kill -INT $!
	wait $! || return
	rm ready
}

# grown NAME WITHOUT WITH STAGE: the stage's growth is that of the load.
grown() {
	local d
	d=$(python3 -IS -c "print(round($3 - $2, 1))")
	echo "# $1: $d instructions per packet by the load" >&3
	python3 -IS -c "
stage = $(stage with "$4") - $(stage without "$4")
print('# $1: %.1f by stage $4, %+.2f %%' % (stage, (stage / $d - 1) * 100))
raise SystemExit(abs(stage / $d - 1) > 0.02 or $d < 500)" >&3
}

plan 5

load 200 >/dev/null # warm
base=$(unprofiled)
case_cost() {
	local seen
	seen=$(profiled without) || return
	echo "# unprofiled $base, --stages all $seen instructions per packet" >&3
	is "$(fields without 'a["unaccounted"], n("rx"),
		p["counters"].get("copies", 0)')" "0 0 0" &&
		more_than "$(fields without 'n("tx", "delivered")')" \
			$((ROUNDS - 1)) delivered
}
check "every packet has one path under load" case_cost

# rules add|delete: 1000 that match nothing, in the forward hook.
rules() {
	local i
	{
		echo "$1 table ip busy"
		[ "$1" = delete ] || {
			echo "add chain ip busy f { type filter hook forward priority 0; }"
			for ((i = 0; i < 1000; i++)); do
				echo "add rule ip busy f ip saddr 192.0.2.$((i % 250)) drop"
			done
		}
	} | ip netns exec h nft -f -
}

# Steps: 1000 rules.
# Expected: nf_fwd grows by what the load grows, within 2 %.
case_rules() {
	local with
	rules add || return
	with=$(unprofiled)
	profiled with >/dev/null && rules delete || return
	grown "1000 rules" "$base" "$with" nf_fwd
}
check "1000 rules are found in nf_fwd" case_rules

# Steps: 1000 rules, and nf_hook_slow() as a stage, without --stages.
# Expected: it grows by what the load grows, within 2 %.
case_function() {
	local with
	profiled without --stage nf_hook_slow >/dev/null &&
		rules add || return
	with=$(unprofiled)
	profiled with --stage nf_hook_slow >/dev/null && rules delete || return
	grown "1000 rules" "$base" "$with" nf_hook_slow
}
check "1000 rules are found in nf_hook_slow()" case_function

# filters BYTECODE: four that match nothing, at the ingress of one port.  tc
# takes no program of more than 16 KB.
filters() {
	local i
	for i in 1 2 3 4; do
		ip netns exec h tc filter add dev to-p1 ingress prio "$i" \
			bpf bytecode "$1" flowid 1:1 || return
	done
}

# Steps: four programs of 1001 instructions at the ingress of one port.
# Expected: tc grows by what the load grows, within 2 %.
case_tc() {
	local with code="1001" i base2
	for ((i = 0; i < 1000; i++)); do code+=",0 0 0 7"; done
	code+=",6 0 0 0"
	ip netns exec h tc qdisc add dev to-p1 clsact &&
		filters "1,6 0 0 0" || return
	base2=$(unprofiled)
	profiled without >/dev/null || return
	ip netns exec h tc filter del dev to-p1 ingress &&
		filters "$code" || return
	with=$(unprofiled)
	profiled with >/dev/null || return
	# Half of the packets pass this port.
	grown "4000 instructions" "$base2" \
		"$(python3 -IS -c "print($base2 + 2 * ($with - $base2))")" tc
}
check "a program of 4000 instructions is found in tc" case_tc

# slowed DRIVER CRYPT: a loop of so many turns in the driver of loopback, and in
# encryption and decryption; 0: none.
slowed() {
	SLOWED=("$TMP/run/reference-timer" "$TMP/run/reference-timer.bpf.o"
		delay 0 "$1" 0 "$2")
}

# delay: instructions of 399 turns, by what loopback takes longer per packet.
delay() {
	local few
	load() { "${SLOWED[@]}" "$TMP/run/tcpload" rounds --answers --count 2000; }
	slowed 1 0
	few=$(unprofiled)
	slowed 400 0
	python3 -IS -c "print(round($(unprofiled) - $few, 1))"
}

# Steps: the pods behind two hosts with WireGuard; 400 turns in its cipher instead
# of one.
# Expected: crypt grows by the turns of both ends, within 2 %.  (The load's growth
# is no measure of it: 27 % more than the turns on 6.1.)
case_crypt() {
	local with base2 turns
	turns=$(delay)
	fresh
	modprobe wireguard && wireguard_hosts || return
	load 200 >/dev/null
	slowed 0 1
	base2=$(unprofiled)
	profiled without >/dev/null || return
	slowed 0 400
	with=$(unprofiled)
	profiled with >/dev/null || return
	SLOWED=()
	echo "# a slow cipher: the load grows from $base2 to $with" >&3
	grown "a slow cipher" 0 "$(python3 -IS -c "print(2 * $turns)")" crypt
}
check "a slow cipher of WireGuard is found in crypt" case_crypt
