#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# When scripts/tree-kernel stops, and with which status, without building a
# kernel: the tree is a Makefile that plays kbuild.
# shellcheck disable=SC2317 # cases are called by name
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME=$tmp/cache
touch "$tmp/made"
n=0
bad=0

# play DROPPED: a tree whose Kconfig drops the lines matching DROPPED, whose
# version is in the file release, and which does not build if there is a file
# broken.
play() {
	rm -rf "$tmp/tree"
	mkdir -p "$tmp/tree/net/ipv4"
	touch "$tmp/tree/Kconfig" "$tmp/tree/net/ipv4/Kconfig"
	echo 6.99.1 >"$tmp/tree/release"
	cat >"$tmp/tree/Makefile" <<-END
	.RECIPEPREFIX = >
	allnoconfig:
	> @echo configured >>$tmp/made
	> @grep ^CONFIG_ \$(KCONFIG_ALLCONFIG) | grep -v -E '$1' >\$(O)/.config
	> @mkdir -p \$(O)/include/config \$(O)/arch/x86/boot
	> @printf '\tKconfig \\\\\n\tnet/ipv4/Kconfig \\\\\n' \\
	>	>\$(O)/include/config/auto.conf.cmd
	bzImage:
	> @cp release \$(O)/include/config/kernel.release
	> @if [ -e broken ]; then echo "tcp.c:1: error: planted"; exit 1; fi
	> @echo image >\$(O)/arch/x86/boot/bzImage
	> @env | grep ^KBUILD_BUILD >$tmp/env
	END
}

# expect NAME STATUS TEXT WORDS...: run it with these words; what it says
# holds TEXT, and stdout holds a path or nothing.
expect() {
	local name=$1 status=$2 text=$3 got
	shift 3
	PATH=${path:-$PATH} "$top/scripts/tree-kernel" "$@" >"$tmp/path" 2>"$tmp/said"
	got=$?
	verdict "$name" "$([ $got -eq "$status" ] ||
		echo "status $got, wanted $status"
		grep -q -e "$text" "$tmp/said" || echo "does not say '$text'"
		case $status in
		0) [ -s "$(tail -n 1 "$tmp/path")" ] || echo "no image" ;;
		*) [ ! -s "$tmp/path" ] || echo "stdout is not empty" ;;
		esac)"
}

# verdict NAME COMPLAINTS
verdict() {
	n=$((n + 1))
	if [ -z "$2" ]; then
		echo "ok $n $1"
	else
		printf '%s\n' "$2" | sed 's/^/# /'
		sed 's/^/# /' "$tmp/said"
		echo "not ok $n $1"
		bad=1
	fi
}

# times: how often it was configured since this was asked last
times() {
	local count
	count=$(wc -l <"$tmp/made")
	: >"$tmp/made"
	echo "$count"
}

echo "KTAP version 1"
echo "1..32"

play nothing
expect "no tree named" 2 "usage:"
expect "two trees named" 2 "usage:" "$tmp/tree" "$tmp/tree"
expect "an unknown option" 2 "unknown option --out" --out x "$tmp/tree"
expect "--output without a folder" 2 "needs a folder" --output
expect "--copy to no folder" 2 "needs a folder" --copy "$tmp/none" "$tmp/tree"
expect "no such folder" 2 "no such folder" "$tmp/none"
expect "a folder that is no kernel" 2 "no kernel source tree" "$tmp"
mkdir "$tmp/my tree"
cp -r "$tmp/tree/." "$tmp/my tree"
expect "a path kbuild cannot take" 3 "cannot take such a path" "$tmp/my tree"
expect "an output folder inside the tree" 2 "choose a folder outside" \
	--output "$tmp/tree/out" "$tmp/tree"
touch "$tmp/tree/.config"
expect "a tree built in place" 3 "make mrproper" "$tmp/tree"

play nothing
mkdir "$tmp/bin"
for tool in bash dirname basename realpath sha256sum cut sed cat env; do
	ln -s "$(command -v $tool)" "$tmp/bin/"
done
path=$tmp/bin expect "missing tools are named" 3 \
	"missing: gcc, .*pahole, lz4; run scripts/setup bisect" "$tmp/tree"
for tool in gcc ld make flex bison bc perl python3 pahole lz4; do
	printf '#!/bin/bash\nexit 1\n' >"$tmp/bin/$tool"
done
chmod +x "$tmp"/bin/*
LLVM=-14 path=$tmp/bin expect "those of clang, too" 3 \
	"missing: clang-14, ld.lld-14, .*llvm-strip-14; .* and install clang" "$tmp/tree"
path=$tmp/bin expect "missing headers are named" 3 "missing: libelf" "$tmp/tree"

"$top/scripts/setup" --check bisect 2>"$tmp/said" || {
	echo "# $(cat "$tmp/said")"
	while [ $n -lt 27 ]; do
		n=$((n + 1))
		echo "ok $n # SKIP needs the tools of scripts/setup bisect"
	done
	exit $bad
}

expect "an image, and its path alone on stdout" 0 "built in" "$tmp/tree"
verdict "below the cache, by its release" "$(
	[[ $(cat "$tmp/path") = $tmp/cache/mssfrac/tree-*/vmlinuz-6.99.1 ]] ||
		cat "$tmp/path")"
verdict "no time, user or host of this build" "$(
	[ "$(grep -c -E '_(TIMESTAMP=2026-01-01|USER=mssfrac|HOST=mssfrac|VERSION=1)' \
		"$tmp/env")" -eq 4 ] || cat "$tmp/env")"
first=$(cat "$tmp/path")
times >/dev/null
expect "again" 0 "built in" "$tmp/tree"
verdict "does not configure again" "$([ "$(times)" -eq 0 ] || echo "it did")"
echo 6.99.2 >"$tmp/tree/release"
touch "$tmp/tree/net/ipv4/Kconfig"
expect "another commit, with another Kconfig" 0 "built in" "$tmp/tree"
verdict "configures again, and the last image is gone" "$(
	[ "$(times)" -eq 1 ] && [ ! -e "$first" ] || echo "it did not, or is not")"
printf 'CONFIG_NET_SCH_SFQ=y\nCONFIG_HZ_250=n\n' >"$tmp/own"
mkdir "$tmp/llvm"
for tool in clang ld.lld llvm-{ar,nm,objcopy,objdump,readelf,strip}; do
	printf '#!/bin/sh\necho "%s 99"\n' "$tool" >"$tmp/llvm/$tool"
done
chmod +x "$tmp/llvm/"*
LLVM=$tmp/llvm/ expect "another compiler" 0 "built in" "$tmp/tree"
verdict "is another configuration" "$([ "$(times)" = 1 ] || echo "not configured")"
expect "and the first one again" 0 "built in" "$tmp/tree"
verdict "is so, too" "$([ "$(times)" = 1 ] || echo "not configured")"
expect "options of one's own" 0 "built in" --config "$tmp/own" "$tmp/tree"
verdict "replace those of the fragment" "$(
	grep -c -x -e CONFIG_NET_SCH_SFQ=y -e CONFIG_HZ_250=n \
		"$tmp"/cache/mssfrac/*/build/.config | grep -v -x 2
	grep -x CONFIG_HZ_250=y "$tmp"/cache/mssfrac/*/build/.config)"
mkdir "$tmp/copy"
expect "a copy that later builds leave alone" 0 "built in" --copy "$tmp/copy" "$tmp/tree"
verdict "with configuration, tools and functions" "$(
	[ "$(cat "$tmp/path")" = "$tmp/copy/vmlinuz-6.99.2" ] || cat "$tmp/path"
	grep -q ^CONFIG_NET=y "$tmp/copy/config" || echo "no configuration"
	grep -q pahole "$tmp/copy/made-from" || grep -q '^v1' "$tmp/copy/made-from" ||
		echo "no tools"
	grep -q '^{' "$tmp/copy/functions.json" || echo "no functions")"
touch "$tmp/tree/broken"
expect "a tree that does not build is skipped" 125 "error: planted" "$tmp/tree"
verdict "no image of an earlier step stays, but its copy" "$(
	compgen -G "$tmp/cache/mssfrac/*/vmlinuz-*"
	[ -s "$tmp/copy/vmlinuz-6.99.2" ] || echo "the copy is gone")"

play 'DEBUG_INFO_BTF|NET_SCH_FQ='
expect "a tree without BTF is skipped, once for all that is lost" 125 \
	"need CONFIG_NET_SCH_FQ=y, CONFIG_DEBUG_INFO_BTF=y, which" "$tmp/tree"
play 'MPTCP_IPV6|SYN_COOKIES|^CONFIG_RETPOLINE'
expect "what is wanted only is listed, an older name excused" 0 \
	"no CONFIG_SYN_COOKIES=y, CONFIG_MPTCP_IPV6=y: built without" "$tmp/tree"
exit $bad
