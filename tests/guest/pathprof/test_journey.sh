#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Raw events against the sums that the kernel kept meanwhile.
# long: records the events of many packets and adds them up

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"

HERE=$(cd "$(dirname "$0")" && pwd)
cd "$TMP" || exit
stage_pathprof || exit
exec 3>&1 # numbers worth seeing even when all is well

in_ns_listening() { ip netns exec "$1" ss -Hltn | grep -q ":$2 "; }
transfer() { ip netns exec a iperf3 -c "$1" -n "$2"; }

pair a b 1500
tc -n a qdisc add dev va root netem delay 2ms loss 3% reorder 75% 50% || exit
ip netns exec b ethtool -K vb gro on || exit
ip netns exec b iperf3 -s -D -I "$TMP/server"
defer 'kill $(cat "$TMP/server")'
wait_for 20 in_ns_listening b 5201 || exit

plan 8

# sums NAME COMMAND...: a recording's events add up to its profile.
sums() {
	local name=$1
	shift
	"$PP" record --sample 1 --events "$name.events" -o "$name.json" \
		"${fine[@]}" -- "$@" 2>err || { cat err; return 1; }
	grep -q '^pathprof: events kept, 0 lost; see: ' err || { cat err; return 1; }
	python3 -IS "$HERE/journeys.py" "$name.events" "$name.json" >sums
	local status=$?
	sed "s/^/# $name: /" sums | cut -c 1-500 >&3
	return $status
}

# Steps: loss, reordering, both directions, every packet followed.
# Expected: for each path the events add up to what the kernel summed up:
# packets, bytes, segments, and the time in every stage, to the nanosecond.
case_sums() {
	fine=()
	sums veth bash -c "$(declare -f transfer); transfer 10.9.0.2 1M &&
		transfer fd09::2 300K"
}
check "events add up to the profile" case_sums

# Steps: the same over GRO, with the finer stages, and a reader that takes each
# packet in small parts.
# Expected: the same; such packets go back to waiting.
case_sums_fine() {
	tc -n a qdisc del dev va root
	ip netns exec a ethtool -K va tso off gso off || return
	# shellcheck disable=SC2034 # read in sums
	fine=(--fine)
	sums fine bash -c "$(declare -f transfer); transfer 10.9.0.2 300K &&
		python3 -IS -c '
import socket
l = socket.create_server((\"127.0.0.1\", 4030))
a = socket.create_connection((\"127.0.0.1\", 4030))
b = l.accept()[0]
for i in range(7):
    a.sendall(b\"x\" * 1000)
    for part in range(4):
        b.recv(250, socket.MSG_WAITALL)'" &&
		grep -c '"again":true' fine.events >again || return
	[ "$(cat again)" -ge 7 ]
}
check "events add up with fine stages, GRO and short reads" case_sums_fine

# Steps: filters that can decide only after a packet's first events, with other
# traffic.
# Expected: the same, and no events of filtered packets.
only() { # NAME PORT: all packets are of that port
	python3 -IS - "$1.events" "$1.json" "$2" <<'END'
import json, sys
with open(sys.argv[1]) as f:
    head = json.loads(next(f))
    packets = [json.loads(line) for line in f]
assert len(packets) == head["packets"] > 20, (len(packets), head["packets"])
assert sum(len(p["events"]) for p in packets) <= head["events"]
for p in packets:
    assert p["end"], p
    assert int(sys.argv[3]) in (p["source_port"], p["destination_port"]), p
with open(sys.argv[2]) as f:
    assert json.load(f)["counters"]["filtered"] > 20
END
}
both() { # to b, and to itself
	python3 -IS -c '
import socket
l = socket.create_server(("127.0.0.1", 4031))
a = socket.create_connection(("127.0.0.1", 4031))
b = l.accept()[0]
for i in range(20):
    a.sendall(b"x" * 1000)
    b.recv(1000, socket.MSG_WAITALL)'
	iperf3 -c 10.9.0.2 -n 100K
}
case_device() {
	# shellcheck disable=SC2034 # read in sums
	fine=(--netns a --dev lo)
	sums device ip netns exec a bash -c "$(declare -f both); both" &&
		only device 4031
}
ip -n a link set lo up
check "events add up with a filter by device" case_device

case_cgroup() {
	mkdir cgroup && mount -t cgroup2 none cgroup || return
	defer "umount '$TMP/cgroup'"
	mkdir cgroup/app || return
	defer "rmdir '$TMP/cgroup/app'"
	# shellcheck disable=SC2034 # read in sums
	fine=(--netns a --cgroup "$TMP/cgroup/app")
	sums cgroup ip netns exec a bash -c "$(declare -f both)
		(echo 0 >'$TMP/cgroup/app/cgroup.procs'; iperf3 -c 10.9.0.2 -n 100K)
		both" && only cgroup 5201
}
check "events add up with a filter by cgroup" case_cgroup

# Steps: ask for one packet of each kind.
# Expected: its stages in order, its flow, and how it ended; the slowest of all
# is not faster than the slowest of one path; a packet that GRO merged names
# the one it was merged into, and that one names it.
case_journey() {
	"$PP" journey fine.events --path "rx data gro" >one &&
		"$PP" journey fine.events --slowest >slowest &&
		"$PP" journey fine.events --path "rx merged" >merged || return
	sed 's/^/# /' one >&3
	is "$(awk 'length > 79' one slowest merged)" "" || return
	grep -qE '^  10.9.0.1:[0-9]+ > 10.9.0.2:5201$' one &&
		grep -qE '^ +0 +[0-9]+ .* gro' one &&
		grep -q 'merged into it: packets' one &&
		grep -qE 'sent from here as packet [0-9]+' one &&
		grep -qE '^End: [a-z ]+ after' one || return
	number=$(sed -n 's/^  merged into packet \([0-9]*\)$/\1/p' merged)
	"$PP" journey fine.events "$number" >into &&
		grep -q 'merged into it: packets' into
}
check "a journey is shown from its beginning to its end" case_journey

# Steps: the buffer holds one page of events.
# Expected: lost events are counted, printed and known per packet; the others are
# read.
case_lost() {
	"$PP" record --sample 1 --events lost.events --event-buffer 4 \
		-o lost.json -- bash -c "$(declare -f transfer)
		transfer 10.9.0.2 1M" 2>err || return
	sed 's/^/# /' err >&3
	grep -qE '^pathprof: events kept, [1-9][0-9]* lost' err &&
		grep -q 'events found no room' err || return
	python3 -IS - lost.events <<'END' || return
import json, sys
with open(sys.argv[1]) as f:
    head = json.loads(next(f))
    packets = [json.loads(line) for line in f]
known = sum(p["lost"] for p in packets)
# If a packet lost its last events, or all, their number is unknown.
assert 0 < known <= head["lost"], (known, head["lost"])
END
	"$PP" journey lost.events >list && grep -q 'events lost$' list
}
check "lost events are counted and shown" case_lost

# Steps: without --events, as root.
# Expected: no ring is there, and the verifier has removed what would fill it.
case_free() {
	local pid rings
	PATHPROF_DEBUG=1 "$PP" record --sample 1 -o free.json -- true 2>debug ||
		return
	awk '/ instructions verified$/ { sub(":", "", $1); print $2, $1 }' \
		debug | sort -n >verified
	sed 's/^/# verified: /' verified | tail -4 >&3
	mkfifo ready
	"$PP" record --sample 1 -o free.json --ready-fd 9 9>ready &
	pid=$!
	read -r _ <ready
	rings=$(bpftool map list | grep -c ringbuf)
	bpftool prog dump xlated name net_dev_xmit >insns
	kill -INT $pid
	wait $pid || return
	grep -q bpf_ktime_get insns && is "$rings" 0 &&
		is "$(grep -c bpf_ringbuf insns)" 0
}
check "without --events a profile has no trace of them" case_free

# Steps: sampling bursts while a transfer runs.
# Expected: there are packets, and their events add up, too.
case_bursts() {
	"$PP" record --budget 50 --events win.events -o win.json -- \
		ip netns exec a iperf3 -c 10.9.0.2 -t 6 || return
	python3 -IS "$HERE/journeys.py" win.events win.json >sums
	local status=$?
	sed "s/^/# windows: /" sums | cut -c 1-500 >&3
	[ $status -eq 0 ] && ! grep '^0 packets' sums
}
check "sampling bursts" case_bursts
