#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# make where not all is as usual: a tree whose path has a blank, where Kbuild cannot
# work, a read-only tree, and a Python that is too old for the tools.
# shellcheck disable=SC2317 # check calls the functions
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
mkdir -p "$top/build/tmp"
tmp=$(mktemp -d "$top/build/tmp/front-door.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
tree="$tmp/a b"
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

# The tree as built, less some of the programs: they are built again.
mkdir -p "$tree/build"
(cd "$top" && cp -a Makefile KERNELS VERSION bpf kmod scripts userspace Documentation "$tree")
cp -a "$top"/build/{bin,bpf,man,pathprof} "$tree/build"
ln -s "$top/build/venv" "$tree/build/venv"
rm "$tree"/build/{bin/*,bpf/*.skel.h,pathprof/session.o,man/mssfrac.4}
links() { readlink "$tree"/build/bin/{mssab,msstune}; }
make_() { make -C "$tree" --no-print-directory "$@"; }

helps() { make_ help >"$tmp/help" && grep '^  make programs ' "$tmp/help"; }
programs() {
	make_ programs && "$tree/build/bin/pathprof" --version &&
		"$tree/build/bin/mssab" --version && "$tree/build/bin/msstune" --version &&
		[ -s "$tree/build/man/mssfrac.4" ]
}
# In one sentence, and with the status of what is not supported.
refuses() {
	make_ kmod >"$tmp/said" 2>&1 && return 1
	cat "$tmp/said"
	[ "$(grep -c -v '^make' "$tmp/said")" = 1 ] &&
		grep '^Kbuild cannot work below a path with a blank' "$tmp/said"
}
# Made anew, a link would have another inode; in a read-only tree it would fail.
kept() {
	local before
	before=$(stat -c %i "$tree"/build/bin/{mssab,msstune}) &&
		make_ mssab msstune && links &&
		[ "$(stat -c %i "$tree"/build/bin/{mssab,msstune})" = "$before" ]
}
old_python() {
	local tool=$1
	PYTHONPATH=$top/userspace/$tool /usr/bin/python3 -c '
import runpy, sys
sys.version_info = (3, 10, 12)
runpy.run_module(sys.argv[1], run_name="__main__")' "$tool" 2>"$tmp/said"
	[ $? -eq 3 ] && cat "$tmp/said" &&
		[ "$(cat "$tmp/said")" = "$tool: needs Python 3.11 or newer, this is 3.10" ]
}

echo "KTAP version 1"
echo "1..6"
check "make help, in a path with a blank" helps
check "make programs, in a path with a blank" programs
check "make kmod is refused there in one sentence" refuses
check "links that are right are not made again" kept
check "mssab names the Python it needs" old_python mssab
check "msstune names the Python it needs" old_python msstune
exit $bad
