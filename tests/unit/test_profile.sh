#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The profile reader against a kept profile and damaged copies of it: every
# one is either read or refused with one sentence, never a crash.

TOP=$(cd "$(dirname "$0")/../.." && pwd)
PP=${PATHPROF:-$TOP/build/bin/pathprof}
KEPT=$TOP/tests/unit/test_profile/sample.json
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
cd "$TMP" || exit
n=0
bad=0

check() {
	local name=$1
	shift
	n=$((n + 1))
	if "$@" >out 2>&1; then
		echo "ok $n $name"
	else
		sed 's/^/# /' out
		echo "not ok $n $name"
		bad=$((bad + 1))
	fi
}

# refuses FILE PATTERN: status 1, one line that matches, nothing on stdout.
refuses() {
	local status
	"$PP" report "$1" >stdout 2>stderr
	status=$?
	cat stderr
	[ $status -eq 1 ] && [ ! -s stdout ] && [ "$(wc -l <stderr)" -eq 1 ] &&
		grep -qE -- "$2" stderr
}

# damaged SED-SCRIPT PATTERN: the kept file, edited, is refused.
damaged() {
	sed "$1" "$KEPT" >damaged.json
	cmp -s damaged.json "$KEPT" && echo "the edit changed nothing" &&
		return 1
	refuses damaged.json "$2"
}

round_trip() {
	"$PP" report --json "$KEPT" >a.json && "$PP" report --json a.json \
		>b.json && cmp a.json b.json && cmp a.json "$KEPT"
}

text() {
	"$PP" report --detail "$KEPT" >text && "$PP" report "$KEPT" >>text &&
		grep -q '^Account: 173 sampled = 171 done' text &&
		grep -q 'rx fast' text && ! grep -nE '.{81}' text
}

# Cut short at many places: never a crash, always refused.
truncated() {
	local size i status
	size=$(stat -c %s "$KEPT")
	for ((i = 0; i < size - 2; i += 997)); do
		head -c $i "$KEPT" >cut.json
		"$PP" report cut.json >/dev/null 2>stderr
		status=$?
		[ $status -eq 1 ] || {
			echo "cut at $i: status $status"
			return 1
		}
	done
}

# One byte changed at many places: read or refused, never a crash.
flipped() {
	local size i status
	size=$(stat -c %s "$KEPT")
	for ((i = 1; i < size; i += 487)); do
		{
			head -c $((i - 1)) "$KEPT"
			printf '9'
			tail -c +$((i + 1)) "$KEPT"
		} >flip.json
		"$PP" report --detail flip.json >/dev/null 2>&1
		status=$?
		[ $status -le 1 ] || {
			echo "byte $i: status $status"
			return 1
		}
	done
}

[ -x "$PP" ] || {
	echo "1..0 # SKIP $PP is not built"
	exit 4
}
echo "KTAP version 1"
echo "1..17"
check "JSON survives reading and writing" round_trip
check "text shows the account and fits 80 columns" text
check "no such file" refuses none.json 'No such file'
check "a folder" refuses "$TMP" 'directory'
: >empty.json
check "an empty file" refuses empty.json 'not JSON, or cut short|empty'
echo '{"format": "perf"}' >foreign.json
check "another program's file" refuses foreign.json 'not a pathprof profile'
echo '[1, 2]' >list.json
check "JSON that is no object" refuses list.json 'not a pathprof profile'
check "a future version" damaged 's/^ "version": 1/ "version": 99/' \
	'newer pathprof \(format version 99'
check "no version" damaged 's/^ "version": 1/ "versiom": 1/' 'no format version'
check "a negative count" damaged '0,/"packets": /s//&-/' '"packets" is out'
# shellcheck disable=SC2016 # $ is sed's
check "an unknown stage" damaged '/"stages": \[$/,$s/^    3,/    63,/' \
	'"stages" names no stage'
check "an unknown flag" damaged 's/"data"/"date"/' '"flags" holds'
check "a missing account" damaged 's/"account"/"count"/' '"account" is missing'
check "sample 0" damaged 's/"sample": 1/"sample": 0/' '"sample" is 0'
check "an endless name" damaged \
	"s/\"release\": \"/&$(printf 'x%.0s' {1..200})/" '"release" is not'
check "cut short anywhere" truncated
check "a byte changed anywhere" flipped
[ $bad -eq 0 ]
