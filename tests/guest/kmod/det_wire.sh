#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What the policies put on the wire, packet by packet: captured at the sender,
# judged by wire.py.  Deterministic guest, so that treatment begins for sure.
. "$(dirname "$0")/../../lib.sh"

set_in() { ip netns exec "$1" sysctl -qw "net.$2=$3"; }

# A receive buffer whose window is 2.9 (6.1) or 3.8 segments: the kernels count
# their overhead differently.
case $(uname -r) in
6.1.*) buffer=70000 ;;
*) buffer=47104 ;;
esac

# name; port; address; receiver and sender, as wire.py has them; window
# scaling; rx_frac; tx_frac; ab_percent; option of tcpload bulk
cells="receiver;5301;10.9.0.2;4;stock;0;4;0;100;
receiver, IPv6;5302;fd09::2;4;stock;0;4;0;100;
sender;5303;10.9.0.2;scaled;64;1;0;64;100;
sender, IPv6;5304;fd09::2;scaled;64;1;0;64;100;
window below one MSS;5305;10.9.0.2;scaled;small;1;0;64;100;--rcvbuf 2500
window below one MSS, IPv6;5306;fd09::2;scaled;small;1;0;64;100;--rcvbuf 2500
control arm;5307;10.9.0.2;stock;stock;0;4;64;0;
control arm, IPv6;5308;fd09::2;stock;stock;0;4;64;0;"
plan 10

insmod "$MODULE" || exit
defer "rmmod mssfrac"
pair a b 9000
# Segments as they go out, not bundles of them; acknowledgements take the time.
for side in a b; do
	ip netns exec $side ethtool -K v$side tso off gro off
done >/dev/null
tc -n b qdisc add dev vb root netem delay 5ms limit 1000
set_in b ipv4.tcp_moderate_rcvbuf 0
set_in b ipv4.tcp_rmem "4096 $buffer $buffer"

tracing=/sys/kernel/tracing
echo tai >$tracing/trace_clock # of the capture, as long as TAI is UTC here
echo 8192 >$tracing/buffer_size_kb
echo 1 >$tracing/events/mssfrac/enable || exit
defer "echo 0 >$tracing/events/mssfrac/enable"
ip netns exec a tcpdump -Z root -i va -s 120 -w "$TMP/capture" tcp \
	2>"$TMP/tcpdump" &
capture=$!
wait_for 30 grep -q "listening on" "$TMP/tcpdump" || exit

while IFS=';' read -r _ port address _ _ scaling rx tx percent load; do
	set_in b ipv4.tcp_window_scaling "$scaling"
	set_in a mssfrac.tx_frac "$tx"
	set_in b mssfrac.rx_frac "$rx"
	set_in a mssfrac.ab_percent "$percent"
	set_in b mssfrac.ab_percent "$percent"
	# shellcheck disable=SC2086 # an option and its value
	tcpload bulk --from a --to b --address "$address" --port "$port" \
		--warmup-ms 900 --measure-ms 600 $load >/dev/null </dev/null
done <<<"$cells"
kill -INT $capture
wait $capture
cat $tracing/trace >"$TMP/trace"

while IFS=';' read -r name port _ receiver sender _; do
	check "$name" /usr/bin/python3 "$TOP/tests/guest/kmod/wire.py" \
		"$TMP/capture" "$TMP/trace" "$port" "$receiver" "$sender"
	head -n 1 "$TMP/out" | sed 's/^/# /'
done <<<"$cells"
[ -z "${KEEP_WIRE:-}" ] || cp "$TMP"/{capture,trace} "$KEEP_WIRE"

set_in b ipv4.tcp_window_scaling 1
set_in b ipv4.tcp_rmem "4096 131072 6291456"
set_in a mssfrac.tx_frac 64
set_in b mssfrac.rx_frac 64
python_cases "$TOP/tests/guest/kmod/writes.py"
