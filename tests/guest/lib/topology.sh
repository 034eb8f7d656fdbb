# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Hosts of namespaces for the tests of pathprof --stages: pods behind bridges, a
# router, tunnels.  No ARP and no IPv6, so that devices count TCP only.
# Sourced after lib.sh and profiles.sh.

# host NAME...: namespaces that forward.
host() {
	local ns
	for ns; do
		ip netns add "$ns" || return
		defer "ip netns del $ns"
		ip netns exec "$ns" sysctl -qw net.ipv4.ip_forward=1 \
			net.ipv6.conf.all.disable_ipv6=1 \
			net.ipv6.conf.default.disable_ipv6=1
		ip -n "$ns" link set lo up
	done
}

# cable A DEVICE B DEVICE: veth between two namespaces.
cable() {
	ip link add "$2" netns "$1" type veth peer name "$4" netns "$3" || return
	ip -n "$1" link set "$2" up
	ip -n "$3" link set "$4" up
}

mac_of() { ip netns exec "$1" cat "/sys/class/net/$2/address"; }

# neighbours A DEVICE ADDRESS B DEVICE ADDRESS: without asking.
neighbours() {
	ip -n "$1" neigh replace "$6" lladdr "$(mac_of "$4" "$5")" dev "$2" &&
		ip -n "$4" neigh replace "$3" lladdr "$(mac_of "$1" "$2")" \
			dev "$5"
}

# pod HOST BRIDGE NET POD: POD at 10.NET.0.2 behind BRIDGE, 10.NET.0.1, of HOST.
pod() {
	host "$4" || return
	ip -n "$1" link add "$2" type bridge &&
		ip -n "$1" addr add "10.$3.0.1/24" dev "$2" &&
		ip -n "$1" link set "$2" up || return
	cable "$4" eth0 "$1" "to-$4" &&
		ip -n "$1" link set "to-$4" master "$2" &&
		ip -n "$4" addr add "10.$3.0.2/24" dev eth0 &&
		ip -n "$4" route add default via "10.$3.0.1" || return
	neighbours "$4" eth0 "10.$3.0.2" "$1" "$2" "10.$3.0.1"
}

# exchange CLIENT SERVER ADDRESS PORT LISTEN COUNT SIZE [KIND]: COUNT writes of
# SIZE bytes each way, each read before the next; ends when both have closed.
# KIND: mptcp, ktls, udp, or options, as TCP with IPv6 destination options.
exchange() {
	python3 -IS - "$@" <<'END'
import ctypes, os, socket, struct, sys
client, server, address, port, listen, count, size, *kind = sys.argv[1:]
kind = kind[0] if kind else "tcp"
libc = ctypes.CDLL(None, use_errno=True)
family = socket.AF_INET6 if ":" in address else socket.AF_INET
sort = socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM
def enter(ns):
    with open("/run/netns/" + ns) as f:
        if libc.setns(f.fileno(), 0x40000000):
            raise OSError(ctypes.get_errno(), "setns")
def open_socket():
    s = socket.socket(family, sort, 262 if kind == "mptcp" else 0)
    s.settimeout(20)
    if kind == "options":  # IPV6_DSTOPTS: one of padding
        s.setsockopt(socket.IPPROTO_IPV6, 59, bytes([0, 0, 1, 4, 0, 0, 0, 0]))
    return s
enter(server)
listener = open_socket()
listener.bind(("", int(listen)))
enter(client)
a = open_socket()
if kind == "udp":
    a.connect((address, int(port)))
    a.send(b"first")
    b = listener
    b.connect(b.recvfrom(10)[1])
    b.send(b"first")
    a.recv(10)
else:
    listener.listen()
    a.connect((address, int(port)))
    b = listener.accept()[0]
if kind == "ktls":  # TLS 1.2, AES-128-GCM; one key is enough here
    info = struct.pack("HH", 0x303, 51) + bytes(8 + 16 + 4 + 8)
    for s in a, b:
        s.setsockopt(socket.IPPROTO_TCP, 31, b"tls")
        for way in 1, 2:
            s.setsockopt(282, way, info)
size = int(size)
for i in range(int(count) - (kind == "udp")):
    for x, y in (a, b), (b, a):
        x.sendall(b"x" * size)
        left = size
        while left:
            left -= len(y.recv(left))
a.close()
if kind != "udp":
    b.recv(1)
b.close()
END
}

# closed NETNS...: no connection there that could still send.
closed() {
	local ns
	for ns; do
		[ -z "$(ip netns exec "$ns" ss -Htan state connected \
			exclude time-wait)" ] || return
	done
}

# snmp_of PROTOCOL WORD NETNS...: a counter, as Tcp OutSegs, over namespaces.
snmp_of() {
	local protocol=$1 word=$2 ns
	shift 2
	for ns; do
		ip netns exec "$ns" cat /proc/net/snmp
	done | awk -v word="$word" -v protocol="$protocol:" '$1 == protocol {
		if (at) { sum += $at; at = 0; next }
		for (i = 2; i <= NF; i++) if ($i == word) at = i }
		END { print sum + 0 }'
}

# link_of NETNS DEVICE rx|tx: packets.
link_of() {
	ip netns exec "$1" cat "/sys/class/net/$2/statistics/$3_packets"
}

# nft_of NETNS COUNTER: packets of a named counter.
nft_of() {
	ip netns exec "$1" nft -j list counter ip t "$2" |
		python3 -IS -c 'import json, sys
print([c["counter"]["packets"] for c in json.load(sys.stdin)["nftables"]
       if "counter" in c][0])'
}

# hooks_counted NETNS: a counter for TCP in every hook of IP there.
hooks_counted() {
	local hook
	{
		echo "table ip t {"
		for hook in prerouting input forward output postrouting; do
			echo "counter $hook { }
			chain c_$hook {
				type filter hook $hook priority 250
				meta l4proto tcp counter name $hook
			}"
		done
		echo "}"
	} | ip netns exec "$1" nft -f -
}

# service HOST BRIDGE: 10.96.0.1 port 80 is the pod 10.3.0.2 port 4000 behind
# BRIDGE, which sees the address of HOST.
service() {
	ip netns exec "$1" nft -f - <<-END
		table ip nat {
			chain pre {
				type nat hook prerouting priority -100
				ip daddr 10.96.0.1 tcp dport 80 dnat to 10.3.0.2:4000
			}
			chain post {
				type nat hook postrouting priority 100
				oifname $2 masquerade
			}
		}
	END
}

# container_host: h with the pods p1, 10.1.0.2, and p2, 10.3.0.2, and a service.
container_host() {
	host h && pod h br1 1 p1 && pod h br2 3 p2 && hooks_counted h &&
		service h br2
}

# two_hosts: g1 and g2, each with a pod, p1 and p2, and a wire between them.
two_hosts() {
	host g1 g2 && pod g1 br1 1 p1 && pod g2 br2 3 p2 &&
		cable g1 wire g2 wire &&
		ip -n g1 addr add 10.9.0.1/24 dev wire &&
		ip -n g2 addr add 10.9.0.2/24 dev wire &&
		neighbours g1 wire 10.9.0.1 g2 wire 10.9.0.2 &&
		hooks_counted g1 && hooks_counted g2
}

# through DEVICE: the pods' networks are behind this device of the two hosts.
through() {
	ip -n g1 addr add 10.8.0.1/24 dev "$1" &&
		ip -n g2 addr add 10.8.0.2/24 dev "$1" &&
		ip -n g1 link set "$1" mtu 1400 up &&
		ip -n g2 link set "$1" mtu 1400 up &&
		ip -n g1 route add 10.3.0.0/24 via 10.8.0.2 dev "$1" &&
		ip -n g2 route add 10.1.0.0/24 via 10.8.0.1 dev "$1"
}

vxlan_hosts() {
	two_hosts || return
	ip -n g1 link add tunnel type vxlan id 7 local 10.9.0.1 \
		remote 10.9.0.2 dstport 4789 dev wire &&
		ip -n g2 link add tunnel type vxlan id 7 local 10.9.0.2 \
			remote 10.9.0.1 dstport 4789 dev wire &&
		through tunnel &&
		neighbours g1 tunnel 10.8.0.1 g2 tunnel 10.8.0.2
}

gre_hosts() {
	two_hosts || return
	ip -n g1 link add tunnel type gre local 10.9.0.1 remote 10.9.0.2 &&
		ip -n g2 link add tunnel type gre local 10.9.0.2 \
			remote 10.9.0.1 && through tunnel
}

ipip_hosts() {
	two_hosts || return
	ip -n g1 link add tunnel type ipip local 10.9.0.1 remote 10.9.0.2 &&
		ip -n g2 link add tunnel type ipip local 10.9.0.2 \
			remote 10.9.0.1 && through tunnel
}

wireguard_hosts() {
	local ns
	two_hosts || return
	for ns in g1 g2; do
		wg genkey >"$ns.key" && wg pubkey <"$ns.key" >"$ns.public" &&
			ip -n "$ns" link add tunnel type wireguard || return
	done
	ip netns exec g1 wg set tunnel listen-port 51820 private-key g1.key \
		peer "$(cat g2.public)" endpoint 10.9.0.2:51820 \
		allowed-ips 10.8.0.2/32,10.3.0.0/24 &&
		ip netns exec g2 wg set tunnel listen-port 51820 \
			private-key g2.key peer "$(cat g1.public)" \
			endpoint 10.9.0.1:51820 \
			allowed-ips 10.8.0.1/32,10.1.0.0/24 &&
		through tunnel
}

# stacked KIND OPTION...: pods p1 and p2, 10.1.0.2 and 10.1.0.3, on devices of
# this kind above a cable.
stacked() {
	host p1 p2 && cable p1 wire p2 wire &&
		ip -n p1 link add link wire name upper type "$@" &&
		ip -n p2 link add link wire name upper type "$@" &&
		ip -n p1 addr add 10.1.0.2/24 dev upper &&
		ip -n p2 addr add 10.1.0.3/24 dev upper &&
		ip -n p1 link set upper up && ip -n p2 link set upper up &&
		{ [ "$1" = ipvlan ] || neighbours p1 upper 10.1.0.2 p2 upper 10.1.0.3; }
}

# record OUT GROUPS EXCHANGE...: until both ends of the exchange have closed.
# RECORD: further options.
record() {
	local out=$1 groups=$2
	shift 2
	# shellcheck disable=SC2086 # several words
	"$PP" record --sample 1 ${RECORD:-} --stages "$groups" \
		--events "$out.events" \
		-o "$out" -- bash -c "$(declare -f wait_for closed exchange)
		exchange $* && wait_for 60 closed $1 $2" 2>err ||
		{ cat err; return 1; }
}


# passed FILE STAGE...: packets whose path has the stage.
passed() {
	local file=$1 stage asked=()
	shift
	for stage; do asked+=("n('@$stage')"); done
	fields "$file" "${asked[@]}" | paste -sd ' '
}

# entered FILE STAGE...: how often packets came to a stage.
entered() {
	local file=$1 stage asked=()
	shift
	for stage; do
		asked+=("sum(x['packets'] * sum(names[i] == '$stage' for i in x['stages']) for x in p['paths'])")
	done
	fields "$file" "${asked[@]}" | paste -sd ' '
}

# whole FILE SEGMENTS: every packet that TCP sent has one path, from its sender
# to the other end's TCP; nothing was lost, and nothing began on the way.
whole() {
	fields "$1" '(sum(x["segments"] for x in p["paths"] if x["end"] != "merged"),
		n("rx"), n("tx", "sent"), n("tx", "freed"),
		p["counters"].get("copies", 0), a["unaccounted"], a["in_flight"],
		a["reentered"], sum(a[i] for i in ("evicted", "stale", "no_slot",
		"map_full", "abandoned", "sock_clash")))' >got || return
	echo "# $1: segments, rx, sent, freed, copies, unaccounted, in flight," \
		"reentered, lost: $(cat got)" >&3
	is "$(cat got)" "$2 0 0 0 0 0 0 0 0" || {
		fields "$1" '"\n".join(str((x["packets"], x["direction"],
			x["end"], *x["flags"], *(names[i] for i in
			x["stages"]))) for x in p["paths"])'
		return 1
	}
}

# fresh: without the namespaces of the case before.
fresh() {
	ip -all netns del
}
