#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The module's tracepoints from perf, bpftrace and trace-cmd, all at once: each
# counts the same events of one transfer as the kernel's own trace buffer.
# long: bpftrace and perf start slowly in a guest
. "$(dirname "$0")/../../lib.sh"
plan 6

insmod "$MODULE" || exit
unload() { ! grep -q '^mssfrac ' /proc/modules || rmmod mssfrac; }
defer unload
pair a b 9000

tracing=/sys/kernel/tracing/instances/wanted
mkdir $tracing
defer "rmdir $tracing"
echo 4096 >$tracing/buffer_size_kb

# One after the other, and each says or shows when it is attached: bpftrace
# compiles, which takes an emulated machine minutes.
pids=()
attach_bpftrace() {
	bpftrace -B line -e '
BEGIN { printf("attached\n"); }
tracepoint:mssfrac:align /args->dport == 5410/ { @align = count(); }
tracepoint:mssfrac:window /args->sport == 5410 && args->offer > 0/ {
	@window = count();
}' >"$TMP/bpftrace" 2>&1 &
	pids+=($!)
	wait_for 400 grep -q attached "$TMP/bpftrace" || {
		cat "$TMP/bpftrace"
		return 1
	}
}
attach_perf() {
	perf record -q -a -B -N --synth=no -m 1024 -e mssfrac:align \
		-e mssfrac:window -o "$TMP/perf.data" -- sleep 1000 \
		>"$TMP/perf" 2>&1 &
	pids+=($!)
	# It starts its command once the events are enabled.  (What it would
	# learn of every process and module first takes it minutes here.)
	wait_for 400 pgrep -P "${pids[1]}" sleep || {
		cat "$TMP/perf"
		return 1
	}
}
attach_trace_cmd() {
	trace-cmd record -q -b 4096 -e mssfrac -o "$TMP/trace.dat" \
		>"$TMP/trace-cmd" 2>&1 &
	pids+=($!)
	wait_for 200 grep -q 1 /sys/kernel/tracing/events/mssfrac/enable || {
		cat "$TMP/trace-cmd"
		return 1
	}
}
attach() { attach_bpftrace && attach_perf && attach_trace_cmd; }
check "bpftrace, perf and trace-cmd attach" attach
echo "# after $SECONDS s"
echo 1 >$tracing/events/mssfrac/enable
tcpload bulk --from a --to b --address 10.9.0.2 --port 5410 --warmup-ms 0 \
	--measure-ms 300 >/dev/null
echo 0 >$tracing/events/mssfrac/enable
in_use() { ! rmmod mssfrac 2>/dev/null && grep -q '^mssfrac ' /proc/modules; }
check "the module stays while they are attached" in_use
kill -INT "${pids[@]}"
wait "${pids[@]}"

# lines PATTERN... of stdin: how many there are of each
lines() {
	local text pattern counts=()
	text=$(cat)
	for pattern; do counts+=("$(grep -c -E "$pattern" <<<"$text")"); done
	echo "${counts[*]}"
}
# What is printed of numbers, too: perf and trace-cmd do so from the format.
align="align: .*dport=5410 arm=treated why=[a-z-]+ window=[0-9]+ "
window="window: .*sport=5410 .*arm=treated "
wanted=$(lines "$align" "$window" <$tracing/trace)
echo "# align and window: $wanted"
seen() {
	if [ "${wanted% *}" -gt 10 ] && [ "${wanted#* }" -gt 10 ] &&
		is "$1" "$wanted"; then
		return
	fi
	cat "$TMP/err" "$TMP/trace-cmd"
	false
}
check "perf" seen "$(perf script -i "$TMP/perf.data" 2>"$TMP/err" |
	lines "mssfrac:$align" "mssfrac:$window")"
check "bpftrace" seen "$(sed -n 's/^@align: //p; s/^@window: //p' \
	"$TMP/bpftrace" | paste -sd ' ')"
check "trace-cmd" seen "$(trace-cmd report -i "$TMP/trace.dat" 2>"$TMP/err" |
	lines "$align" "$window")"
check "the module goes when they have gone" rmmod mssfrac
