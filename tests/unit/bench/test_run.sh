#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# make help lists a target for every benchmark.  The run scripts of those in
# guests print one sentence without arguments, with --help, and where nothing was
# built.
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/tests" "$tmp/scripts"
cp -r "$top/tests/bench" "$tmp/tests/"
printf '#!/bin/sh\necho 6.1.0-9-amd64\n' >"$tmp/scripts/guest"
chmod +x "$tmp/scripts/guest"
n=0
bad=0

# expect NAME STATUS PATTERN COMMAND...: its status, and its only line
expect() {
	local name=$1 status=$2 pattern=$3 got
	shift 3
	"$@" >"$tmp/out" 2>&1
	got=$?
	n=$((n + 1))
	if [ $got -eq "$status" ] && [ "$(wc -l <"$tmp/out")" -eq 1 ] &&
		grep -q -E -e "$pattern" "$tmp/out"; then
		echo "ok $n $name"
	else
		echo "# status $got, wanted $status and '$pattern' in one line:"
		sed 's/^/# /' "$tmp/out"
		echo "not ok $n $name"
		bad=1
	fi
}

benches=("$tmp"/tests/bench/*/run)
# Those without a guest take no kernel, and need no argument.
mapfile -t guests < <(grep -l lib.sh "${benches[@]}")
echo "KTAP version 1"
echo "1..$((${#benches[@]} + 3 * ${#guests[@]}))"
for run in "${benches[@]}"; do
	name=$(basename "$(dirname "$run")")
	expect "make bench-$name" 0 "^ *make bench-$name  .*[a-z]" \
		sh -c "cd '$top' && make -s help | grep -w 'bench-$name '"
done
for run in "${guests[@]}"; do
	name=$(basename "$(dirname "$run")")
	expect "$name without arguments" 2 "^usage: tests/bench/$name/run " "$run"
	expect "$name --help" 0 "^usage: tests/bench/$name/run " "$run" --help
	expect "$name before anything is built" 3 \
		"^bench-$name: build/.* is not built; run make bench-$name" "$run" 6.1
done
exit $bad
