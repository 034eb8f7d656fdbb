#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# In the first of two guests: transfers into a small buffer of the second one,
# without the module and with its sender's policy, three of each in turn.  Prints
# goodput, and packets of both ends from the middle of one transfer.
#
# usage: measure.sh MODULE.ko RESULTS
set -euo pipefail
module=$1
results=$2
here=$(dirname "$0")
stall=$here/../../guest/kmod/stall.py
MTU=9000
RCVBUF=4096
SECONDS_EACH=6
PACKETS=400 # of each capture

ip link set eth0 mtu $MTU
peer ip link set eth0 mtu $MTU
insmod "$module"
echo "sender $(uname -r), receiver $(peer uname -r) without the module," \
	"MTU $MTU, SO_RCVBUF $RCVBUF after accept"

capture=(tcpdump -i eth0 -n -s 96 --immediate-mode -U -c "$PACKETS")
for round in 1 2 3; do
	for frac in 0 64; do
		sysctl -qw net.mssfrac.tx_frac=$frac
		if [ $round = 1 ]; then
			"${capture[@]}" -w "$results/stall-$frac-sender.pcap" \
				tcp port 7000 2>/dev/null &
			peer sh -c "${capture[*]} -w $results/stall-$frac-receiver.pcap \
				tcp port 7000 >/dev/null 2>&1 &"
			sleep 2 # until both listen
		fi
		echo "tx_frac $frac: $("$stall" transfer $RCVBUF $SECONDS_EACH)"
	done
done
wait
for frac in 0 64; do
	for end in sender receiver; do
		echo "tx_frac $frac, at the $end:"
		"$here/sequence.py" "$results/stall-$frac-$end.pcap" 40 10
	done
done
