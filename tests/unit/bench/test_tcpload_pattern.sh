#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# tcpload pattern over this machine's loopback: accepts correct traffic, and
# detects each fault that it injects.
# shellcheck disable=SC2317 # cases are called by name
set -u
load=$(cd "$(dirname "$0")/../../.." && pwd)/build/bin/tcpload
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0
bad=0

# verdict NAME COMMAND...: one case
verdict() {
	local name=$1
	shift
	n=$((n + 1))
	if "$@" >"$tmp/out" 2>&1; then
		echo "ok $n $name"
	else
		sed 's/^/# /' "$tmp/out"
		echo "not ok $n $name"
		bad=1
	fi
}

# run OPTION...: a port no other run of these tests has
run() {
	timeout 120 "$load" pattern --port $((20000 + $$ % 10000)) --flows 16 "$@" \
		>"$tmp/log" 2>&1
	local status=$?
	cat "$tmp/log"
	return "$status"
}

# fault WORD SAID: it ends with status 1, and says so
fault() {
	run --seconds 60 --inject "$1"
	[ $? -eq 1 ] && grep "$2" "$tmp/log"
}

wrong_option() {
	"$load" pattern --flows 0
	[ $? -eq 2 ]
}

correct() {
	run --seconds 1 --address 127.0.0.1 --address ::1 &&
		grep '"connections": [1-9][0-9]' "$tmp/log"
}

echo "KTAP version 1"
echo "1..6"
verdict "correct bytes over IPv4 and IPv6 pass" correct
verdict "SIGTERM finishes what is under way" timeout --preserve-status \
	-s TERM 1 "$load" pattern --port $((20000 + $$ % 10000)) --flows 16
verdict "a changed byte is found" fault corrupt 'is 0x.*, not 0x'
verdict "a lost byte is found" fault lose 'belong 1 bytes later'
verdict "a stuck flow is found" fault stall 'stuck for 5'
verdict "a number out of range is refused" wrong_option
exit "$bad"
