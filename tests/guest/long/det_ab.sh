#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Experiments with a verdict, in the deterministic guest, at 8 pairs: fractional
# windows improve, by more than 15 %; the same twice is equivalent; a receiver
# alone, where that harms, regresses; and the same seed gives the same design and
# verdict again, through a kill.  (Figures are those of a transfer: where one falls
# into another order they differ.  To the bit: tests/unit/test_campaign.py.)
. "$(dirname "$0")/../../lib.sh"

plan 6
insmod "$MODULE" || exit
defer "rmmod mssfrac"

# short NAME: a shipped experiment in short, A/A left out.
short() {
	sed "s/^pairs = .*/pairs = 8\naa_pairs = 0/" \
		"$TOP/experiments/$1.toml" >"$TMP/$1.toml"
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

short window-33k
check "fractional windows: improved" verdict window-33k improved
above_15() { is "$(field window-33k 'goodput["effect"] > 15')" True; }
check "by more than 15 %" above_15
short window-aa
check "the same twice: equivalent" verdict window-aa equivalent
# A buffer that offers one to two segments; other kernels offer another part.
case $(uname -r) in
6.1.*)
	short window-receiver
	check "a receiver alone: regressed" verdict window-receiver regressed
	;;
*) skip "a receiver alone: regressed" "a buffer that shows it is known for 6.1" ;;
esac

# design FILE: what the samples of one are samples of.
design() {
	/usr/bin/python3 -c 'import json, sys
for line in open(sys.argv[1]):
    sample = json.loads(line)
    print([sample[key] for key in ("phase", "pair", "place", "arm", "seed")])' "$1"
}

# Killed after three blocks, in the middle of writing the fourth.
again() {
	local samples=$TMP/window-33k/samples.jsonl
	field window-33k 'goodput["effect"]' >"$TMP/first"
	cp "$samples" "$TMP/samples"
	head -n 3 "$TMP/samples" >"$samples"
	head -c 99 "$TMP/samples" >>"$samples"
	mssab run "$TMP/window-33k.toml" -o "$TMP/window-33k" --no-report \
		--resume >"$TMP/text" || return
	verdict window-33k improved &&
		is "$(field window-33k 'result["void"]["interrupted_pairs"]')" 1 &&
		is "$(field window-33k "abs(goodput['effect'] - $(cat "$TMP/first")) < 5")" \
			True &&
		head -n 2 "$TMP/samples" | cmp - <(head -n 2 "$samples") &&
		cmp <(design "$TMP/samples") <(design "$samples" | sed 3d)
}
check "the same seed: the same design and verdict, through a kill" again
left_over() { is "$(ip netns list)" ""; }
check "no namespace is left" left_over
