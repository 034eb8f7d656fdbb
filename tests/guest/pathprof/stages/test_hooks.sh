#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pathprof --stages on devices and hooks that test_stack.sh leaves out:
# ipvlan, IPIP, generic XDP, AF_PACKET taps, netfilter of bridges and devices.
# Each stage is entered as often as the kernel's counter beside it has it.  Also
# several filters at once.

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../../lib.sh"
# shellcheck source=tests/guest/lib/profiles.sh
. "$(dirname "$0")/../../lib/profiles.sh"
# shellcheck source=tests/guest/lib/topology.sh
. "$(dirname "$0")/../../lib/topology.sh"

cd "$TMP" || exit
stage_pathprof || exit
exec 3>&1 # numbers worth seeing even when all is well
modprobe -aq ipvlan ipip

plan 6

# Steps: 23 messages each way between ipvlan devices above a cable.
# Expected: the stage is entered when such a device sends and when it receives,
# as often as the two devices count.
case_ipvlan() {
	local sent counted
	stacked ipvlan mode l2 || return
	neighbours p1 upper 10.1.0.2 p2 upper 10.1.0.3
	counted=$(links p1 upper p2 upper)
	record ipvlan vlan p1 p2 10.1.0.3 4000 4000 23 100 || return
	sent=$(snmp_of Tcp OutSegs p1 p2)
	is "$(entered ipvlan ipvlan)" $(($(links p1 upper p2 upper) - counted)) &&
		is "$(passed ipvlan ipvlan cross)" "$sent $sent" &&
		whole ipvlan "$sent"
}
# links NETNS DEVICE...: packets sent and received by all of these.
links() {
	local sum=0
	while [ $# -gt 0 ]; do
		sum=$((sum + $(link_of "$1" "$2" rx) + $(link_of "$1" "$2" tx)))
		shift 2
	done
	echo $sum
}
check "ipvlan devices" case_ipvlan

# Steps: 23 messages each way, from pod to pod, through an IPIP tunnel.
# Expected: the devices of the tunnel count what is wrapped and unwrapped.
case_ipip() {
	local sent
	fresh
	ipip_hosts || return
	record ipip tunnel p1 p2 10.3.0.2 4000 4000 23 100 || return
	sent=$(snmp_of Tcp OutSegs p1 p2)
	is "$(passed ipip encap decap)" \
		"$(sum_of tx g1 g2) $(sum_of rx g1 g2)" &&
		is "$(passed ipip encap)" "$sent" && whole ipip "$sent"
}
# sum_of rx|tx NETNS...: packets of their tunnels.
sum_of() {
	local way=$1 sum=0 ns
	shift
	for ns; do sum=$((sum + $(link_of "$ns" tunnel "$way"))); done
	echo $sum
}
check "IPIP between two hosts" case_ipip

# runs PROGRAM: how often the kernel has run it.
runs() {
	bpftool -j prog show pinned "$1" |
		python3 -IS -c 'import json, sys
print(json.load(sys.stdin).get("run_cnt", 0))'
}

# Steps: a program that passes everything, at both ends of a cable.
# Expected: it has run once for each packet that entered the stage.
case_xdp() {
	local sent
	fresh
	host p1 p2 && cable p1 eth0 p2 eth0 &&
		ip -n p1 addr add 10.1.0.2/24 dev eth0 &&
		ip -n p2 addr add 10.1.0.3/24 dev eth0 &&
		neighbours p1 eth0 10.1.0.2 p2 eth0 10.1.0.3 || return
	mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf || return
	python3 -IS "$TOP/tests/guest/pathprof/stages/xdp_pass.py" /sys/fs/bpf/pass || return
	defer rm /sys/fs/bpf/pass
	# In its own mount namespace, ip netns exec has another /sys.
	nsenter --net=/run/netns/p1 \
		ip link set eth0 xdpgeneric pinned /sys/fs/bpf/pass &&
		nsenter --net=/run/netns/p2 \
			ip link set eth0 xdpgeneric pinned /sys/fs/bpf/pass || return
	sysctl -qw kernel.bpf_stats_enabled=1
	record xdp xdp p1 p2 10.1.0.3 4000 4000 23 100 || return
	sysctl -qw kernel.bpf_stats_enabled=0
	sent=$(snmp_of Tcp OutSegs p1 p2)
	is "$(entered xdp xdp)" "$(runs /sys/fs/bpf/pass)" &&
		is "$(passed xdp xdp)" "$sent" && whole xdp "$sent"
}
check "generic XDP" case_xdp

# Steps: tcpdump at one end of a cable.
# Expected: each packet that it got entered the stage, sent or received.
case_tap() {
	local sent dumper
	fresh
	host p1 p2 && cable p1 eth0 p2 eth0 &&
		ip -n p1 addr add 10.1.0.2/24 dev eth0 &&
		ip -n p2 addr add 10.1.0.3/24 dev eth0 &&
		neighbours p1 eth0 10.1.0.2 p2 eth0 10.1.0.3 || return
	ip netns exec p2 tcpdump -i eth0 -nn -U -s 256 -B 8192 \
		--immediate-mode -w tap.pcap tcp 2>dump.log &
	dumper=$!
	wait_for 20 grep -q '^tcpdump: listening' dump.log || return
	record tap tap p1 p2 10.1.0.3 4000 4000 23 100 || return
	sent=$(snmp_of Tcp OutSegs p1 p2)
	wait_for 20 captured "$sent"
	kill -INT $dumper
	wait $dumper
	is "$(entered tap tap)" "$(tcpdump -nn -r tap.pcap 2>err | wc -l)" &&
		is "$(passed tap tap)" "$sent" && whole tap "$sent"
}
captured() { [ "$(tcpdump -nn -r tap.pcap 2>err | wc -l)" -ge "$1" ]; }
check "a tap of AF_PACKET" case_tap

# Steps: counters of nft in the hook of a bridge that forwards, and in the
# ingress hook of one of its ports.
# Expected: the stages have what the counters have.
case_nf() {
	local sent
	fresh
	host h && pod h br1 1 p1 && host p2 && cable p2 eth0 h to-p2 &&
		ip -n h link set to-p2 master br1 &&
		ip -n p2 addr add 10.1.0.3/24 dev eth0 &&
		neighbours p1 eth0 10.1.0.2 p2 eth0 10.1.0.3 || return
	ip netns exec h nft -f - <<-END || return
		table bridge b {
			counter seen { }
			chain c {
				type filter hook forward priority 0
				ip protocol tcp counter name seen
			}
		}
		table netdev d {
			counter seen { }
			chain c {
				type filter hook ingress device to-p1 priority 0;
				ip protocol tcp counter name seen
			}
		}
	END
	record nf netfilter,bridge p1 p2 10.1.0.3 4000 4000 23 100 || return
	sent=$(snmp_of Tcp OutSegs p1 p2)
	is "$(entered nf nf_bridge nf_dev)" \
		"$(counter_of bridge b) $(counter_of netdev d)" &&
		is "$(passed nf nf_bridge)" "$sent" && whole nf "$sent"
}
counter_of() {
	ip netns exec h nft -j list counter "$1" "$2" seen |
		python3 -IS -c 'import json, sys
print([c["counter"]["packets"] for c in json.load(sys.stdin)["nftables"]
       if "counter" in c][0])'
}
check "netfilter of a bridge and of a device" case_nf

# Steps: the same traffic recorded with several expressions at the same time, and
# dumped: two ports, a port of one end, a network, a flag, a length, and a
# negation of two.
# Expected: each recording has as many packets as tcpdump finds for its
# expression.
FILTERS=(
	'tcp port 4041 or tcp port 4042'
	'tcp src port 4041 and tcp[tcpflags] & tcp-syn != 0'
	'src net 127.8.0.0/16 and src port 4042'
	'tcp and greater 150 and not (port 4041 or port 4099)'
)
case_filters() {
	local i pids=() dumper
	tcpdump -i lo -nn -U -s 256 -B 8192 --immediate-mode -w lo.pcap tcp \
		2>lo.log &
	dumper=$!
	wait_for 20 grep -q '^tcpdump: listening' lo.log || return
	for i in "${!FILTERS[@]}"; do
		: >"ready$i"
		"$PP" record --sample 1 --dir rx --filter "${FILTERS[i]}" \
			-o "f$i" --ready-fd 9 9>"ready$i" &
		pids+=($!)
	done
	for i in "${!FILTERS[@]}"; do
		wait_for 120 test -s "ready$i" || return
	done
	ping_pong 4041 9 127.0.0.1 4042 5 127.8.0.1 4043 7 127.0.0.1 \
		4099 1 127.0.0.1
	# Both FINs of the last connection.
	wait_for 20 dumped
	kill -INT $dumper "${pids[@]}"
	wait $dumper "${pids[@]}" || return
	for i in "${!FILTERS[@]}"; do
		echo "# ${FILTERS[i]}: $(matching "${FILTERS[i]}")" >&3
		is "$(fields "f$i" 'n("rx"), a["unaccounted"]')" \
			"$(matching "${FILTERS[i]}") 0" &&
			more_than "$(matching "${FILTERS[i]}")" 0 packets || return
	done
}
dumped() { [ "$(matching 'tcp port 4099 and tcp[13] & 1 != 0')" -ge 2 ]; }
matching() { tcpdump -nn -r lo.pcap "$1" 2>err | wc -l; }
check "several filters, against tcpdump" case_filters
