#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# scripts/function-digests: which functions of a C file differ after a change,
# which do not although their place or their neighbours changed, and which of
# them ftrace cannot count.
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/net" "$tmp/tools"
n=0
bad=0

cat >"$tmp/source.c" <<'END'
int other(int x);
int warn(const char *text);
static int table[4];
static __attribute__((noinline)) int first(int x) { return other(x) + 1; }
static __attribute__((noinline)) int local(int x) { return x * 3 + table[x & 3]; }
static inline int twice(int x) { return 2 * x + 5; }
int caller(int x)
{
	table[0] = x;
	return x < 0 ? other(7) : first(x) + local(x);
}
int user(int x) { return other(twice(x)); }
int speaker(int x) { return x ? warn("one") : warn("two"); }
int __attribute__((no_instrument_function)) quiet(int x) { return other(x) + 4; }
int __attribute__((section(".init.text"))) at_boot(void) { return other(1); }
END

# digests SED: of the source as changed by it
digests() {
	sed "$1" "$tmp/source.c" >"$tmp/a.c"
	gcc -O2 -fno-pic -mcmodel=kernel -pg -mfentry \
		-c "$tmp/a.c" -o "$tmp/net/a.o" || exit
	cp "$tmp/net/a.o" "$tmp/tools/b.o"
	"$top/scripts/function-digests" "$tmp"
}

# differ NAME WANTED SED: the functions that the change makes different
differ() {
	local got
	got=$(digests "$3" >"$tmp/new" && /usr/bin/python3 -c '
import json, sys
old, new = (json.load(open(name)) for name in sys.argv[1:])
print(*sorted(key.split()[1] for key in new if old.get(key) != new[key]))
' "$tmp/old" "$tmp/new")
	n=$((n + 1))
	if [ "$got" = "$2" ]; then
		echo "ok $n $1"
	else
		echo "# different: '$got', wanted '$2'"
		echo "not ok $n $1"
		bad=1
	fi
}

echo "KTAP version 1"
echo 1..9
digests '' >"$tmp/old"
differ "nothing changed" "" ''
differ "a changed function, and none that moved" first 's/other(x) + 1/other(x) * 99 + other(3)/'
differ "an inlined function changes its callers" user 's/2 \* x + 5/7 * x + 6/'
differ "data that moved changes no function" "" 's/^static int table/static int more[9]; int *p = more;\n&/'
differ "text that moved changes no function" speaker 's/warn("one")/warn("one longer") + 2/'
differ "a new function" added '$a int added(int x) { return other(x) + 9; }'
differ "code of the boot does not count" "" 's/return other(1)/return other(2)/'
differ "a function that ftrace cannot count" quiet 's/other(x) + 4/other(x) + 5/'
n=$((n + 1))
untraced=$(sed 's/, /\n/g' "$tmp/old" | sed -n 's/.*o \(.*\)": ".* untraced".*/\1/p')
if [ "$untraced" = quiet ]; then
	echo "ok $n which is marked, and no other"
else
	echo "# marked: '$untraced', wanted quiet"
	echo "not ok $n which is marked, and no other"
	bad=1
fi
exit $bad
