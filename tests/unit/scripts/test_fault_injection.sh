#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Each fault of tests/fault-injection fits the module as it is, line by line.  What
# the faults do takes the debug kernels (make check-fault-injection).
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
patches=("$top"/tests/fault-injection/*.patch)
n=0
bad=0
echo "KTAP version 1"
echo "1..${#patches[@]}"
for patch in "${patches[@]}"; do
	n=$((n + 1))
	if out=$(patch --dry-run --fuzz=0 -p1 -d "$top" <"$patch" 2>&1); then
		echo "ok $n ${patch##*/} applies"
	else
		printf '%s\n' "$out" | sed 's/^/# /'
		echo "not ok $n ${patch##*/} applies"
		bad=1
	fi
done
exit $bad
