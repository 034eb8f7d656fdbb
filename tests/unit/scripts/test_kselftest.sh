#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# scripts/kselftest adds all that the Makefile of tests/kselftest names to a
# kernel tree, and its tests skip, with a reason and exit status 4, where they
# cannot run.  The kernel tree is a stand-in: its lib.mk prints variables.
# shellcheck disable=SC2317 # cases are called by name
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
selftests=$tmp/linux/tools/testing/selftests
added=$selftests/mssfrac
mkdir -p "$selftests"
printf 'show-%%:\n\t@echo $($*)\n' >"$selftests/lib.mk"
n=0
bad=0

check() {
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

# list VARIABLE: of the Makefile, as kselftest reads it
list() { make -s -C "$added" "show-$1" 2>/dev/null; }

refuses() {
	"$top/scripts/kselftest" "$tmp"
	[ $? -eq 2 ] || return 1
	mkdir -p "$added" && touch "$added/foreign"
	"$top/scripts/kselftest" "$tmp/linux"
	[ $? -eq 1 ] && [ -e "$added/foreign" ] && rm -r "$added"
}

adds() {
	"$top/scripts/kselftest" "$tmp/linux" &&
		"$top/scripts/kselftest" "$tmp/linux" &&
		[ "$(find "$added" -name '*.pyc')" = "" ]
}

complete() {
	local file
	for file in $(list TEST_PROGS) $(list TEST_PROGS_EXTENDED) \
		$(list TEST_FILES) modules/Kbuild modules/main.c \
		modules/window_kunit.c config settings; do
		[ -e "$added/$file" ] || { echo "no $file"; return 1; }
	done
	for file in $(list TEST_PROGS); do
		if [ ! -x "$added/$file" ] || [ ! -x "$added/tests/guest/kmod/$file" ]; then
			echo "$file cannot run"
			return 1
		fi
	done
	[ "$(list TEST_PROGS | wc -w)" -ge 7 ] &&
		[ -z "$(find "$added" -xtype l -print -quit)" ] &&
		"$added/mssab" --version
}

# Tools that the tests call by name are built from what was added.
builds() {
	local program
	for program in $(list TEST_GEN_PROGS_EXTENDED); do
		make -s -C "$added" Q=@ OUTPUT="$tmp" CC=cc "$tmp/$program" &&
			[ -x "$tmp/$program" ] || return 1
	done
}

# skips REASON COMMAND...: exit status 4 and a plan with the reason
skips() {
	local reason=$1 status
	shift
	"$@" >"$tmp/skip"
	status=$?
	cat "$tmp/skip"
	[ "$status" -eq 4 ] && grep -q "^1\.\.0 # SKIP .*$reason" "$tmp/skip"
}

each_skips() {
	local test
	for test in $(list TEST_PROGS); do
		skips "$1" "${@:2}" "$added/$test" || return 1
	done
}

echo "KTAP version 1"
echo "1..7"
check "a folder without a kernel tree, or with foreign files, is refused" refuses
check "the folder is added, and renewed" adds
check "everything that the Makefile names exists" complete
check "the programs build" builds
if [ "$(id -u)" -eq 0 ]; then
	check "outside a guest every test skips" each_skips "changes the kernel" \
		env -u MSSFRAC_GUEST
	check "without a module every test skips" each_skips "was not built" \
		env MSSFRAC_GUEST=1
else
	check "without root every test skips" each_skips "needs root" env
	n=$((n + 1))
	echo "ok $n without a module every test skips # SKIP needs root"
fi
check "the wrapper alone skips" skips "name of a test" "$added/guest-test.sh"
exit $bad
