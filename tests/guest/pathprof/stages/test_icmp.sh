#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pathprof --stages icmp: echo requests, replies and errors, from the socket or
# ICMP to the one that gets them.  Each has one path, and the paths are as many as
# the kernel's counters of ICMP, or as a counter of netfilter.
# long: attaches the hooks of --stages for each case

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../../lib.sh"
# shellcheck source=tests/guest/lib/profiles.sh
. "$(dirname "$0")/../../lib/profiles.sh"
# shellcheck source=tests/guest/lib/topology.sh
. "$(dirname "$0")/../../lib/topology.sh"
# shellcheck source=tests/guest/lib/topology_devices.sh
. "$(dirname "$0")/../../lib/topology_devices.sh"

cd "$TMP" || exit
stage_pathprof || exit
exec 3>&1 # numbers worth seeing even when all is well

PINGS=$TOP/tests/guest/pathprof/stages/pings.py

plan 21

# ping_from NETNS ARGUMENT...: of tests/guest/pathprof/stages/pings.py.
ping_from() {
	local ns=$1
	shift
	ip netns exec "$ns" python3 -IS "$PINGS" "$@"
}

# recorded OUT GROUPS COMMAND...: every packet while a command runs.  RECORD: as
# in topology.sh.
recorded() {
	local out=$1 groups=$2
	shift 2
	# shellcheck disable=SC2086 # several words
	"$PP" record --sample 1 ${RECORD:-} --stages "$groups" \
		--events "$out.events" -o "$out" -- \
		bash -c "$(declare -f ping_from); PINGS=$PINGS; $*" 2>err ||
		{ cat err; return 1; }
}

icmp6_of() {
	local word=$1 ns
	shift
	for ns; do
		ip netns exec "$ns" cat /proc/net/snmp6
	done | awk -v word="$word" '$1 == word { sum += $2 } END { print sum + 0 }'
}

# complete FILE: nothing of it was lost, and nothing began on the way.
complete() {
	fields "$1" '(n("icmp"), n("icmp", "rx"), a["sampled"],
		p["counters"].get("copies", 0), a["unaccounted"], a["in_flight"],
		a["reentered"], sum(a[i] for i in ("evicted", "stale", "no_slot",
		"map_full", "abandoned", "sock_clash")))' >got || return
	echo "# $1: icmp, rx, sampled, copies, unaccounted, in flight," \
		"reentered, lost: $(cat got)" >&3
	awk '$1 == $3 && !$2 && !$4 && !$5 && !$6 && !$7 && !$8 { good = 1 }
		END { exit !good }' got || {
		each_path "$1"
		return 1
	}
}

# echoes ADDRESS KIND [OPTION...]: 23 echo requests, and as many replies.
# Expected: each request was used up by ICMP there, each reply read here.
echoes() {
	local address=$1 kind=$2
	shift 2
	fresh
	pods6 || return
	ip netns exec p1 sysctl -qw net.ipv4.ping_group_range='0 2147483647'
	recorded echo icmp "ping_from p1 $kind $address 23 $*" || return
	case $address in
	*:*) is "$(icmp6_of Icmp6InEchos p2) $(icmp6_of Icmp6OutEchoReplies p2)" \
		"23 23" ;;
	*) is "$(snmp_of Icmp InEchos p2) $(snmp_of Icmp OutEchoReps p2)" \
		"23 23" ;;
	esac && complete echo &&
		is "$(fields echo '(n("consumed", "@icmp_out", "@icmp"),
			n("delivered", "@icmp_out", "@icmp", "@socket", "@copy"),
			n("icmp"))')" "23 23 46"
}
check "echo over veth: a raw socket" echoes 10.1.0.3 raw
check "echo over veth: a ping socket" echoes 10.1.0.3 ping
check "echo over veth: IPv6, a raw socket" echoes fd01::3 raw
check "echo over veth: IPv6, a ping socket" echoes fd01::3 ping
check "other raw sockets refuse the replies" echoes 10.1.0.3 raw --refusing
check "other raw sockets of IPv6 refuse the replies" echoes fd01::3 raw --refusing

# later_are COUNT: so many fragments after the first were counted.
later_are() {
	more_than "$1" 100 "later fragments" &&
		is "$(fields echo 'p["counters"]["fragments"]')" "$1"
}

# Steps: the same with messages that need four fragments each.
# Expected: the same, and each later fragment is counted once, as the kernel
# counts them.
case_big() {
	echoes 10.1.0.3 raw --size 5000 &&
		later_are "$(($(snmp_of Ip FragCreates p1 p2) -
			$(snmp_of Ip FragOKs p1 p2)))"
}
case_big6() {
	echoes fd01::3 raw --size 5000 &&
		later_are "$(($(icmp6_of Ip6FragCreates p1 p2) -
			$(icmp6_of Ip6FragOKs p1 p2)))"
}
check "fragments" case_big
check "fragments of IPv6" case_big6

# routed: p1, 10.1.0.2 and fd01::2, and p2, 10.3.0.2 and fd03::2, behind the
# router h, which has address 1 in both networks.
routed() {
	local n
	host p1 h p2 || return
	for n in 1 2; do
		cable "p$n" eth0 h "to-p$n" &&
			ip -n "p$n" addr add "10.$((2 * n - 1)).0.2/24" dev eth0 &&
			ip -n h addr add "10.$((2 * n - 1)).0.1/24" dev "to-p$n" &&
			ipv6_on "p$n" eth0 "fd0$((2 * n - 1))::2" &&
			ipv6_on h "to-p$n" "fd0$((2 * n - 1))::1" &&
			neighbours "p$n" eth0 "10.$((2 * n - 1)).0.2" h "to-p$n" \
				"10.$((2 * n - 1)).0.1" &&
			neighbours "p$n" eth0 "fd0$((2 * n - 1))::2" h "to-p$n" \
				"fd0$((2 * n - 1))::1" &&
			ip -n "p$n" route add default via "10.$((2 * n - 1)).0.1" &&
			ip -n "p$n" -6 route add default \
				via "fd0$((2 * n - 1))::1" || return
	done
	ip netns exec h sysctl -qw net.ipv6.conf.all.disable_ipv6=0 \
		net.ipv6.conf.all.forwarding=1 || return
	for n in p1 h p2; do
		ip netns exec "$n" sysctl -qw net.ipv4.icmp_ratelimit=0 \
			net.ipv6.icmp.ratelimit=0 || return
	done
}

# masqueraded: routed, and h hides p1 behind its own address; it counts what it
# forwards.
masqueraded() {
	fresh
	routed || return
	ip netns exec h nft -f - <<-END
		table ip t {
			counter forwarded { }
			chain f {
				type filter hook forward priority 0
				ip protocol icmp counter name forwarded
			}
			chain post {
				type nat hook postrouting priority 100
				oifname to-p2 masquerade
			}
		}
	END
}

# Steps: 23 echo requests through a router that translates addresses.
# Expected: each message has one path from its sender to its reader; the router
# has forwarded as many as nft counts.
case_masquerade() {
	masqueraded || return
	recorded echo all "ping_from p1 raw 10.3.0.2 23" || return
	is "$(nft_of h forwarded) $(snmp_of Icmp InEchos p2)" "46 23" &&
		complete echo &&
		is "$(fields echo '(n("icmp"), n("@nf_fwd", "@conntrack"),
			n("@forward"), n("consumed"), n("delivered"))')" \
			"46 46 46 23 23"
}
check "through a router that masquerades" case_masquerade

# Steps: look at a reply of that recording.
# Expected: the journey names the protocol, and the addresses on either side of
# the router; no port.  So does its JSON.
case_journey() {
	local number
	number=$("$PP" journey --json --list echo.events | python3 -IS -c '
import json, sys
print([j["packet"] for j in json.load(sys.stdin)["packets"]
       if j["source"] == "10.3.0.2"][0])') &&
	"$PP" journey echo.events "$number" >way || return
	sed "s/^/# /" way >&3
	head -n 1 way | grep 'tx icmp' && grep -A1 '^-- to-p1,' way |
		grep -q '10.3.0.2:0 > 10.1.0.2:0$' || return
	"$PP" journey --json echo.events "$number" | python3 -IS -c '
import json, sys
j = json.load(sys.stdin)["packets"][0]
print(j["flags"], j["source_port"], j["destination_port"], j["path"])' >got
	is "$(cat got)" "['copied', 'icmp'] 0 0 tx icmp"
}
check "its journey names ICMP and the addresses, and no port" case_journey

# Steps: the same, only messages of the router's address there; requests from it,
# by an expression; with the identifier of the messages as a port; without --nat.
# Expected: with --nat all of these from their senders on, and none has a port.
# Without it each where it has the address.
case_nat() {
	local only="--addr 10.3.0.1"
	masqueraded || return
	RECORD="--nat $only" recorded nat netfilter,icmp \
		"ping_from p1 raw 10.3.0.2 23" && complete nat &&
		RECORD="--nat --filter ip[12:4]=0x0a030001&&icmp[0]=8" \
		recorded named netfilter,icmp "ping_from p1 raw 10.3.0.2 23" &&
		RECORD="--nat --port 4711" recorded port netfilter,icmp \
			"ping_from p1 raw 10.3.0.2 23" &&
		RECORD=$only recorded plain netfilter,icmp \
			"ping_from p1 raw 10.3.0.2 23" || return
	is "$(for i in nat named port plain; do
		fields $i '(n("icmp"), n("icmp", "@icmp_out", "@nf_fwd"))'
	done | paste -sd ' ')" "46 46 23 23 0 0 46 23"
}
check "a filter that follows NAT" case_nat

# errors: what became of errors, and of what they are about.
errors() {
	fields error '(n("icmp", "@icmp_out", "consumed"), n("icmp", "dropped"),
		a["unaccounted"], a["in_flight"])'
}

# Steps: seven datagrams to a port where nobody listens.
# Expected: as many errors, used up where the datagrams came from.
case_unreachable() {
	fresh
	routed || return
	recorded error icmp 'for i in 1 2 3 4 5 6 7; do
		echo | ip netns exec p1 python3 -IS -c "
import socket, sys
s = socket.socket(socket.AF_INET6 if sys.argv[1] == \"6\" else socket.AF_INET,
                  socket.SOCK_DGRAM)
s.sendto(b\"x\", (\"fd03::2\" if sys.argv[1] == \"6\" else \"10.3.0.2\", 9))" $((i > 3 ? 6 : 4)); done' ||
		return
	is "$(snmp_of Icmp OutDestUnreachs p2) $(snmp_of Icmp InDestUnreachs p1)" \
		"3 3" &&
		is "$(icmp6_of Icmp6OutDestUnreachs p2) $(icmp6_of \
			Icmp6InDestUnreachs p1)" "4 4" && complete error &&
		is "$(errors)" "7 0 0 0"
}
check "errors: port unreachable" case_unreachable

# Steps: nine echo requests that may pass no router.
# Expected: these are dropped there, and an error goes back for each.
case_exceeded() {
	fresh
	routed || return
	recorded error icmp "ping_from p1 raw 10.3.0.2 4 --ttl 1 --no-answer &&
		ping_from p1 raw fd03::2 5 --ttl 1 --no-answer" || return
	is "$(snmp_of Icmp OutTimeExcds h) $(icmp6_of Icmp6OutTimeExcds h)" "4 5" &&
		complete error && is "$(errors)" "9 9 0 0"
}
check "errors: time exceeded" case_exceeded

# Steps: nine echo requests that are too long for the second network, and may
# not be divided.
# Expected: as before.
case_too_big() {
	fresh
	routed && ip -n h link set to-p2 mtu 1280 || return
	recorded error icmp "ping_from p1 raw 10.3.0.2 4 --size 1400 --whole \
		--no-answer &&
		ping_from p1 raw fd03::2 5 --size 1400 --whole --no-answer" || return
	is "$(snmp_of Icmp OutDestUnreachs h) $(icmp6_of Icmp6OutPktTooBigs h)" \
		"4 5" && complete error && is "$(errors)" "9 9 0 0"
}
check "errors: packet too big" case_too_big

# Steps: nine echo requests that netfilter drops where they arrive, and seven
# that it drops where they are sent.
# Expected: as many drops as nft counts, with its reason.
case_dropped() {
	fresh
	pods || return
	ip netns exec p2 nft "table ip t {
		counter dropped { }
		chain c {
			type filter hook input priority 0
			ip protocol icmp counter name dropped drop
		}
	}" && ip netns exec p1 nft "table ip t {
		counter dropped { }
		chain c {
			type filter hook output priority 0
			ip daddr 10.1.0.9 counter name dropped drop
		}
	}" && ip -n p1 neigh add 10.1.0.9 lladdr 02:00:00:00:00:09 dev eth0 ||
		return
	recorded dropped icmp,netfilter \
		"ping_from p1 raw 10.1.0.3 9 --no-answer &&
		ping_from p1 raw 10.1.0.9 7 --no-answer" || return
	is "$(nft_of p2 dropped) $(nft_of p1 dropped)" "9 7" &&
		complete dropped &&
		is "$(fields dropped '(n("dropped", "@nf_in"),
			n("dropped") - n("dropped", "@dev"), n("dropped"),
			{p["reasons"][str(x["reason"])] for x in p["paths"]})')" \
			"9 7 16 {'netfilter_drop'}" &&
		is "$("$PP" report dropped | grep -c 'drop:netfilter_drop')" 2
}
check "dropped by netfilter" case_dropped

# Steps: nine echo replies that nobody asked for.
# Expected: dropped, as there is no socket.
case_unwanted() {
	fresh
	pods6 || return
	recorded unwanted icmp "ping_from p1 raw 10.1.0.3 4 --type 0 --no-answer &&
		ping_from p1 raw fd01::3 5 --type 129 --no-answer" || return
	is "$(snmp_of Icmp InEchoReps p2) $(icmp6_of Icmp6InEchoReplies p2)" \
		"4 5" && complete unwanted &&
		is "$(fields unwanted '(n("dropped", "@icmp"), n("icmp"),
			{p["reasons"][str(x["reason"])] for x in p["paths"]})')" \
			"9 9 {'no_socket'}"
}
check "replies that nobody wants" case_unwanted

# Steps: echo requests of IPv6 to a neighbour whose address must be asked for.
# Expected: each message that ICMP gets, by the kernel's count, has a path; it has
# used those that are not read.
case_neighbour() {
	local got
	fresh
	pods6 && ip -n p1 neigh del fd01::3 dev eth0 &&
		ip -n p2 neigh del fd01::2 dev eth0 || return
	got=$(icmp6_of Icmp6InMsgs p1 p2)
	recorded neighbour icmp "ping_from p1 raw fd01::3 3" || return
	got=$(($(icmp6_of Icmp6InMsgs p1 p2) - got))
	more_than "$got" 7 messages && complete neighbour &&
		is "$(fields neighbour '(n("icmp", "@icmp"), n("delivered"),
			n("consumed"))')" "$got 3 $((got - 3))"
}
check "neighbour discovery" case_neighbour

# Steps: echo requests beside a connection, of which only ICMP is asked for; then
# the same of IPv6 and by an address.
# Expected: the messages, and nothing of the connection.
case_filter() {
	local filter
	fresh
	pods6 || return
	for filter in "icmp 10.1.0.3" "icmp6 fd01::3"; do
		"$PP" record --sample 1 --stages icmp --filter "${filter% *}" \
			-o filter -- bash -c "$(declare -f wait_for closed exchange \
			ping_from); PINGS=$PINGS
			ping_from p1 raw ${filter#* } 19 &
			exchange p1 p2 ${filter#* } 4000 4000 23 100 && wait" ||
			return
		is "$(fields filter '(n("icmp"), a["sampled"], a["unaccounted"],
			p["counters"]["filtered"] > 40)')" "38 38 0 True" || return
	done
}
check "only ICMP beside TCP" case_filter

# Steps: 400 echo requests, of which one message in four is followed.
# Expected: about 200 of 800, as each is drawn once.
case_sample() {
	fresh
	pods || return
	"$PP" record --sample 4 --stages icmp -o sample -- bash -c \
		"$(declare -f ping_from); PINGS=$PINGS
		ping_from p1 raw 10.1.0.3 400" || return
	fields sample 'n("icmp")' >&3
	is "$(fields sample '(130 < n("icmp") < 270, a["unaccounted"])')" "True 0"
}
check "one message in four" case_sample

# Steps: 23 echo requests through VXLAN; with UDP, which is what wraps them, and
# without.
# Expected: each message has one path, through the tunnel; UDP has none.
case_tunnel() {
	local more
	fresh
	vxlan_hosts || return
	for more in "" --udp; do
		RECORD=$more recorded tunnel icmp,tunnel,fragment \
			"ping_from p1 raw 10.3.0.2 23 --size 3000" &&
			complete tunnel &&
			is "$(fields tunnel '(n("@encap", "@decap"), n("consumed"),
				n("delivered"))')" "46 23 23" || return
	done
}
check "through VXLAN, in fragments" case_tunnel

# Steps: echo requests while only TCP is followed, in bursts and all the time,
# with UDP, and with ICMP but of an address that nobody has.
# Expected: none is followed, and the view names what was and what was not.
case_others() {
	fresh
	pods || return
	"$PP" record --filter icmp -o none -- bash -c \
		"$(declare -f ping_from); PINGS=$PINGS
		ping_from p1 raw 10.1.0.3 5" &&
		"$PP" report none >got &&
		"$PP" record --sample 1 --addr 10.1.0.7 -o none -- true &&
		"$PP" report none >>got && "$PP" record --sample 1 --udp -o udp \
		-- bash -c "$(declare -f ping_from); PINGS=$PINGS
		ping_from p1 raw 10.1.0.3 5" && "$PP" report udp >>got &&
		"$PP" record --sample 1 --stages icmp --addr 10.1.0.7 \
			-o icmp -- true && "$PP" report icmp >>got &&
		"$PP" record --sample 1 --udp --stages all --addr 10.1.0.7 \
			-o both -- true && "$PP" report both >>got || return
	is "$(fields udp '(n("icmp"), p["counters"]["not_tcp"] >= 20)')" \
		"0 True" &&
		is "$(grep -E "^(No packets|--.* more)" got)" \
			"No packets were sampled: only TCP was followed; --udp and
--sample 1 --stages icmp follow more.
No packets were sampled: only TCP was followed; --udp and
--stages icmp follow more.
No packets were sampled: TCP and UDP were followed; --stages icmp adds ICMP.
No packets were sampled: TCP and ICMP were followed; --udp adds UDP.
No packets were sampled: TCP, UDP and ICMP were followed."
}
check "nothing of it without --stages icmp, and the view says so" case_others
