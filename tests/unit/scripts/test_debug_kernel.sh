#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Which image scripts/debug-kernel takes, and when it stops, without building
# anything: apt-cache, apt-get and the cache are played.
# shellcheck disable=SC2317 # cases are called by name
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/bin" "$tmp/tree/scripts"
cp "$top"/scripts/{debug-kernel,debug-kernel.config,kbuild.sh,root,setup} \
	"$tmp/tree/scripts/"
cp "$top/KERNELS" "$tmp/tree/"
hash=$(grep '^CONFIG_' "$top/scripts/debug-kernel.config" | sha256sum |
	cut -c 1-12)
n=0
bad=0

# offers VERSION: what the package sources have; nothing can be fetched.
offers() {
	printf '#!/bin/bash\necho "  Candidate: %s"\n' "$1" >"$tmp/bin/apt-cache"
	printf '#!/bin/bash\necho "apt: no network"; exit 100\n' \
		>"$tmp/bin/apt-get"
	chmod +x "$tmp"/bin/*
}

# built VERSION HASH: an image in the cache
built() {
	mkdir -p "$tmp/cache/mssfrac/debug-kernel-$1-$2"
	touch "$tmp/cache/mssfrac/debug-kernel-$1-$2/vmlinuz-$1"
}

# expect NAME STATUS TEXT WORDS...: run it with these words
expect() {
	local name=$1 status=$2 text=$3 got
	shift 3
	PATH=$tmp/bin:$PATH XDG_CACHE_HOME=${cache:-$tmp/cache} \
		"$tmp/tree/scripts/debug-kernel" "$@" >"$tmp/out" 2>&1
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
echo "1..14"

offers "6.12.9-1~deb12u1"
expect "an unknown word" 2 "usage:" --paths
expect "asked for the path with nothing built" 3 "not built" --path
cache="$tmp/my cache" expect "a path kbuild cannot take" 3 "set XDG_CACHE_HOME"
built 6.12.8-1 "$hash"
expect "another version of the source is another build" 3 "not built" --path
built 6.12.9-1.deb12u1 0123456789ab
expect "another configuration is another build" 3 "not built" --path
built 6.12.9-1.deb12u1 "$hash"
expect "what is built is found, a tilde in its version too" 0 \
	"/debug-kernel-6.12.9-1.deb12u1-$hash/vmlinuz-6.12.9-1.deb12u1$"
echo "# a comment" >>"$tmp/tree/scripts/debug-kernel.config"
expect "a comment in the configuration is no other build" 0 \
	"/vmlinuz-6.12.9-1.deb12u1$"
expect "a series that KERNELS does not have" 2 "KERNELS has no 6.9: it has 6" 6.9
expect "a build of another series is another build" 3 \
	"not built; run scripts/debug-kernel 7.2" --path 7.2
built 7.2.x "$hash"
expect "what is built of another release is found" 0 \
	"/debug-kernel-7.2.x-$hash/vmlinuz-7.2.x$" --path 7.2
expect "and is not taken for the usual series" 0 "/vmlinuz-6.12.9-1.deb12u1$"
offers "(none)"
expect "without package sources the newest there is does" 0 \
	"/vmlinuz-6.12.9-1.deb12u1$"
rm -rf "$tmp/cache"
expect "neither sources nor a build" 3 "package sources offer no linux-source"
offers "6.12.9-1"
if "$tmp/tree/scripts/setup" --check debug 2>/dev/null; then
	expect "a fetch that fails says why" 1 "apt: no network"
else
	expect "missing packages are named" 3 "run scripts/setup debug"
fi
exit $bad
