#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pathprof's times against a reference timer's, in the deterministic guest: with
# pathprof's own cost subtracted they equal those of the kernel without it.  Delays
# of 1, 5 and 50 us are injected in three stages in turn.  Two recordings of the
# same load agree.  All of this also holds in sampling bursts.
#
# long: records a load of thousands of packets several times
. "$(dirname "$0")/../../lib.sh"
plan 21

stage_pathprof || exit
cp "$TOP"/build/tests/reference-timer{,.bpf.o} "$TOP/build/bin/tcpload" \
	"$TMP/run" && cd "$TMP" || exit
watch() { "$TMP/run/reference-timer" "$TMP/run/reference-timer.bpf.o" "$@"; }
load=("$TMP/run/tcpload" rounds --answers --count 2000)
record=("$PP" record --sample 1 --port 5001 -o)

"${load[@]}" >warm-up
"${load[@]}" >plain
# The turns of a loop in each stage; a turn is 15 instructions.
at=0
for turns in "0 0 0" "57 324 3324" "3324 57 324" "324 3324 57"; do
	# shellcheck disable=SC2086 # words
	{
		watch watch $turns 0 "${load[@]}" >watch$at
		watch delay $turns 0 "${record[@]}" $at.json -- "${load[@]}"
		"$PP" export $at.json >own$at.json
		"$PP" export --raw $at.json >raw$at.json
	} >>log 2>&1
	at=$((at + 1))
done
# More packets: ticks fall at random, and sampling bursts see a part of them.
longer=("${load[@]:0:3}" --count 8000)
for name in long again; do
	"${record[@]}" $name.json -- "${longer[@]}" >>log 2>&1
	"$PP" export $name.json >$name-own.json
done
"$PP" record --budget 50 --port 5001 -o bursts.json -- "${longer[@]}" \
	>>log 2>&1
"$PP" export bursts.json >bursts-own.json
sed 's/^/# /' log

python_cases "$TOP/tests/guest/mssab/costs.py" "$TMP"
