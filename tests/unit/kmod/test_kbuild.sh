#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A warning of a compiler newer than ours must not leave users of DKMS without a
# module, and must not get past our own build.
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
mkdir -p "$top/build/tmp"
tmp=$(mktemp -d "$top/build/tmp/kbuild.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
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

# A tree whose module compiles with a warning; it shares the kernels built here.
mkdir -p "$tmp/tree/build"
cp -a "$top"/{kmod,scripts,KERNELS,VERSION} "$tmp/tree"
for part in venv kernels roots; do
	[ ! -e "$top/build/$part" ] || ln -s "$top/build/$part" "$tmp/tree/build"
done
echo '#warning "as of a newer compiler"' >>"$tmp/tree/kmod/main.c"

headers=
for place in /usr/src/linux-headers-*-amd64; do
	[ ! -e "$place/Makefile" ] || headers=$place
done

# As DKMS builds it: with the flags of kmod/Kbuild only.
# shellcheck disable=SC2317 # called by check
plain() {
	cp -rL "$tmp/tree/kmod" "$tmp/kmod" &&
		env -u KCFLAGS make -C "$headers" M="$tmp/kmod" main.o >"$tmp/log" 2>&1 &&
		[ -s "$tmp/kmod/main.o" ] && grep 'warning: .*newer compiler' "$tmp/log"
}
# As the tests build it.
# shellcheck disable=SC2317 # called by check
ours() {
	! "$tmp/tree/scripts/build-kmod" "${headers#*headers-}" >"$tmp/log" 2>&1 &&
		grep 'error: .*newer compiler' "$tmp/log"
}

echo "KTAP version 1"
if [ ! "$headers" ]; then
	echo "1..0 # SKIP no kernel headers in /usr/src; scripts/setup guest"
	exit 4
fi
echo "1..2"
check "a plain build, as of DKMS, survives a warning" plain
check "scripts/build-kmod refuses a warning" ours
exit $bad
