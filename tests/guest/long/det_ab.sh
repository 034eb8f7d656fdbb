#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Experiments with a verdict, in the deterministic guest, at 8 pairs: fractional
# windows improve, by more than 20 %; the same twice is equivalent; a receiver
# alone, where that harms, regresses; and the same seed gives the same result
# again, bit by bit, through a kill.
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

short window-26k
check "fractional windows: improved" verdict window-26k improved
above_20() { is "$(field window-26k 'goodput["low"] > 20')" True; }
check "the interval excludes 20 %" above_20
short window-aa
check "the same twice: equivalent" verdict window-aa equivalent
# A buffer that offers just below two segments; other kernels offer another part.
case $(uname -r) in
6.1.*)
	short window-receiver
	check "a receiver alone: regressed" verdict window-receiver regressed
	;;
*) skip "a receiver alone: regressed" "a buffer that shows it is known for 6.1" ;;
esac

# Killed after three blocks, in the middle of writing the fourth.
again() {
	local samples=$TMP/window-26k/samples.jsonl
	cp "$TMP/window-26k/result.json" "$TMP/first"
	cp "$samples" "$TMP/samples"
	head -n 3 "$TMP/samples" >"$samples"
	head -c 99 "$TMP/samples" >>"$samples"
	mssab run "$TMP/window-26k.toml" -o "$TMP/window-26k" --no-report \
		--resume >"$TMP/text" || return
	is "$(field window-26k 'result["void"].pop("interrupted_pairs")')" 1 &&
		sed 's/"interrupted_pairs": 1/"interrupted_pairs": 0/' \
			"$TMP/window-26k/result.json" | cmp - "$TMP/first"
}
check "the same seed: the same result, through a kill" again
left_over() { is "$(ip netns list)" ""; }
check "no namespace is left" left_over
