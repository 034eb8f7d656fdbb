#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# One version everywhere; what make install copies runs from its new place, and
# make uninstall takes all of it away.
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
version=$(cat "$top/VERSION")
programs=(pathprof mssab msstune tcpload)
n=0
bad=0

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

# versions FOLDER: programs there that print another version.
versions() {
	local program said
	for program in "${programs[@]}"; do
		said=$("$1/$program" --version 2>&1)
		[ "$said" = "$program $version" ] || echo "$program: $said"
	done
}

echo "KTAP version 1"
echo "1..9"
verdict "the programs print the version" "$(versions "$top/build/bin")"
verdict "modules that are built have it" "$(
	for module in "$top"/build/kmod/*/mssfrac.ko; do
		[ ! -e "$module" ] || [ "$module" -ot "$top/VERSION" ] ||
			/sbin/modinfo -F version "$module"
	done | grep -v -x -F "$version"
)"
verdict "the Debian package has it" "$(
	sed -n '1s/^mssfrac (\(.*\)) .*/\1/p' "$top/debian/changelog" |
		grep -v -x -F "$version"
)"
verdict "CHANGELOG has a section for it" "$(
	grep -q "^${version//./\\.} (" "$top/CHANGELOG" || echo "no $version"
)"

"$top/scripts/install" /usr "$tmp/root" >"$tmp/out" 2>&1
verdict "what is installed runs, and prints the version" "$(
	cat "$tmp/out"
	PATH=/usr/bin:/bin versions "$tmp/root/usr/bin"
)"
verdict "the completions are valid, and complete commands" "$(
	for program in pathprof mssab msstune; do
		PATH=$tmp/root/usr/bin:$PATH bash -c '
			. "$1" && COMP_WORDS=("$2" "") COMP_CWORD=1 && "_$2" &&
				[ ${#COMPREPLY[@]} -ge 5 ] || echo "$2: ${COMPREPLY[*]}"' - \
			"$tmp/root/usr/share/bash-completion/completions/$program" \
			"$program" 2>&1
	done
)"
verdict "an option is completed, not one that its help names" "$(
	PATH=$tmp/root/usr/bin:$PATH bash -c '
		. "$1" && COMP_WORDS=(pathprof record --fin) COMP_CWORD=2 &&
			_pathprof && [ "${COMPREPLY[*]}" = --fine ] ||
			echo "got: ${COMPREPLY[*]}"' - \
		"$tmp/root/usr/share/bash-completion/completions/pathprof" 2>&1
)"
# dh_missing reports a file only if building the packages made it.
verdict "a Debian package has each installed file" "$(
	mapfile -t patterns < <(cat "$top"/debian/*.install)
	cd "$tmp/root" && find . -path ./lib -prune -o -type f -printf '%P\n' |
		while IFS= read -r file; do
			for pattern in "${patterns[@]}"; do
				# shellcheck disable=SC2053 # the pattern is one
				[[ $file != $pattern && $file != $pattern/* ]] || continue 2
			done
			echo "$file"
		done
)"
"$top/scripts/install" --remove /usr "$tmp/root"
verdict "removing leaves no file" "$(find "$tmp/root" -type f -o -type l)"
exit $bad
