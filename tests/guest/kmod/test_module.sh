#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# mssfrac.ko on this kernel: it loads, counts, obeys its settings, affects its
# own namespace only, refuses bad input, and leaves nothing behind.
. "$(dirname "$0")/../../lib.sh"
plan 22

LOAD=$TOP/scripts/load
# Loaded often: keep it in memory, without what only a debugger reads.
strip --strip-debug -o "$TMP/mssfrac.ko" "$MODULE" || exit
export MODULE=$TMP/mssfrac.ko
KEYS="rx_frac tx_frac rx_mss_est tx_steady seg_max ab_percent ab_seed ab_mark"

# counter NS NAME: from /proc/net/mssfrac
counter() { ip netns exec "$1" sed -n "s/^$2 //p" /proc/net/mssfrac; }
set_in() { ip netns exec "$1" sysctl -qw "net.mssfrac.$2=$3"; }
get_in() { ip netns exec "$1" sysctl -n "net.mssfrac.$2"; }
# transfer ARGUMENT...: from namespace a to b, or as told
transfer() { tcpload bulk --from a --to b --address 10.9.0.2 "$@"; }

pair a b 9000
unload() { ! grep -q '^mssfrac ' /proc/modules || rmmod mssfrac; }
defer unload

# --- Loading and unloading ------------------------------------------------

# A module of another kernel is refused with its name and this kernel's.
other=$(find "$TOP/build/kmod" -name mssfrac.ko ! -path "*/$(uname -r)/*" |
	head -1)
if [ -n "$other" ]; then
	wrong_kernel() {
		MODULE=$other "$LOAD" 2>"$TMP/err" && return 1
		grep "was built for kernel .*, this is $(uname -r)" "$TMP/err" &&
			! insmod "$other" 2>/dev/null
	}
	check "a module of another kernel is refused in one sentence" wrong_kernel
else
	skip "a module of another kernel is refused in one sentence" "only one kernel was built"
fi

out_of_range() {
	local bad
	for bad in tx_frac=65 rx_frac=-1 seg_max=1 seg_max=257 ab_percent=101 \
		tx_frac=x ab_seed=4294967296 tx_frac=; do
		"$LOAD" $bad 2>"$TMP/err" && { echo "took $bad"; return 1; }
		grep "out of range" "$TMP/err" || return 1
	done
	"$LOAD" tx_fract=8 2>"$TMP/err" && return 1
	grep "no parameter tx_fract" "$TMP/err" || return 1
	! grep '^mssfrac ' /proc/modules
}
check "unknown and out-of-range parameters are refused" out_of_range

# stream PORT: a transfer that lasts until it is killed, as $!.  Not by transfer():
# kill would end the shell that runs the function, and leave the connection open.
stream() {
	tcpload bulk --from a --to b --address 10.9.0.2 --port "$1" \
		--warmup-ms 0 --measure-ms 600000 >/dev/null &
	defer "kill $!"
}
# acked PORT: bytes of the stream that its receiver has acknowledged
acked() {
	ip netns exec a ss -Htin "dport = $1" | sed -n 's/.*bytes_acked:\([0-9]*\).*/\1/p'
}
moves() { [ "$(acked "$1")" -gt "$2" ]; }
closed() { ! ip netns exec a ss -Htan "dport >= $1" | grep -qv TIME-WAIT; }

# Sockets older than the module: a transfer runs across insmod and rmmod.
sends() { [ "$(counter a treated_tx_segments)" -gt 100 ]; }
across() {
	stream 5300
	local pid=$!
	wait_for 60 moves 5300 0 &&
		"$LOAD" tx_frac=16 rx_frac=16 &&
		wait_for 60 sends &&
		rmmod mssfrac &&
		wait_for 60 moves 5300 "$(acked 5300)" &&
		kill "$pid" && wait_for 60 closed 5300
}
check "a transfer survives insmod and rmmod" across
unload

start_values() {
	"$LOAD" tx_frac=7 ab_percent=30 || return 1
	ip netns add fresh || return 1
	is "$(get_in a tx_frac) $(get_in fresh tx_frac) $(get_in fresh ab_percent)" \
		"7 7 30"
	local rc=$?
	ip netns del fresh
	rmmod mssfrac
	return $rc
}
check "parameters become the defaults of namespaces" start_values

check "the module loads" "$LOAD"
twice() {
	"$LOAD" 2>"$TMP/err" && return 1
	grep "loaded already" "$TMP/err" && ! insmod "$MODULE" 2>/dev/null
}
check "loading twice is refused in one sentence" twice

# --- Settings ---------------------------------------------------------------

defaults() {
	local key got=
	for key in $KEYS; do got="$got$(get_in a "$key") "; done
	is "$got" "0 0 0 0 32 100 0 0 "
}
check "by default the module only observes" defaults

ranges() {
	local pair key value before
	for pair in rx_frac=65 rx_frac=-1 rx_frac=x tx_frac=65 tx_frac=256 \
		tx_frac=4294967297 rx_mss_est=2 tx_steady=2 seg_max=1 \
		seg_max=257 seg_max=99999999999 ab_percent=101 \
		ab_percent=-5 ab_seed=4294967296 ab_seed=zero \
		ab_mark=4294967295; do
		key=${pair%=*} value=${pair#*=}
		before=$(get_in a "$key")
		set_in a "$key" "$value" 2>"$TMP/err" &&
			{ echo "took $pair"; return 1; }
		grep -q "Invalid argument" "$TMP/err" ||
			{ echo "$pair: $(cat "$TMP/err")"; return 1; }
		is "$(get_in a "$key")" "$before" || return 1
	done
}
check "out-of-range values return EINVAL and change nothing" ranges

limits() {
	local pair
	for pair in rx_frac=64 tx_frac=64 rx_mss_est=1 tx_steady=1 \
		rx_mss_est=0 tx_steady=0 seg_max=2 seg_max=256 ab_percent=0 \
		ab_percent=100 ab_seed=4294967295 ab_seed=0 \
		ab_mark=4294967294 ab_mark=0 rx_frac=0 tx_frac=0 \
		seg_max=32; do
		set_in a "${pair%=*}" "${pair#*=}" || return 1
		is "$(get_in a "${pair%=*}")" "${pair#*=}" || return 1
	done
}
check "both ends of every range are accepted" limits

namespaces() {
	set_in a tx_frac 8 && is "$(get_in b tx_frac)" 0 &&
		is "$(sysctl -n net.mssfrac.tx_frac)" 0 && set_in a tx_frac 0
}
check "a setting affects its own namespace only" namespaces

# A user namespace without the capability in the network namespace.
userns() {
	! ip netns exec a setpriv --reuid 65534 --clear-groups \
		unshare --user --map-root-user \
		sh -c 'echo 8 >/proc/sys/net/mssfrac/tx_frac' 2>"$TMP/err" &&
		grep "Permission denied" "$TMP/err" &&
		is "$(get_in a tx_frac)" 0
}
check "a write without the capability is refused" userns

# --- Observation ------------------------------------------------------------

format() {
	ip netns exec a awk 'NF != 2 || $2 !~ /^[0-9]+$/ { bad = 1 }
		END { exit bad || NR != 30 }' /proc/net/mssfrac
}
check "/proc/net/mssfrac has 30 lines of a key and a value" format

# 3 transfers are 3 connections, sender and receiver each once, and the
# segments are what the devices counted less handshakes and pure ACKs.
counts() {
	local i
	for i in 1 2 3; do
		transfer --port 540$i --warmup-ms 0 --measure-ms 100 >/dev/null ||
			return 1
	done
	is "$(counter a treated_connections) $(counter b treated_connections)" \
		"3 3" &&
		is "$(counter a stock_connections)" 0 &&
		[ "$(counter a treated_tx_segments)" -ge 30 ] &&
		[ "$(counter b treated_rx_segments)" -ge 30 ]
}
check "connections are counted exactly" counts

nothing_chosen() {
	is "$(counter a treated_tx_sized) $(counter a treated_tx_unstalled)" \
		"0 0" && is "$(counter b treated_rx_raised)" 0
}
check "observing changes nothing" nothing_chosen

tracepoints() {
	local t=/sys/kernel/tracing
	echo >$t/trace
	echo 1 >$t/events/mssfrac/enable || return 1
	transfer --port 5410 --warmup-ms 0 --measure-ms 200 >/dev/null
	echo 0 >$t/events/mssfrac/enable
	grep -m1 "align: .*dport=5410 arm=treated why=" $t/trace &&
		grep -m1 "window: .*sport=5410 .*offer=" $t/trace
}
check "the tracepoints window and align fire" tracepoints

# --- Policies ---------------------------------------------------------------

# The deterministic guest judges the choices of the policies (det_policy.sh),
# because they depend on the duration of a round trip.  Here: who is counted.
# fraction N PORT: through a receive buffer of 70,000 bytes at 10 ms
ip netns exec b sysctl -qw net.ipv4.tcp_moderate_rcvbuf=0 \
	net.ipv4.tcp_rmem="4096 70000 70000" net.ipv4.tcp_window_scaling=0
tc -n a qdisc add dev va root netem delay 10ms limit 1000
fraction() {
	set_in a tx_frac "$1" && set_in b rx_frac "$1" &&
		transfer --port "$2" --warmup-ms 2000 --measure-ms 500 "${@:3}"
}
six() {
	local connections rounds
	connections=$(counter a treated_connections)
	rounds=$(counter a treated_tx_rounds)
	fraction 64 5421 --address fd09::2 &&
		is "$(counter a treated_connections)" $((connections + 1)) &&
		[ "$(counter a treated_tx_rounds)" -gt $((rounds + 20)) ]
}
check "round trips over IPv6 are counted" six

# The control arm of the same namespace is counted as stock, never treated.
control() {
	local sized raised
	set_in a ab_percent 0 && set_in b ab_percent 0 || return 1
	sized=$(counter a treated_tx_sized) raised=$(counter b treated_rx_raised)
	fraction 64 5422 || return 1
	is "$(counter a stock_connections) $(counter b stock_connections)" "1 1" &&
		is "$(counter a stock_tx_sized) $(counter b stock_rx_raised)" \
			"0 0" &&
		is "$(counter a treated_tx_sized)" "$sized" &&
		is "$(counter b treated_rx_raised)" "$raised" &&
		[ "$(counter a stock_tx_bytes_available)" -gt 0 ]
}
check "the control arm is counted and not changed" control

# About half of 24 connections, and both ends agree on each.
split() {
	local i stock
	set_in a ab_percent 50 && set_in b ab_percent 50 || return 1
	set_in a ab_seed 4711 && set_in b ab_seed 4711 || return 1
	stock=$(counter a stock_connections)
	for i in $(seq 24); do
		transfer --port $((5500 + i)) --warmup-ms 0 --measure-ms 1 \
			>/dev/null || return 1
	done
	is "$(counter a stock_connections)" "$(counter b stock_connections)" ||
		return 1
	stock=$(($(counter a stock_connections) - stock))
	echo "$stock of 24 in the control arm"
	[ "$stock" -gt 3 ] && [ "$stock" -lt 21 ]
}
check "ab_percent splits connections, and both ends choose the same arm" split
set_in a ab_percent 100 && set_in b ab_percent 100

# --- The end ----------------------------------------------------------------

# Another owner diverts the functions: loading must be refused.  The owner is a
# copy of the module with another name.  (The debug kernel's name contains ours.)
busy() {
	LC_ALL=C sed 's/mssfrac/mssfrak/g; s/mssfrak-debug/mssfrac-debug/g' \
		"$MODULE" >"$TMP/mssfrak.ko"
	if insmod "$TMP/mssfrak.ko" 2>"$TMP/err"; then
		rmmod mssfrak
		echo "a second owner was let in"
		return 1
	fi
	grep "resource busy" "$TMP/err" || { cat "$TMP/err"; return 1; }
}
check "a second owner cannot divert the functions" busy

# rmmod under 8 treated transfers, however long they took to begin; they go on.
unload_busy() {
	local port pids=()
	for port in $(seq 5701 5708); do
		stream "$port"
		pids+=($!)
	done
	for port in $(seq 5701 5708); do
		wait_for 60 moves "$port" 0 || return 1
	done
	"$LOAD" --unload || return 1
	for port in $(seq 5701 5708); do
		wait_for 60 moves "$port" "$(acked "$port")" || return 1
	done
	kill "${pids[@]}" && wait_for 60 closed 5701
}
check "8 transfers continue while the module unloads" unload_busy

gone() {
	[ ! -e /proc/net/mssfrac ] && [ ! -e /proc/sys/net/mssfrac ] &&
		! grep -E '(__tcp_select_window|tcp_current_mss)' \
			/sys/kernel/tracing/enabled_functions
}
check "unloading leaves nothing behind" gone

again() {
	local i
	for i in $(seq 10); do
		insmod "$MODULE" tx_frac=8 || return 1
		rmmod mssfrac || return 1
	done
}
check "the module loads and unloads 10 times" again
