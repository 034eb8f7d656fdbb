#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# mssab and msstune set the rings of a card with two queues, packets arrive there by
# the interrupts of the rings, and both put the table back.  Needs a guest with such
# cards: scripts/guest --nics virtio-net-pci --queues 2.
# guest: --nics virtio-net-pci --queues 2
# long: needs a guest of its own with cards of two queues
. "$(dirname "$0")/../../lib.sh"

plan 7
modprobe virtio_net || exit

# The rings in the table of the receiver's card.
table() {
	ethtool -x eth1 | sed -n 's/^  *[0-9]*: *//p' | xargs -n 1 | sort -u | xargs
}
has() { is "$(table)" "$1"; }

tune() { msstune --state "$TMP/state" "$@"; }
apply() { tune apply --yes --timeout 600 "$@"; }

undone() {
	has "0 1" && apply rss:eth1=1 && has 1 &&
		tune rollback && has "0 1"
}
check "msstune sets the table of RSS and undoes it" undone

channels() {
	apply --allow-disruptive channels:eth1:combined=1 &&
		ethtool -l eth1 | tail -n 2 | grep -q "Combined:.*1" &&
		tune rollback &&
		ethtool -l eth1 | tail -n 2 | grep -q "Combined:.*2" && has "0 1"
}
check "msstune sets channels and undoes them" channels

refused() {
	! apply rss:eth1=2 2>"$TMP/err" && cat "$TMP/err" &&
		grep -q "ethtool -x eth1 names its rings" "$TMP/err" && has "0 1"
}
check "a ring that the card has not is refused" refused

# No emulated card takes steering rules.
no_rules() {
	! apply "ntuple:eth1:tcp4 dst-port 5201=1" 2>"$TMP/err" && cat "$TMP/err" &&
		grep -q "eth1 takes no steering rules (n-tuple filters)" "$TMP/err"
}
check "msstune refuses a steering rule in one sentence" no_rules

cat >"$TMP/arms.toml" <<-END
	[design]
	pairs = 8
	aa_pairs = 0
	accept_noise = true
	[cell]
	load = "tcpload"
	link = "interfaces"
	sender_interface = "eth0"
	receiver_interface = "eth1"
	mtu = 1500
	rcvbuf_max = 131072
	streams = 8
	warmup_ms = 100
	measure_ms = 200
	[arms]
	one = { rss = { start = 1, equal = 1 } }
	same = { rss = { start = 1, equal = 1 } }
END
# received RING: its interrupts; newer kernels have no count of packets per ring.
received() {
	local card
	card=$(basename "$(readlink -f /sys/class/net/eth1/device)")
	awk -v name="$card-input.$1" '$NF == name { for (i = 2; i < NF; i++)
		if ($i ~ /^[0-9]+$/) sum += $i } END { print sum + 0 }' /proc/interrupts
}
steered() {
	local zero one status=0
	zero=$(received 0) one=$(received 1)
	mssab run -o "$TMP/results" --no-report "$TMP/arms.toml" || status=$?
	zero=$(($(received 0) - zero)) one=$(($(received 1) - one))
	# Ring 0 gets what arrives while the card comes up, before the table is set.
	# 125: no verdict, as both arms are one.
	echo "ring 0: $zero interrupts, ring 1: $one; status $status"
	[[ $status == 0 || $status == 125 ]] && [ "$one" -gt 500 ] &&
		[ $((10 * zero)) -lt "$one" ]
}
check "arms of mssab steer packets to their ring" steered
check "mssab puts the table back" has "0 1"

arm_without_rules() {
	sed 's/^one = .*/one = { ntuple = { "tcp4 dst-port 5201" = 1 } }/' \
		"$TMP/arms.toml" >"$TMP/rules.toml"
	! mssab run -o "$TMP/rules" --no-report "$TMP/rules.toml" 2>"$TMP/err" &&
		cat "$TMP/err" && grep -q "takes no steering rules" "$TMP/err" && has "0 1"
}
check "mssab refuses an arm with one" arm_without_rules
