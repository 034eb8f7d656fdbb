#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Each rule of tests/lint/commits must be able to fail: commits in a small
# repository, of which exactly that rule objects.
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a \
	GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a \
	GIT_COMMITTER_EMAIL=a@example.org GIT_CEILING_DIRECTORIES=${tree%/*}
unset BASE
n=0
bad=0

verdict() {
	n=$((n + 1))
	if [ "$2" = "$3" ]; then
		echo "ok $n $1"
	else
		echo "# got '$2', wanted '$3'"
		echo "not ok $n $1"
		bad=1
	fi
}
lint() { TREE=$tree "$top/tests/lint/commits"; }
commit() { git -C "$tree" commit -q --allow-empty "${@/#/-m}"; }
# objects: the numbers of the rules that object
objects() { lint | sed -n 's/^not ok \([0-9]*\).*/\1/p' | tr '\n' ' '; }
# expect NAME RULE SUBJECT [BODY]: a commit that is there for this case only
expect() {
	commit "${@:3}"
	verdict "$1" "$(objects)" "$2"
	git -C "$tree" reset -q --soft HEAD^
}

echo "KTAP version 1"
echo "1..14"
verdict "without git it skips" "$(lint | grep -c 'SKIP no git')" 4
git -C "$tree" init -q
commit "Old ways"
verdict "without a tag it skips" "$(lint | grep -c 'SKIP no tag')" 4
git -C "$tree" tag v1
verdict "what is released is not judged" "$(objects)" ""
commit "kmod: read the window once" "It may change between two reads."
expect "a good commit" "" "tests/unit: pass the tree" "It may lie anywhere."
expect "a release" "" "release: 1.2"
expect "no area" "1 " "read the window once" "Why."
expect "no object" "1 " "kmod: wrap" "Why."
expect "a capital" "1 " "kmod: Read the window" "Why."
expect "a full stop" "1 " "kmod: read the window." "Why."
expect "73 characters" "2 " "kmod: read $(printf 'x%.0s' {1..62})" "Why."
expect "the past" "3 " "kmod: added a window" "Why."
expect "the third person" "3 " "kmod: reads the window" "Why."
expect "no body" "4 " "kmod: read the window"
expect "a body of trailers" "4 " "kmod: read the window" "Fixes: 0123456789ab"
exit $bad
