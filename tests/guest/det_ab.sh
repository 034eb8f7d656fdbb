#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Experiments with a verdict, in the deterministic guest: fractional windows
# improve, by more than 20 %; the same twice is equivalent; a receiver alone,
# where that harms, regresses; and the same seed gives the same again, bit by
# bit, through a kill.
. "$(dirname "$0")/../lib.sh"

plan 6
insmod "$MODULE" || exit
defer "rmmod mssfrac"

# short NAME SED: a shipped experiment at 8 pairs, without its own A/A.
short() {
	sed -E "s/^pairs = .*/pairs = 8\naa_pairs = 0/; $2" \
		"$TOP/experiments/$1.toml" >"$TMP/$1.toml"
	mssab run "$TMP/$1.toml" -o "$TMP/${3:-$1}" --no-report "${@:4}" \
		>"$TMP/text" 2>&1
	local status=$?
	sed 's/^/# /' "$TMP/text"
	return $status
}

# field NAME EXPRESSION: of its result
field() {
	/usr/bin/python3 -c 'import json, sys
result = json.load(open(sys.argv[1]))
goodput = result["metrics"]["goodput"]
print(eval(sys.argv[2]))' "$TMP/$1/result.json" "$2"
}
