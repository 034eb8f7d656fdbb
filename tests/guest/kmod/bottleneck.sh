# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# One bottleneck for several flows.  Sourced after lib.sh.

# bottleneck RATE_MBIT RTT_MS: namespaces a (senders), r (router), b.  The
# router's queue towards b is plain tail drop of one bandwidth-delay product;
# the delay is on the way back, so that nothing but the queue drops data.  No
# offloads: the queue holds segments of 1500 bytes, as on a real link.
bottleneck() {
	local ns dev
	for ns in a r b; do
		ip netns add $ns
		defer "ip netns del $ns"
		ip -n $ns link set lo up
	done
	ip link add va netns a type veth peer name ra netns r
	ip link add vb netns b type veth peer name rb netns r
	for dev in a:va:10.8.1.1 r:ra:10.8.1.2 r:rb:10.8.2.2 b:vb:10.8.2.1; do
		IFS=: read -r ns dev addr <<<"$dev"
		ip -n "$ns" addr add "$addr/24" dev "$dev"
		ip -n "$ns" link set "$dev" mtu 1500 up
		ip netns exec "$ns" ethtool -K "$dev" tso off gso off gro off \
			>/dev/null || return
	done
	ip -n a route add default via 10.8.1.2
	ip -n b route add default via 10.8.2.2
	ip netns exec r sysctl -qw net.ipv4.ip_forward=1
	ip netns exec a sysctl -qw net.ipv4.tcp_no_metrics_save=1
	tc -n r qdisc add dev rb root tbf rate "$1mbit" burst 3200 \
		limit $(($1 * $2 * 125)) || return
	tc -n b qdisc add dev vb root netem delay "$2ms" limit 10000
}

# flows SEED WARMUP_MS MEASURE_MS CC...: bytes/s of each, one line, in order.
# Starts are spread over half a second by the seed; all are measured over the
# same time.
flows() {
	local seed=$1 warmup=$2 measure=$3 i=0 cc start pids=()
	shift 3
	RANDOM=$seed
	for cc; do
		start=$((RANDOM % 500))
		(
			sleep "0.$(printf %03d $start)" # the seed's start
			exec tcpload bulk --from a --to b --address 10.8.2.1 \
				--port $((6000 + i)) --cc "$cc" \
				--warmup-ms $((warmup - start)) \
				--measure-ms "$measure"
		) >"$TMP/flow$i" 2>"$TMP/flow$i.err" &
		pids+=($!)
		i=$((i + 1))
	done
	wait "${pids[@]}"
	for ((i = 0; i < $#; i++)); do
		sed 's/.*bytes_per_s": \([0-9]*\).*/\1/' "$TMP/flow$i"
		cat "$TMP/flow$i.err" >&2
	done | paste -sd ' '
}
