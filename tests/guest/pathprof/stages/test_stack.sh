#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pathprof --stages: one path through the whole host.  Each stage has as many
# packets as the counter of the kernel beside it, and none is lost on the way.

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../../lib.sh"
# shellcheck source=tests/guest/lib/profiles.sh
. "$(dirname "$0")/../../lib/profiles.sh"
# shellcheck source=tests/guest/lib/topology.sh
. "$(dirname "$0")/../../lib/topology.sh"

cd "$TMP" || exit
stage_pathprof || exit
exec 3>&1 # numbers worth seeing even when all is well

plan 7

# Steps: 23 messages each way from a pod through a service to another pod: two
# bridges, DNAT, masquerading.
# Expected: the five hooks have what nft counts, the bridge and the crossings
# what their devices count; every packet has one path.
case_containers() {
	local sent before
	container_host || return
	before=$(($(link_of h br1 rx) + $(link_of h br2 rx)))
	record containers all p1 p2 10.96.0.1 80 4000 23 100 || return
	sent=$(snmp_of Tcp OutSegs p1 p2)
	is "$(passed containers nf_pre nf_in nf_fwd nf_out)" \
		"$(for i in prerouting input forward output; do nft_of h $i
		done | paste -sd ' ')" &&
		is "$(passed containers nf_post conntrack)" \
			"$(nft_of h postrouting) $sent" &&
		is "$(passed containers forward)" "$(nft_of h forward)" &&
		is "$(passed containers forward)" "$sent" &&
		is "$(passed containers bridge cross)" \
			"$(($(link_of h br1 rx) + $(link_of h br2 rx) - before)) $sent" &&
		is "$(($(link_of h to-p1 rx) + $(link_of h to-p2 rx)))" "$sent" &&
		whole containers "$sent"
}
check "pod, bridge, DNAT, masquerade, bridge, pod" case_containers

# Steps: look at a packet of that recording.
# Expected: the journey names the devices and namespaces on the way, and the
# addresses before and after NAT.
case_journey() {
	local number pod
	number=$("$PP" journey --list containers.events |
		awk '/>80 / && /data/ { print $1; exit }')
	"$PP" journey containers.events "$number" >way || return
	sed "s/^/# /" way >&3
	pod=$(stat -Lc %i /run/netns/p2)
	is "$(grep -c '^-- ' way) $(grep "^-- " way | sed 's/^-- //; s/,.*//' |
		paste -sd ' ')" "6 eth0 to-p1 br1 br2 to-p2 eth0" &&
		grep -A1 "^-- eth0, interface [0-9]*, network namespace $pod\$" way |
		grep -q '> 10.3.0.2:4000$' &&
		grep -A1 "^-- br1," way |
		grep -q '10.1.0.2:.* > 10.96.0.1:80$'
}
check "its journey names devices, namespaces and addresses" case_journey

# Steps: the same once more, with two functions as stages: one that the kernel
# has a stage for as well, and one of a module, which gets the packet as its
# second argument.
# Expected: as many packets as nft forwards, and as TCP sent; every packet has one
# path.  A function without a packet, and one that is not there, are refused.
case_functions() {
	local sent forwarded what
	sent=$(snmp_of Tcp OutSegs p1 p2)
	forwarded=$(nft_of h forward)
	RECORD="--stage ip_forward,nf_nat_inet_fn" \
		record functions forward p1 p2 10.96.0.1 80 4000 23 100 || return
	sent=$(($(snmp_of Tcp OutSegs p1 p2) - sent))
	forwarded=$(($(nft_of h forward) - forwarded))
	is "$(passed functions forward ip_forward nf_nat_inet_fn)" \
		"$forwarded $forwarded $sent" && whole functions "$sent" || return
	for what in tcp_sendmsg_locked no_such_function; do
		"$PP" record --sample 1 --stage "$what" -o none -- true 2>err
		is "$? $(wc -l <err) $(grep -c "^pathprof: record: --stage $what: " err)" \
			"3 1 1" || return
	done
}
check "functions that --stage names" case_functions

# Steps: the same once more, only packets of the service's address, with and
# without --nat; those that it sends, by an expression; another connection.
# Expected: with --nat both directions from the write on, every packet with one
# path; without it the answers only from where they have the address.  Of the
# expression, the answers.  Of the other connection, nothing.
case_nat() {
	local sent only="--addr 10.96.0.1"
	sent=$(snmp_of Tcp OutSegs p1 p2)
	RECORD="--nat $only" record nat netfilter p1 p2 10.96.0.1 80 4000 23 100 &&
		sent=$(($(snmp_of Tcp OutSegs p1 p2) - sent)) &&
		whole nat "$sent" &&
		RECORD="--nat $only" record other netfilter p1 p2 10.3.0.2 4000 4000 23 100 &&
		RECORD=$only record plain netfilter p1 p2 10.96.0.1 80 4000 23 100 &&
		"$PP" record --sample 1 --stages netfilter --nat -o source \
			--filter "src host 10.96.0.1 and src port 80" -- bash -c \
			"$(declare -f wait_for closed exchange)
			exchange p1 p2 10.96.0.1 80 4000 23 100 &&
				wait_for 60 closed p1 p2" || return
	is "$(for i in nat plain source other; do
		fields $i 'n("data", "@write"), n("data")'
	done | paste -sd ' ')" "46 46 23 46 23 23 0 0"
}
check "a filter that follows NAT" case_nat

# above STAGE KIND...: 23 messages between devices above a cable.
above() {
	local stage=$1 sent
	shift
	fresh
	stacked "$@" || return
	record "$stage" vlan p1 p2 10.1.0.3 4000 4000 23 100 || return
	sent=$(snmp_of Tcp OutSegs p1 p2)
	is "$(passed "$stage" "$stage" cross)" "$sent $sent" &&
		whole "$stage" "$sent"
}
check "VLAN devices" above vlan vlan id 5
check "macvlan devices" above macvlan macvlan mode bridge

# Steps: record without --stages.
# Expected: no hook of it is attached; a packet's path ends at the driver.
case_default() {
	fresh
	host p1 p2 && cable p1 eth0 p2 eth0 &&
		ip -n p1 addr add 10.1.0.2/24 dev eth0 &&
		ip -n p2 addr add 10.1.0.3/24 dev eth0 || return
	"$PP" record --sample 1 -o plain -- bash -c "$(declare -f exchange)
		exchange p1 p2 10.1.0.3 4000 4000 23 100" || return
	fields plain '[h["name"] for h in p["hooks"] if h["state"] == "attached"
		and h["name"] in ("__dev_forward_skb", "netif_rx",
		"ip_route_input_noref", "nf_hook_slow")],
		n("@cross"), n("tx", "data", "sent"), n("rx", "data")' >got || return
	is "$(cat got)" "[] 0 46 46"
}
check "nothing of it without --stages" case_default
