#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The release archive has the same bytes from two clones made at other times,
# by users with other settings; holds what git tracks and nothing else; and its
# files name the version of VERSION.
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0
bad=0

echo "KTAP version 1"
if ! git -C "$top" rev-parse -q --verify HEAD >/dev/null 2>&1; then
	echo "1..0 # SKIP this tree is no git repository"
	exit 4
fi
echo "1..6"

# verdict NAME FINDINGS: ok if there are none.
verdict() {
	n=$((n + 1))
	if [ -z "$2" ]; then
		echo "ok $n $1"
	else
		printf '%s\n' "$2" | sed 's/^/# /'
		echo "not ok $n $1"
		bad=1
	fi
}

version=$(git -C "$top" show HEAD:VERSION)
archive=build/dist/mssfrac-$version.tar.gz
git clone -q --no-hardlinks "$top" "$tmp/one"
(cd "$tmp/one" && umask 077 && scripts/dist) >/dev/null
# Another clone: other times, group-writable files, another zone, language and
# git configuration, and files that git does not track.
(
	umask 002
	git clone -q --no-hardlinks "$top" "$tmp/two"
	cd "$tmp/two" || exit
	find . -path ./.git -prune -o -type f -exec touch -d 2001-02-03 {} +
	echo stray >stray
	export TZ=Asia/Tokyo LC_ALL=C.UTF-8 GZIP_LEVEL=1
	git config tar.umask 0
	git config core.autocrlf true
	scripts/dist >/dev/null
)
verdict "two clones give the same bytes" "$(cmp "$tmp/one/$archive" "$tmp/two/$archive" 2>&1)"
verdict "it holds what git tracks" "$(
	diff <(git -C "$top" ls-tree -r --name-only HEAD | sort) \
		<(tar -tzf "$tmp/one/$archive" | grep -v '/$' | cut -d / -f 2- | sort)
)"
verdict "all of it lies in one folder" "$(
	tar -tzf "$tmp/one/$archive" | grep -v "^mssfrac-$version/"
)"
verdict "no times but the commit's, no owners" "$(
	tar --numeric-owner --full-time --utc -tvzf "$tmp/one/$archive" |
		awk '{ print $2, $4, $5 }' | sort -u |
		grep -v -x "0/0 $(TZ=UTC git -C "$top" log -1 --date=format-local:'%Y-%m-%d %H:%M:%S' --format=%cd)"
)"
verdict "gzip keeps no name and no time" "$(
	head -c 10 "$tmp/one/$archive" | od -An -tx1 | grep -v '1f 8b 08 00 00 00 00 00'
)"
verdict "links in it point to files in it" "$(
	mkdir "$tmp/out" && tar -xzf "$tmp/one/$archive" -C "$tmp/out" &&
		find "$tmp/out" -xtype l
)"
exit $bad
