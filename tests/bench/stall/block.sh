#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# One block of mssab on two cabled guests: a transfer into a small buffer of the
# second one.  The environment names the arm: TX_FRAC at the sender, and
# PEER_RX_FRAC at the receiver where the module is loaded there.
set -euo pipefail
peer ip link set eth0 mtu 9000
ip link set eth0 mtu 9000
sysctl -qw "net.mssfrac.tx_frac=${TX_FRAC-0}"
[ -z "${PEER_RX_FRAC-}" ] ||
	peer sysctl -qw "net.mssfrac.rx_frac=$PEER_RX_FRAC"
exec "$(dirname "$0")/../../guest/kmod/stall.py" transfer "${RCVBUF-4096}" 5
