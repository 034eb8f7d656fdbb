# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# What the lint scripts share: which files are ours, and KTAP.  Sourced.

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2

# sources: every file that git tracks or has staged: results and notes that a
# user leaves in the tree are not ours to judge.  A tree without git (a release
# archive) is all ours except build/.
sources() {
	{
		git ls-files --cached 2>/dev/null ||
			find . -path ./build -prune -o -type f -printf '%P\n'
	} | while IFS= read -r file; do
		[ -f "$file" ] && printf '%s\n' "$file"
	done | sort
}

# scripts INTERPRETER EXTENSION: sources of that language.
scripts() {
	sources | while IFS= read -r file; do
		case $file in
		*."$2") echo "$file" ;;
		*.*) ;;
		*) head -n 1 "$file" | grep -q -a "^#!.*$1" && echo "$file" ;;
		esac
	done
}

lint_n=0
lint_bad=0
lint_skipped=0
lint_plan=0

plan() {
	lint_plan=$1
	echo "KTAP version 1"
	echo "1..$1"
}

# verdict NAME FINDINGS: ok if there are none; else they are shown.
verdict() {
	lint_n=$((lint_n + 1))
	if [ -z "$2" ]; then
		echo "ok $lint_n $1"
	else
		printf '%s\n' "$2" | sed 's/^/# /'
		echo "not ok $lint_n $1"
		lint_bad=1
	fi
}

# skip NAME REASON: a case that cannot run here.
skip() {
	lint_n=$((lint_n + 1))
	lint_skipped=$((lint_skipped + 1))
	echo "ok $lint_n $1 # SKIP $2"
}

# finish: exit 0 if all cases ran and passed, 4 if all were skipped, else 1.
finish() {
	[ "$lint_n" -eq "$lint_plan" ] || exit 1
	[ "$lint_skipped" -eq 0 ] || [ "$lint_skipped" -lt "$lint_n" ] || exit 4
	exit $lint_bad
}
