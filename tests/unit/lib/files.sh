# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# What the tests of pathprof's commands on files share: the program, a folder of
# their own, and cases.  Sourced.

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
PP=${PATHPROF:-$TOP/build/bin/pathprof}
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

# refused COMMAND FILE PATTERN: status 1, one line that matches, nothing on stdout.
refused() {
	local status
	"$PP" "$1" "$2" >stdout 2>stderr
	status=$?
	cat stderr
	[ $status -eq 1 ] && [ ! -s stdout ] && [ "$(wc -l <stderr)" -eq 1 ] &&
		grep -qE -- "$3" stderr
}

# edited COMMAND FILE SED-SCRIPT PATTERN: the file, edited, is refused.
edited() {
	sed -E "$3" "$2" >edited
	cmp -s edited "$2" && echo "the edit changed nothing" && return 1
	refused "$1" edited "$4"
}
