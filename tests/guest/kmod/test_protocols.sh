#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Both policies on, and the protocols and options around them: every byte
# arrives, what the user asked for holds, and sockets whose window or segment
# size others own are left alone.  The cases are in protocols.py.
. "$(dirname "$0")/../../lib.sh"
plan 23

insmod "$MODULE" tx_frac=64 rx_frac=64 || exit
unload() { ! grep -q '^mssfrac ' /proc/modules || rmmod mssfrac; }
defer unload
modprobe -a tls 9pnet_fd 9p 2>/dev/null # or built in
grep -q tls /proc/sys/net/ipv4/tcp_available_ulp || exit

# a-b directly and through the router m; c-d for sockets to be left alone:
# nothing else may move the counters there.
pair a b 9000
ip netns add m
defer "ip netns del m"
# behind_router SIDE N: SIDE's network behind m is 10.9.N.0/24 and fd09:N::/64.
behind_router() {
	local other=$((3 - $2))
	ip link add "to_$1" netns m type veth peer name to_m netns "$1"
	ip -n m link set "to_$1" mtu 9000 up
	ip -n "$1" link set to_m mtu 9000 up
	ip -n m addr add "10.9.$2.1/24" dev "to_$1"
	ip -n m addr add "fd09:$2::1/64" dev "to_$1" nodad
	ip -n "$1" addr add "10.9.$2.2/24" dev to_m
	ip -n "$1" addr add "fd09:$2::2/64" dev to_m nodad
	ip -n "$1" route add "10.9.$other.0/24" via "10.9.$2.1"
	ip -n "$1" route add "fd09:$other::/64" via "fd09:$2::1"
}
behind_router a 1
behind_router b 2
ip netns exec m sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
pair c d 9000

python_cases "$TOP/tests/guest/kmod/protocols.py"

# KASAN (the debug kernel) sees a state whose namespace is gone.
sleep 1 # the namespace is freed after a grace period
check "the module unloads while a socket outlives its namespace" rmmod mssfrac
