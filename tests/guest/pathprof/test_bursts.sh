#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The edges of sampling bursts: hooks are attached and detached while CPUs work
# on packets.  No packet may be counted twice, or end as another one.
# long: many sampling bursts under load

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/guest/lib/profiles.sh
. "$(dirname "$0")/../lib/profiles.sh"

cd "$TMP" || exit
stage_pathprof || exit
exec 3>&1 # numbers worth seeing even when all is well

plan 2

traffic() { python3 -IS "$TOP/tests/guest/pathprof/bursts.py" "$@"; }

# GRO passes packets up at once, and that takes long: a CPU spends most of its
# time inside the driver's call.  On loopback packets wait, so that the table of
# followed packets is not empty while such a call returns.
pair a b 1500
ip netns exec a ethtool -K va tso off gso off
ip netns exec b ethtool -K vb gro on
batch=$(sysctl -n net.core.gro_normal_batch)
defer "sysctl -q net.core.gro_normal_batch=$batch"
sysctl -q net.core.gro_normal_batch=1
tc -n b qdisc add dev vb ingress
for i in {1..300}; do
	echo "filter add dev vb parent ffff: protocol ip prio $i u32" \
		"match ip src 192.168.$((i % 256)).$((i / 256))/32 action drop"
done | tc -n b -batch - || exit
tc qdisc add dev lo root netem delay 20ms
defer "tc qdisc del dev lo root"
ip netns exec b python3 -IS "$TOP/tests/guest/pathprof/bursts.py" serve 10.9.0.2 &
server=$!
defer "kill $server"
answers() { ip netns exec b ss -Hltn | grep -q :5000; }
wait_for 20 answers || exit
traffic crowd &
crowd=$!
defer "pkill -KILL -f guest/pathprof/bursts.py"

# on CPU: the exchange runs there, and the crowd on the other one.
on() {
	taskset -p -c "$1" "$server" && taskset -p -c "$1" "$client" &&
		taskset -p -c $((1 - $1)) "$crowd"
}

asking() { ip netns exec a ss -Htn state established | grep -q :5000; }
ask() {
	ip netns exec a python3 -IS "$TOP/tests/guest/pathprof/bursts.py" ask 10.9.0.2 &
	client=$!
}

# judge FILE: the account, and how merged packets ended.
judge() {
	fields "$1" 'p["counters"]["windows"], {k: v for k, v in a.items() if v}' |
		sed 's/^/# bursts: /' >&3
	is "$(fields "$1" 'a["unaccounted"], [[names[i] for i in x["stages"]]
		for x in p["paths"] if x["end"] == "merged" and
		[names[i] for i in x["stages"]] != ["gro", "merged"]]')" "0 []"
}

# Steps: several recordings.  In each the exchange begins on one CPU and goes on
# on the other; neither has passed GRO since the recording began.
# Expected: every account is whole, and what GRO merged has only passed GRO.
case_begin() {
	local i rc=0
	for i in {1..4}; do
		ask
		on 1 && wait_for 10 asking && kill -STOP $client || return
		"$PP" record --budget 50 -o begin.json -- bash -c "
			$(declare -f on)
			client=$client server=$server crowd=$crowd
			kill -CONT $client
			sleep 3 # time for some bursts
			on 0
			sleep 3 # the same" || rc=1
		judge begin.json || rc=1
		kill $client
	done
	return $rc
}
check "bursts that begin while a CPU is inside GRO" case_begin

# Steps: one long recording during the exchange.
# Expected: the same, over many bursts.
case_many() {
	ask
	"$PP" record --budget 50 -o many.json --duration 80 || return
	kill $client
	judge many.json &&
		more_than "$(fields many.json 'p["counters"]["windows"]')" 30 bursts
}
check "many bursts" case_many
