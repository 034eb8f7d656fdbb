#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What pathprof chooses and exports, against tcpdump and ss: filters in pcap
# syntax, captured bytes, the state of connections, JSON lines.  Runs in one guest.

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/guest/lib/profiles.sh
. "$(dirname "$0")/../lib/profiles.sh"

cd "$TMP" || exit
stage_pathprof || exit

# dump FILE: tcpdump of the loopback in the background, ready when this returns.
# Without -s each slot of tcpdump's ring takes 256 KB, and there are only eight.
dump() {
	tcpdump -i lo -nn -U -s 256 -B 8192 --immediate-mode -w "$1" tcp \
		2>dump.log &
	dumper=$!
	wait_for 20 grep -q '^tcpdump: listening' dump.log
}
dump_ends() {
	wait_for 60 dumped "$1" || return
	kill -INT "$dumper"
	wait "$dumper" || return
	grep -q '^0 packets dropped by kernel' dump.log
}
# Are both FINs of the last connection in the file?
dumped() { [ "$(matching "$1" 'tcp port 4099 and tcp[13] & 1 != 0')" -ge 2 ]; }
matching() { tcpdump -nn -r "$1" "$2" 2>/dev/null | wc -l; }

plan 5

# Steps: an expression that libpcap refuses, and one of the link layer.
# Expected: status 2, one sentence with libpcap's reason.
case_refused() {
	"$PP" record --filter 'tcp prt 80' -o x.json -- true 2>err
	is "$? $(wc -l <err)" "2 1" && grep -q 'syntax error' err || return
	"$PP" top --filter 'ether host 1:2:3:4:5:6' 2>err
	is "$? $(wc -l <err)" "2 1" && grep -q 'only on ethernet' err
}
check "a bad filter is refused with libpcap's reason" case_refused

# Steps: every packet of a connection, 96 bytes each.
# Expected: tcpdump reads as many packets as journeys, each with its number in a
# comment, and the same headers as on the wire.
case_capture() {
	dump lo.pcap || return
	"$PP" record --sample 1 --dir rx --filter 'tcp port 4035' --capture 96 \
		--events c.events -o c.json -- bash -c "
		$(declare -f ping_pong)
		ping_pong 4035 9 127.0.0.1 4099 1 127.0.0.1" || return
	dump_ends lo.pcap || return
	"$PP" journey c.events --pcapng >c.pcapng || return
	tcpdump -nn -t -r c.pcapng 2>/dev/null | sort >captured
	tcpdump -nn -t -r lo.pcap 'tcp port 4035' 2>/dev/null | sort >wire
	diff captured wire &&
		is "$(strings c.pcapng | grep -cE 'packet [0-9]+: rx')" \
			"$(wc -l <wire)" && more_than "$(wc -l <wire)" 20 packets
}
check "captured packets are those on the wire" case_capture

# Steps: datagrams over loopback, followed from their sender on.
# Expected: each is captured, once.
case_capture_stages() {
	"$PP" record --sample 1 --udp --stages udp --port 4036 --capture 96 \
		--events u.events -o u.json -- python3 -IS -c '
import socket
server = socket.socket(type=socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 4036))
for i in range(8):
    server.sendto(b"x" * i, ("127.0.0.1", 4036))
    server.recv(99)
' || return
	"$PP" journey u.events --pcapng >u.pcapng &&
		is "$(tcpdump -nn -t -r u.pcapng 2>/dev/null | grep -o 'length.*' |
			paste -sd ' ')" "$(printf 'length %d ' {0..7} | sed 's/ $//')"
}
check "and of those that a sender's stages begin with" case_capture_stages

# Steps: a route with an initial window of 7 segments, a connection over it.
# Expected: packets sent first see a congestion window of 7; the peer's window
# is the one in ss; journeys have values, too.
case_state() {
	ip route replace local 127.0.7.0/24 dev lo initcwnd 7 table local || return
	defer 'ip route del local 127.0.7.0/24 dev lo table local'
	"$PP" record --sample 1 --state --events s.events -o s.json -- bash -c "
		$(declare -f ping_pong); ping_pong 4036 9 127.0.7.1" || return
	is "$(fields s.json 'min(x["state"]["cwnd"]["least"]
		for x in p["paths"] if "data" in x["flags"] and
		x["direction"] == "tx"), all(x["packets"] >= x["state"]["packets"]
		for x in p["paths"] if "state" in x)')" "7 True" || return
	"$PP" report --detail s.json | grep -q 'congestion window' || return
	"$PP" journey s.events --path 'tx data' | grep -q '  cwnd '
}
check "the state of a connection is the kernel's" case_state

# Steps: frames as JSON during a transfer, in the default sampling bursts.
# Expected: each line is a frame; packets, rates and paths with ids are there.
# Frames are short, so that some would end within a burst.
case_lines() {
	local load top
	iperf3 -s -1 -D
	wait_for 20 eval 'ss -Hltn | grep -q ":5201 "'
	iperf3 -c 127.0.0.1 -t 600 -b 20M -l 1000 >/dev/null &
	load=$!
	"$PP" top --batch --json -i 0.2 --budget 10 >lines &
	top=$!
	# Attaching takes long on a busy host: wait for packets, not for a time.
	# SIGINT would be ignored, as in all that a script starts in the background.
	wait_for 300 eval 'sed 1d lines | grep -Eq "\"total_packets\": ?[0-9]{3}"'
	kill -TERM $top
	wait $top || return
	kill $load
	python3 -IS - <<'END'
import json
frames = [json.loads(line) for line in open("lines")]
assert len(frames) >= 2, len(frames)
assert all(f["format"] == "pathprof-top" for f in frames)
assert frames[-1]["total_packets"] > 50, frames[-1]["total_packets"]
some = [f for f in frames if f["packets"]]
assert some and all(f["packets_per_s"] > 0 for f in some)
assert all(len(p["id"]) == 16 for f in some for p in f["paths"])
assert sum(f["packets"] for f in frames) == frames[-1]["total_packets"]
END
}
check "frames as JSON lines" case_lines
