#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# pathprof's times against a stopwatch's, in the deterministic guest: with its
# own cost taken off they are those of the kernel without it.  Delays of some 1,
# 5 and 50 us are planted in three stages in turn.
. "$(dirname "$0")/../lib.sh"
plan 15

stage_pathprof || exit
cp "$TOP"/build/tests/stopwatch{,.bpf.o} "$TOP/build/bin/overhead-load" \
	"$TMP/run" && cd "$TMP" || exit
WATCH="$TMP/run/stopwatch $TMP/run/stopwatch.bpf.o"
LOAD="$TMP/run/overhead-load pingpong 127.0.0.1 lo 2000 1"

$LOAD >warm-up
$LOAD >plain
# The turns of a loop in each stage; a turn is some ten instructions.
at=0
for turns in "0 0 0" "100 500 5000" "5000 100 500" "500 5000 100"; do
	# shellcheck disable=SC2086 # words
	{
		$WATCH watch $turns $LOAD >watch$at
		$WATCH plant $turns "$PP" record --sample 1 --port 5001 \
			-o $at.json -- $LOAD
		"$PP" export $at.json >own$at.json
		"$PP" export --raw $at.json >raw$at.json
	} >>log 2>&1
	at=$((at + 1))
done
"$PP" record --sample 1 --port 5001 -o again.json -- $LOAD >>log 2>&1
"$PP" export again.json >again-own.json
sed 's/^/# /' log

python_cases "$TOP/tests/guest/costs.py" "$TMP"
