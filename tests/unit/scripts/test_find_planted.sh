#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs tests/bisect/find-planted on a tree of stubs, with steps that read the
# sources.  It must find the planted change at every position.  It must fail
# when a step detects nothing, blames another commit, or cannot decide.
# shellcheck disable=SC2016 # steps are for the shell that runs them
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0
bad=0

mkdir -p "$tmp"/linux/net/{core,ethernet,ipv4,ipv6,sched}
for file in $(sed -n '/^FILES="/,/"$/p' "$top/tests/bisect/find-planted" |
	sed 's/FILES=//' | tr -d '"'); do
	printf '// SPDX\nint icsk;\n' >"$tmp/linux/net/$file.c"
done
printf '%s\n' $'\t */' '' $'\ttp->rx_opt.saw_tstamp = 0;' '' \
	$'\t/*\tpred_flags is 0xS?10 << 16 + snd_wnd' \
	$'\t *\tif header_prediction is to be made' >"$tmp/linux/net/ipv4/tcp_input.c"
before=$(find "$tmp/linux" -type f -exec sha256sum {} + | sort)

# expect NAME STATUS TEXT WORDS...: run it with these words
expect() {
	local name=$1 status=$2 text=$3 got
	shift 3
	"$top/tests/bisect/find-planted" "$@" >"$tmp/out" 2>&1
	got=$?
	n=$((n + 1))
	if [ $got -eq "$status" ] && grep -q -e "$text" "$tmp/out"; then
		echo "ok $n $name"
	else
		echo "# status $got, wanted $status and '$text'"
		sed 's/^/# /' "$tmp/out"
		echo "not ok $n $name"
		bad=1
	fi
}

echo "KTAP version 1"
echo "1..16"

expect "nothing named" 2 "name a change and a tree"
expect "an unknown option" 2 "unknown option --fast" --fast slow-1 "$tmp/linux"
expect "an option without its value" 2 "needs a value" --at
expect "an unknown change" 2 "there are: receive-20 slow-1" slow-2 "$tmp/linux"
expect "a folder that is not a kernel" 2 "not a kernel source tree" slow-1 "$tmp"
expect "a position beyond the last" 2 "positions are 1 to 16" --at 17 slow-1 "$tmp/linux"
expect "a work folder that holds the tree" 2 "holds the tree itself" \
	--work "$tmp" --step true slow-1 "$tmp/linux"

set -- --work "$tmp/work"
expect "twenty instructions: first, last and in between" 0 "^ok 3 receive-20 at 16 of 16: 4 steps" \
	"$@" --at "1 7 16" --step '! grep -q nop net/ipv4/tcp_input.c' \
	receive-20 "$tmp/linux"
expect "the slow path" 0 "^ok 2 slow-1 at 14" \
	"$@" --at "2 14" --step '! grep -q slow_path net/ipv4/tcp_input.c' \
	slow-1 "$tmp/linux"
expect "the baseline runs in the unchanged tree" 0 "^ok 1 slow-1 at 5" \
	"$@" --at 5 --baseline '! grep -q slow_path net/ipv4/tcp_input.c' \
	--step '! grep -q slow_path net/ipv4/tcp_input.c' slow-1 "$tmp/linux"
expect "a failing baseline ends the run" 2 "the baseline failed" \
	"$@" --baseline 'exit 125' --step true slow-1 "$tmp/linux"
expect "a step that detects nothing" 1 "^not ok 1 slow-1 at 5" \
	"$@" --at 5 --step true slow-1 "$tmp/linux"
expect "a step that blames another commit" 1 "blamed .* net/.*nothing that matters" \
	"$@" --at 9 --step '! grep -q "One line" -r net' slow-1 "$tmp/linux"
expect "a step that cannot tell" 1 "^not ok 1 slow-1 at 5" \
	"$@" --at 5 --step 'exit 125' slow-1 "$tmp/linux"
expect "a step that is not supported here" 1 "^not ok 1 slow-1 at 5" \
	"$@" --at 5 --step 'exit 128' slow-1 "$tmp/linux"

n=$((n + 1))
after=$(find "$tmp/linux" -type f -exec sha256sum {} + | sort)
if [ "$before" = "$after" ]; then
	echo "ok $n the given tree is unchanged"
else
	echo "not ok $n the given tree is unchanged"
	bad=1
fi
exit $bad
