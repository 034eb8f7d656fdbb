#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The packetdrill scripts of tests/packetdrill in four states of the module:
# not loaded (stock), loaded (idle), active in the control arm, active in the
# treatment arm.  The line "Passes in:" of a script names the states in which it
# passes; in the others it must fail, which shows that it can.  PACKETDRILL names
# the program if it is not on PATH.
. "$(dirname "$0")/../../lib.sh"

PACKETDRILL=${PACKETDRILL:-$(command -v packetdrill)}
[ -x "$PACKETDRILL" ] ||
	skip_all "packetdrill is not packaged: build github.com/google/packetdrill and set PACKETDRILL"
[ -e /dev/net/tun ] || modprobe tun || skip_all "this kernel has no TUN device"

series=$(uname -r | grep -o '^[0-9]*\.[0-9]*')
declare -A parameters=(
	[idle]=""
	[control]="ab_percent=0 tx_frac=64 rx_frac=64"
	[treatment]="tx_frac=64 rx_frac=64"
)

# In memory: while the guest waits for the host's file system, its clock leaps.
mapfile -t libraries < <(ldd "$PACKETDRILL" | awk '$2 == "=>" { print $3 }')
mkdir "$TMP/lib" && cp "$PACKETDRILL" "$TMP/packetdrill" &&
	cp "$TOP"/tests/packetdrill/*.pkt "$TMP" || exit
# A program that was linked statically has none.
[ ${#libraries[@]} -eq 0 ] || cp "${libraries[@]}" "$TMP/lib" || exit
ethtool --version >/dev/null

# passes_in STATE FILE: is it meant to pass?
passes_in() { sed -n 's|^// Passes in:||p' "$2" | grep -q -w "$1"; }
# meant_for FILE: its line "Kernels:", if any, names this one
meant_for() {
	local kernels
	kernels=$(sed -n 's|^// Kernels:||p' "$1")
	[ -z "$kernels" ] || grep -q -w -F "$series" <<<"$kernels"
}

# play FILE: in a network namespace of its own
play() {
	LD_LIBRARY_PATH=$TMP/lib unshare -n sh -c 'ip link set lo up &&
		exec "$0" --ip_version=ipv4 --send_omit_free --verbose "$1"' \
		"$TMP/packetdrill" "$1" >"$TMP/out" 2>&1 </dev/null
}

scripts=()
for script in "$TMP"/*.pkt; do
	meant_for "$script" && scripts+=("$script")
done
plan $((4 * ${#scripts[@]}))
for state in stock idle control treatment; do
	if [ $state != stock ]; then
		# shellcheck disable=SC2086 # parameters are words
		insmod "$MODULE" ${parameters[$state]} || exit
	fi
	for script in "${scripts[@]}"; do
		name="$(basename "$script" -v4.pkt), $state"
		if play "$script"; then
			passed=1
		else
			passed=
			why=$(grep "\.pkt:[0-9]*:" "$TMP/out" | head -n 1)
		fi
		if passes_in $state "$script"; then
			if [ "$passed" ]; then
				ok "$name"
			else
				tail -n 40 "$TMP/out" | sed 's/^/# /'
				not_ok "$name"
			fi
		elif [ "$passed" ]; then
			not_ok "$name: passes, and must fail"
		else
			xfail "$name" "${why##*/}"
		fi
	done
	[ $state = stock ] || rmmod mssfrac || exit
done
