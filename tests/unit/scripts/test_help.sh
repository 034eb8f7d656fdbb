#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Every program and script that a user starts prints its usage on --help, on
# stdout, with status 0, and does nothing else.  The head of a script, which it
# prints as its usage, ends before the directives of linters.
set -u
cd "$(dirname "$0")/../../.." || exit 2
n=0
bad=0

mapfile -t programs < <(
	for file in scripts/* build/bin/*; do
		[ -f "$file" ] && [ -x "$file" ] && echo "$file"
	done
)
echo "KTAP version 1"
echo "1..${#programs[@]}"
for program in "${programs[@]}"; do
	n=$((n + 1))
	shown=$("$program" --help 2>/dev/null </dev/null)
	status=$?
	if [ $status -eq 0 ] && grep -q -i '^usage:' <<<"$shown" &&
		! grep -q '^shellcheck ' <<<"$shown"; then
		echo "ok $n $program"
	else
		echo "# status $status"
		echo "# ${shown//$'\n'/$'\n'# }"
		echo "not ok $n $program"
		bad=1
	fi
done
exit $bad
