#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Experiments with a verdict, in the deterministic guest, at 8 pairs: fractional
# windows improve a window below one segment, ten times at least; without them it
# regresses; the same twice is equivalent; and the same seed gives the same design
# and verdict again, through a kill.  (Of larger windows stock fills now more, now
# less: Documentation/results/verdicts.rst.  The same result to the bit:
# tests/unit/mssab/test_campaign.py.)
#
# long: several experiments of eight pairs
. "$(dirname "$0")/../../lib.sh"

plan 6
insmod "$MODULE" || exit
defer "rmmod mssfrac"

fractional="{ rx_frac = 64, tx_frac = 64 }"

# short NAME EXPECT ARM ARM: window-33k in short, of a window below one
# segment, A/A left out.
short() {
	{
		sed "s/^pairs = .*/pairs = 8\naa_pairs = 0/
			s/^window_segments = .*/window_segments = 0.9/
			s/^expect = .*/expect = \"$2\"/
			/^\[arms\]/,\$d" "$TOP/experiments/window-33k.toml"
		printf '[arms]\nfirst = %s\nsecond = %s\n' "$3" "$4"
	} >"$TMP/$1.toml"
	mssab run "$TMP/$1.toml" -o "$TMP/$1" --no-report >"$TMP/text" 2>&1
	sed 's/^/# /' "$TMP/text"
}

# field NAME EXPRESSION: of its result
field() {
	/usr/bin/python3 -c 'import json, sys
result = json.load(open(sys.argv[1]))
goodput = result["metrics"]["goodput"]
print(eval(sys.argv[2]))' "$TMP/$1/result.json" "$2"
}
verdict() { is "$(field "$1" 'result["verdict"]')" "$2"; }

short better improved "{}" "$fractional"
check "fractional windows: improved" verdict better improved
tenfold() { is "$(field better 'goodput["low"] > 900')" True; }
check "ten times at least" tenfold
short worse regressed "$fractional" "{}"
check "whole segments instead: regressed" verdict worse regressed
short same equivalent "$fractional" "$fractional"
check "the same twice: equivalent" verdict same equivalent

# design FILE: what the samples of one are samples of.
design() {
	/usr/bin/python3 -c 'import json, sys
for line in open(sys.argv[1]):
    sample = json.loads(line)
    print([sample[key] for key in ("phase", "pair", "place", "arm", "seed")])' "$1"
}

# Killed after three blocks, in the middle of writing the fourth.
again() {
	local samples=$TMP/same/samples.jsonl
	cp "$samples" "$TMP/samples"
	head -n 3 "$TMP/samples" >"$samples"
	head -c 99 "$TMP/samples" >>"$samples"
	mssab run "$TMP/same.toml" -o "$TMP/same" --no-report --resume \
		>"$TMP/text" || return
	verdict same equivalent &&
		is "$(field same 'result["void"]["interrupted_pairs"]')" 1 &&
		head -n 2 "$TMP/samples" | cmp - <(head -n 2 "$samples") &&
		cmp <(design "$TMP/samples") <(design "$samples" | sed 3d)
}
check "the same seed: the same design and verdict, through a kill" again
left_over() { is "$(ip netns list)" ""; }
check "no namespace is left" left_over
