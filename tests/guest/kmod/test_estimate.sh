#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# rx_mss_est: the receiver's estimate of the sender's segment size.  The cases
# are in estimate.py.
. "$(dirname "$0")/../../lib.sh"
plan 4

insmod "$MODULE" || exit
defer "rmmod mssfrac"
[ -e /dev/net/tun ] || modprobe tun || exit # or built in
ip netns add a
defer "ip netns del a"
echo 1 >/sys/kernel/tracing/events/mssfrac/window/enable || exit
defer "echo 0 >/sys/kernel/tracing/events/mssfrac/window/enable"

python_cases "$TOP/tests/guest/lib/estimate.py"
