#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# rx_mss_est: the receiver's estimate of the sender's segment size, and what a
# user without privileges can do with it.  Most cases are in estimate.py.
. "$(dirname "$0")/../lib.sh"
plan 5

insmod "$MODULE" || exit
defer "rmmod mssfrac"
[ -e /dev/net/tun ] || modprobe tun || exit # or built in
ip netns add a
defer "ip netns del a"
echo 1 >/sys/kernel/tracing/events/mssfrac/window/enable || exit
defer "echo 0 >/sys/kernel/tracing/events/mssfrac/window/enable"

python_cases "$TOP/tests/guest/estimate.py"

# Any user can set rx_mss_est in a user namespace of their own.  That must not
# add a call per segment to the connections of other namespaces.
# calls: functions of the module that a transfer of namespace b calls, and
# how often, without those that end or begin a connection
calls() {
	local tracing=/sys/kernel/tracing
	echo ':mod:mssfrac' >$tracing/set_ftrace_filter &&
		echo >$tracing/trace &&
		echo function >$tracing/current_tracer &&
		tcpload bulk --from b --to b --address 127.0.0.1 --warmup-ms 0 \
			--measure-ms 200 >/dev/null
	echo nop >$tracing/current_tracer
	sed -n 's/^.*: \(probe_[a-z_]*\) .*/\1/p' $tracing/trace |
		sort | uniq -c | tee "$TMP/calls"
}
unprivileged() {
	setpriv --reuid 65534 --clear-groups unshare --user --map-root-user --net \
		sysctl -w net.mssfrac.rx_mss_est=1 &&
		calls && [ -s "$TMP/calls" ] &&
		! awk '$1 > 50' "$TMP/calls" | grep .
}
ip netns add b
defer "ip netns del b"
ip -n b link set lo up
check "a user's rx_mss_est adds no call to segments of other namespaces" \
	unprivileged
