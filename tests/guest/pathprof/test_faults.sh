#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What happens to a machine while pathprof records: CPUs, namespaces, devices
# and modules come and go, others trace the same functions, packets never find
# a reader.  Traffic of known size is still counted to the packet, the account
# is whole, and nothing is left.
# long: records many times while the machine changes

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/guest/lib/profiles.sh
. "$(dirname "$0")/../lib/profiles.sh"

cd "$TMP" || exit
stage_pathprof || exit
exec 3>&1 # numbers worth seeing even when all is well

plan 9

# recording NAME COMMAND...: record PING_PONG's port and others while COMMAND runs.
recording() {
	local name=$1 out
	shift
	out=$("$PP" record --sample 1 "${options[@]}" -o "$name.json" -- \
		bash -c "$(declare -f ping_pong wait_for
			declare -p options); $*" 2>&1) || {
		echo "$out"
		return 1
	}
	fields "$name.json" a | sed "s/^/# $name: /" >&3
	is "$(fields "$name.json" 'a["unaccounted"]')" 0
}

# exactly NAME COUNT: so many data packets were received and sent, and no others.
exactly() { is "$(fields "$1.json" 'n("rx", "data"), n("tx", "data")')" "$2 $2"; }

# Steps: 30 packets on two CPUs, 30 on one, 30 on two again.
# Expected: 90.
case_cpu() {
	local cpu=/sys/devices/system/cpu/cpu1/online options=(--port 4041)
	[ -e $cpu ] || { echo "this guest has one CPU"; return 1; }
	recording cpu "p() { ping_pong 4041 30 127.0.0.1; }
		p && echo 0 >$cpu && p && echo 1 >$cpu && p" || return
	exactly cpu 90
}
check "a CPU goes offline and online again" case_cpu

# Steps: the same with sampling bursts, which the CPU leaves and enters.
# Expected: the recording ends well, with packets.
case_cpu_windows() {
	local cpu=/sys/devices/system/cpu/cpu1/online
	"$PP" record --budget 50 -o windows.json -- bash -c "
		$(declare -f ping_pong)
		set -m # kill reaches what the job started
		ping_pong 4042 10000000 127.0.0.1 &
		for i in 1 2 3; do
			sleep 1; echo 0 >$cpu; sleep 1; echo 1 >$cpu
		done
		kill %1" || return
	is "$(fields windows.json 'a["unaccounted"], a["sampled"] > 0')" "0 True"
}
check "a CPU goes offline and online during sampling bursts" case_cpu_windows

# Steps: two namespaces with data unread between them are deleted meanwhile.
# Expected: a whole account, and 20 later packets are 20.
case_namespace() {
	local options=(--port 4043)
	recording namespace '
		for ns in x y; do ip netns add $ns; ip -n $ns link set lo up; done
		ip link add vx netns x type veth peer name vy netns y
		ip -n x addr add 10.8.0.1/24 dev vx; ip -n x link set vx up
		ip -n y addr add 10.8.0.2/24 dev vy; ip -n y link set vy up
		ip netns exec y python3 -ISc "
import socket, time
l = socket.create_server((\"10.8.0.2\", 4043)); open(\"up\", \"w\")
p = l.accept()[0]; time.sleep(100)" & reader=$!
		wait_for 20 test -e up || exit
		ip netns exec x python3 -ISc "
import socket, time
s = socket.create_connection((\"10.8.0.2\", 4043)); s.sendall(bytes(100000))
open(\"sent\", \"w\"); time.sleep(100)" & writer=$!
		wait_for 20 test -e sent || exit
		ip netns del x; ip netns del y
		kill $reader $writer; wait
		ping_pong 4043 20 127.0.0.1' || return
	is "$(fields namespace.json 'n("rx", "data", "delivered")')" 20
}
check "namespaces are deleted with data unread" case_namespace

# Steps: the device that is asked for goes, and one of its name comes.
# Expected: what went over the first is counted; nothing else is.
case_device() {
	local options=(--dev gone0)
	make_device() {
		ip link add gone0 type veth peer name gone1 &&
			ip link set gone1 netns z &&
			ip addr add 10.8.1.1/24 dev gone0 && ip link set gone0 up &&
			ip -n z addr add 10.8.1.2/24 dev gone1 &&
			ip -n z link set gone1 up
	}
	ip netns add z && defer "ip netns del z" && make_device || return
	send='python3 -ISc "
import socket
l = socket.create_server((\"10.8.1.1\", 4044))
s = socket.socket(); l.settimeout(5)" &&
	ip netns exec z python3 -ISc "
import socket
s = socket.socket(); s.settimeout(2)
try: s.connect((\"10.8.1.1\", 4044))
except OSError as error: print(error)"'
	recording device "$(declare -f make_device); $send
		ip link del gone0; make_device; $send" || return
	ip link del gone0
	# A SYN and its RST, of the first device only.
	is "$(fields device.json 'n("rx"), n("tx")')" "1 1"
}
check "the device of the filter is deleted" case_device

# Steps: two at once, each with its own port.
# Expected: each has its own packets, all of them.
case_two() {
	local options=(--port 4045)
	recording one '"'"$PP"'" record --sample 1 --port 4046 -o other.json -- \
		bash -c "$(declare -f ping_pong)
			ping_pong 4045 25 127.0.0.1 4046 35 127.0.0.1"' || return
	exactly one 25 && exactly other 35
}
check "two recordings at once" case_two

# Steps: mssfrac comes, treats everything and goes.
# Expected: exact counts.
case_module() {
	local options=(--port 4047)
	recording module "p() { ping_pong 4047 20 127.0.0.1; }
		p && insmod $MODULE tx_frac=64 rx_frac=64 && p && rmmod mssfrac && p" ||
		return
	exactly module 60
}
check "mssfrac is loaded and unloaded" case_module

# Steps: the function tracer and perf's kprobe on the functions that pathprof hooks.
# Expected: exact counts, and the tracer had its calls.
case_tracer() {
	local options=(--port 4048)
	recording tracer 'cd /sys/kernel/tracing
		echo tcp_rcv_established >set_ftrace_filter
		echo __tcp_transmit_skb >>set_ftrace_filter
		echo "p:same tcp_rcv_established" >kprobe_events
		p() { ping_pong 4048 20 127.0.0.1; }
		p; echo function >current_tracer; echo 1 >events/kprobes/same/enable; p
		grep -c tcp_rcv_established trace >'"$TMP"'/calls
		echo nop >current_tracer; echo 0 >events/kprobes/same/enable
		echo >kprobe_events; echo >set_ftrace_filter; p' || return
	more_than "$(cat calls)" 20 "calls traced" && exactly tracer 60
}
check "others trace the same functions" case_tracer

# Steps: more unread datagrams than packets can be followed at once.
# Expected: those given up are counted, and the account is whole.
case_full() {
	local options=(--udp --dir rx)
	recording full 'python3 -ISc "
import socket
readers = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(60)]
writer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for r in readers:
    r.bind((\"127.0.0.1\", 0))
    for _ in range(200):
        writer.sendto(b\"x\", r.getsockname())"' || return
	is "$(fields full.json 'a["sampled"] >= 12000, a["evicted"] + a["no_slot"] > 0,
		n("rx", "evicted") == a["evicted"]')" "True True True"
}
check "more packets wait than pathprof can follow" case_full

check "no BPF program remains" wait_for 20 no_programs
