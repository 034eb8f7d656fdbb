#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Arms and observation: which arm a connection is in can be told from its
# endpoints or set by a mark, and what connections count is what the kernel
# counts for them, and adds up.
. "$(dirname "$0")/../../lib.sh"
plan 19

LOAD=$TOP/scripts/load
strip --strip-debug -o "$TMP/mssfrac.ko" "$MODULE" || exit
export MODULE=$TMP/mssfrac.ko TMP
unload() { ! grep -q '^mssfrac ' /proc/modules || rmmod mssfrac; }
defer unload
get_in() { ip netns exec "$1" sysctl -n "net.mssfrac.$2"; }
set_in() { ip netns exec "$1" sysctl -qw "net.mssfrac.$2=$3"; }
pair a b 9000

# --- Settings ---------------------------------------------------------------

parameters() {
	local bad key got=
	for bad in ab_mark=4294967295 ab_mark=-1 ab_mark=x ab_mark= \
		rx_mss_est=2 rx_mss_est=-1 tx_steady=2 tx_steady=on; do
		"$LOAD" $bad 2>"$TMP/err" && { echo "took $bad"; return 1; }
		grep "out of range" "$TMP/err" || return 1
	done
	"$LOAD" ab_mark=0x4d00 rx_mss_est=1 tx_steady=1 || return 1
	ip netns add fresh
	for key in ab_mark rx_mss_est tx_steady; do
		got="$got$(get_in fresh $key) $(cat /sys/module/mssfrac/parameters/$key) "
	done
	ip netns del fresh
	rmmod mssfrac
	is "$got" "19712 19712 1 1 1 1 "
}
check "module parameters are checked and become the defaults of namespaces" parameters

# The tracepoint's file is there once the module is.
"$LOAD" && echo 1 >/sys/kernel/tracing/events/mssfrac/conn_end/enable

ranges() {
	local bad
	set_in a ab_mark 7 || return 1
	for bad in 4294967295 -1 x 99999999999999999999; do
		set_in a ab_mark $bad 2>"$TMP/err" &&
			{ echo "took $bad"; return 1; }
		grep "Invalid argument" "$TMP/err" || return 1
		is "$(get_in a ab_mark)" 7 || return 1
	done
	set_in a ab_mark 4294967294 && set_in a ab_mark 0x10 &&
		is "$(get_in a ab_mark)" 16 && set_in a ab_mark 0
}
check "ab_mark accepts its range, in decimal and hexadecimal" ranges

alone() {
	local key
	for key in ab_mark rx_mss_est tx_steady; do
		set_in a $key 1 && is "$(get_in b $key)" 0 &&
			is "$(sysctl -n net.mssfrac.$key)" 0 &&
			set_in a $key 0 || return 1
	done
}
check "a setting affects its own namespace only" alone

# A user namespace without the capability in the network namespace.
refused() {
	local key
	for key in ab_mark rx_mss_est tx_steady; do
		ip netns exec a setpriv --reuid 65534 --clear-groups \
			unshare --user --map-root-user \
			sh -c "echo 1 >/proc/sys/net/mssfrac/$key" \
			2>"$TMP/err" && { echo "wrote $key"; return 1; }
		grep "Permission denied" "$TMP/err" &&
			is "$(get_in a $key)" 0 || return 1
	done
}
check "writes without the capability are refused" refused

# --- Counts -----------------------------------------------------------------

case_of() { /usr/bin/python3 "$TOP/tests/guest/kmod/arms.py" "$1"; }
check "counts of a closed connection equal those of tcp_info" case_of closed
check "counts of a reset connection equal those of tcp_info" case_of reset
check "counts of a disconnected and reused socket equal those of tcp_info" case_of disconnected
check "counts of an orphaned socket equal those of tcp_info" case_of orphaned
check "the totals include live connections" case_of live
check "and connections whose policies are switched on and off" case_of switched
check "the connections' counts add up to the totals" case_of sums

# --- Arms -------------------------------------------------------------------

check "endpoints, seed and percent determine the arm" case_of hashed
told() {
	is "$(mssab arm --seed 7 --percent 10 10.9.0.1:40000 10.9.0.2:5201)" \
		"stock 10" &&
		is "$(mssab arm --seed 7 --percent 11 10.9.0.2:5201 \
			10.9.0.1:40000)" "treated 10"
}
check "mssab arm prints the arm" told
check "a mark decides the arm: of a socket, of a listener, of a SYN" case_of marked
check "other marks have no effect" case_of other_marks
check "a mark that is set later has no effect" case_of fixed
check "a BPF program can set the mark" case_of by_bpf
check "the counts of both arms add up" case_of sums
check "sockets older than the module are counted once it is loaded" case_of old
