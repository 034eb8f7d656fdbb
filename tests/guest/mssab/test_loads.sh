#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# One block with each load that has a server, with named interfaces, and with
# pathprof around it: figures are there and make sense, and nothing is left.
# alone: it paces loads by the clock and judges rates
# long: a block with each load, paced by the clock
. "$(dirname "$0")/../../lib.sh"
plan 15

cd "$TMP" || exit
stage_pathprof || exit
export PATHPROF=$PP

# experiment LOAD METRIC CELL-LINES...: e.toml, over a path of 40 Mbit/s
experiment() {
	printf '%s\n' '[design]' "guardrails = [\"$2\"]" '[cell]' \
		"load = \"$1\"" "${@:3}" '[arms]' 'a = { mtu = 1500 }' \
		'b = { congestion_control = "reno" }' >e.toml
}
link=("rtt_ms = 2" "rate_mbit = 40")

# block EXPRESSION...: one block of arm a; each holds of what was measured.
block() {
	rm -f raw
	mssab block e.toml "${arm:-a}" -o raw || return
	/usr/bin/python3 - "$@" <<-'END'
		import json, sys
		raw = json.load(open("raw"))
		mbit = raw["bytes_per_s"] * 8 / 1e6
		for expression in sys.argv[1:]:
		    print(expression, eval(expression), f"at {mbit:.4g} Mbit/s")
		    assert eval(expression), raw
	END
}
needs() { command -v "$1" >/dev/null || { skip "$2" "no $1 in this root"; false; }; }
left_over() {
	is "$(ip netns list)" "" &&
		is "$(pgrep -x 'nuttcp|NPtcp|iperf3|pathprof')" ""
}

if needs nuttcp "nuttcp"; then
	experiment nuttcp retransmits "${link[@]}" "warmup_ms = 200" \
		"measure_ms = 400"
	check "nuttcp" block '20 < mbit < 40' 'raw["retransmits"] >= 0' \
		'raw["packets"] > 100' 'raw["interrupts"] > 0' \
		'raw["cpu_ns"] > 0' 'raw["received"] > raw["bytes"] > 0'
fi
if needs nuttcp "nuttcp, congestion control of an arm"; then
	sed -i 's/"nuttcp"/"nuttcp"\nmtu = 1500/; s/reno/no-such/' e.toml
	refused() { ! arm=b block True >said 2>&1 && grep no-such said; }
	check "nuttcp, congestion control of an arm" refused
fi
if needs nuttcp "nuttcp, UDP at half the rate"; then
	experiment nuttcp-udp lost "${link[@]}" "offered_mbit = 20" \
		"warmup_ms = 200" "measure_ms = 400"
	sed -i '/^b = /s/{.*}/{ mtu = 9000 }/' e.toml
	check "nuttcp, UDP at half the rate" block '15 < mbit < 25' \
		'raw["sent_datagrams"] > 0'
fi
if needs nuttcp "nuttcp, UDP at four times the rate: most is lost"; then
	# A busy guest hardly offers more than 20 Mbit/s.
	# The receiver may wake late and read what waited: a tenth of a long time.
	sed -i 's/rate_mbit = 40/rate_mbit = 5\nqueue_packets = 50/
		s/^measure_ms = .*/measure_ms = 1500/' e.toml
	check "nuttcp, UDP at four times the rate: most is lost" block \
		'2 < mbit < 5.6' 'raw["lost_datagrams"] > raw["sent_datagrams"] / 3'
fi
experiment iperf3-udp jitter "${link[@]}" "offered_mbit = 20" \
	"warmup_ms = 1000" "measure_ms = 1000"
sed -i '/^b = /s/{.*}/{ mtu = 9000 }/' e.toml
check "iperf3, UDP" block '15 < mbit < 25' 'raw["jitter_ns"] > 0' \
	'raw["lost_datagrams"] < raw["sent_datagrams"] / 10'
if needs NPtcp "NetPIPE"; then
	# 10,000 bytes there take 2 ms at 40 Mbit/s, and 1 ms of delay.
	experiment netpipe message "${link[@]}" "request = 10000"
	check "NetPIPE" block '2.5e6 < raw["message_ns"] < 1e8' \
		'abs(raw["message_ns"] * raw["bytes_per_s"] / 1e13 - 1) < 0.01'
fi

# A stage costs a microsecond here and more, and not a second.
experiment tcpload rx_cost "${link[@]}" "warmup_ms = 200" "measure_ms = 400"
check "pathprof: what a packet costs" block \
	'100 < raw["profile"]["rx_ns_per_packet"] < 1e9' \
	'100 < raw["profile"]["tx_ns_per_packet"] < 1e9' \
	'0 < raw["profile"]["ns_per_byte"] < 1e6' 'raw["lost_events"] == 0' \
	'raw["profile"]["sampled"] > 100'
no_pathprof() {
	PATHPROF=/none mssab block e.toml a >said 2>&1
	is $? 3 && is "$(wc -l <said)" 1 && grep -q 'no pathprof' said
}
check "no pathprof: told in one line" no_pathprof

# --- Named interfaces ---------------------------------------------------------

ip link add eth-a mtu 2000 type veth peer name eth-b
ip link set eth-a up
defer "ip link del eth-a"
# The kernel says a while later that a carrier has gone.
state() {
	ip -o link show | grep -E 'eth-[ab]' |
		sed 's/^[0-9]*: //; s/state.*//; s/NO-CARRIER,//'
}
experiment tcpload retransmits 'link = "interfaces"' \
	'sender_interface = "eth-a"' 'receiver_interface = "eth-b"' \
	"warmup_ms = 100" "measure_ms = 200"
before=$(state)
come_back() { block 'mbit > 1' && is "$(state)" "$before"; }
check "two interfaces: moved and brought back" come_back

killed() {
	sed -i 's/measure_ms = .*/measure_ms = 60000/' e.toml
	mssab block e.toml a -o raw &
	wait_for 60 sent
	kill -9 $! && wait $!
	[ -z "$(state)" ] || return
	sed -i 's/measure_ms = .*/measure_ms = 200/' e.toml
	block True && is "$(state)" "$before"
}
sent() { pgrep -x tcpload >/dev/null; }
check "a killed run: the next one brings them back" killed
in_use() {
	ip addr add 192.0.2.1/24 dev eth-b
	mssab block e.toml a -o raw >said 2>&1
	is $? 1 && grep -q 'eth-b has address 192.0.2.1/24' said &&
		is "$(state)" "$before"
}
check "an interface in use is left alone" in_use
ip addr del 192.0.2.1/24 dev eth-b
features() { ethtool -k eth-a; ethtool -k eth-b; }
before=$(features)
sed -i "s/^b = .*/b = { features = { tx-checksum-ip-generic = false } }/" e.toml
# mssab reads back what it sets.
set_and_back() { arm=b block 'True' && is "$(features)" "$before"; }
check "a feature of the devices: set, and as it was afterwards" set_and_back
cannot() {
	sed -i "s/^b = .*/b = { $1 }/" e.toml
	arm=b block True >said 2>&1
	is $? 1 && grep -q "$2" said && is "$(features)" "$before"
}
check "a feature that the driver lacks is reported" cannot "coalesce = { rx-usecs = 1 }" \
	'ethtool -c eth-a'
zerocopy() {
	sed -i "s/^b = .*/b = { zerocopy = true, sender_cpu = 1, receiver_cpu = 0 }/" e.toml
	# veth makes copies and reports them, except for data dropped before it.
	arm=b block 'raw["zerocopy_copied"] > max(10, raw["zerocopy_sent"])'
}
check "zero copy, each end on a CPU" zerocopy
check "nothing is left" left_over
