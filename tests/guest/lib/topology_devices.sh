# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# More hosts for the tests of pathprof --stages: IPv6, bonds, IPv6 tunnels,
# IPsec, Open vSwitch.  Sourced after topology.sh.

# ipv6_on NETNS DEVICE ADDRESS: without duplicate address detection, routers and
# an address of the device's own.
ipv6_on() {
	ip netns exec "$1" sysctl -qw "net.ipv6.conf.$2.disable_ipv6=0" \
		"net.ipv6.conf.$2.accept_ra=0" &&
		ip -n "$1" -6 addr flush dev "$2" &&
		ip -n "$1" -6 addr add "$3/64" dev "$2" nodad
}

# pods: p1 and p2, 10.1.0.2 and 10.1.0.3, on one cable.
pods() {
	host p1 p2 && cable p1 eth0 p2 eth0 &&
		ip -n p1 addr add 10.1.0.2/24 dev eth0 &&
		ip -n p2 addr add 10.1.0.3/24 dev eth0 &&
		neighbours p1 eth0 10.1.0.2 p2 eth0 10.1.0.3
}

# pods6: with fd01::2 and fd01::3, too.
pods6() {
	pods && ipv6_on p1 eth0 fd01::2 && ipv6_on p2 eth0 fd01::3 &&
		neighbours p1 eth0 fd01::2 p2 eth0 fd01::3
}

# bonded: p1 and p2, 10.1.0.2 and 10.1.0.3, on bonds of two cables.
bonded() {
	local ns device
	host p1 p2 && cable p1 one p2 one && cable p1 two p2 two || return
	for ns in p1 p2; do
		ip -n "$ns" link add bond type bond mode balance-rr || return
		for device in one two; do
			ip -n "$ns" link set "$device" down &&
				ip -n "$ns" link set "$device" master bond ||
				return
		done
		ip -n "$ns" link set bond up
	done
	ip -n p1 addr add 10.1.0.2/24 dev bond &&
		ip -n p2 addr add 10.1.0.3/24 dev bond &&
		neighbours p1 bond 10.1.0.2 p2 bond 10.1.0.3
}

# two_hosts6: two_hosts, whose wire has fd09::1 and fd09::2, too.
two_hosts6() {
	two_hosts && ipv6_on g1 wire fd09::1 && ipv6_on g2 wire fd09::2 &&
		neighbours g1 wire fd09::1 g2 wire fd09::2
}

# tunnel6 KIND OPTION...: a tunnel over IPv6 between the two hosts.
tunnel6() {
	two_hosts6 || return
	ip -n g1 link add tunnel type "$@" local fd09::1 remote fd09::2 &&
		ip -n g2 link add tunnel type "$@" local fd09::2 \
			remote fd09::1 && through tunnel
}

vxlan6_hosts() {
	tunnel6 vxlan id 7 dstport 4789 dev wire &&
		neighbours g1 tunnel 10.8.0.1 g2 tunnel 10.8.0.2
}

ip6gre_hosts() { tunnel6 ip6gre; }
ip4ip6_hosts() { tunnel6 ip6tnl mode ipip6; }

# sit_hosts: p1 and p2, fd01::2 and fd01::3, IPv6 over IPv4 between them.
sit_hosts() {
	host p1 p2 && cable p1 wire p2 wire &&
		ip -n p1 addr add 10.9.0.1/24 dev wire &&
		ip -n p2 addr add 10.9.0.2/24 dev wire &&
		neighbours p1 wire 10.9.0.1 p2 wire 10.9.0.2 &&
		ip -n p1 link add tunnel type sit local 10.9.0.1 \
			remote 10.9.0.2 &&
		ip -n p2 link add tunnel type sit local 10.9.0.2 \
			remote 10.9.0.1 &&
		ip -n p1 link set tunnel up && ip -n p2 link set tunnel up &&
		ipv6_on p1 tunnel fd01::2 && ipv6_on p2 tunnel fd01::3
}

# one_way FROM TO NET NET: what goes from the pod of one host to that of another
# is encrypted; the security association's SPI is the first host's number.
one_way() {
	local ns use
	for ns in g1 g2; do
		ip -n "$ns" xfrm state add src "10.9.0.$1" dst "10.9.0.$2" \
			proto esp spi "$1" reqid "$1" mode tunnel \
			aead 'rfc4106(gcm(aes))' \
			0x0102030405060708090a0b0c0d0e0f1011121314 128 || return
	done
	for use in "g$1 out" "g$2 in" "g$2 fwd"; do
		ip -n "${use% *}" xfrm policy add src "10.$3.0.0/24" \
			dst "10.$4.0.0/24" dir "${use#* }" tmpl \
			src "10.9.0.$1" dst "10.9.0.$2" proto esp \
			reqid "$1" mode tunnel || return
	done
}

# ipsec_hosts: ESP in tunnel mode between the two hosts, for what the pods send.
ipsec_hosts() {
	two_hosts &&
		ip -n g1 route add 10.3.0.0/24 via 10.9.0.2 dev wire &&
		ip -n g2 route add 10.1.0.0/24 via 10.9.0.1 dev wire &&
		one_way 1 2 1 3 && one_way 2 1 3 1
}

# xfrm_of NETNS SPI: packets of a security association.
xfrm_of() {
	ip -n "$1" -s xfrm state get src "10.9.0.$2" dst "10.9.0.$((3 - $2))" \
		proto esp spi "$2" |
		sed -n '/lifetime current/{n;s/.*, \([0-9]*\)(packets).*/\1/p}'
}

# switched: p1 and p2, 10.1.0.2 and 10.1.0.3, on ports of Open vSwitch in h.
switched() {
	host h p1 p2 && cable p1 eth0 h to-p1 && cable p2 eth0 h to-p2 &&
		ip -n p1 addr add 10.1.0.2/24 dev eth0 &&
		ip -n p2 addr add 10.1.0.3/24 dev eth0 &&
		neighbours p1 eth0 10.1.0.2 p2 eth0 10.1.0.3 &&
		datapath add to-p1 to-p2
}

# datapath add DEVICE... | connect | stats: of Open vSwitch in h.
datapath() {
	ip netns exec h python3 -IS "$TOP/tests/guest/pathprof/stages/ovs_datapath.py" "$@"
}
