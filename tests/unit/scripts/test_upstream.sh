#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The patches of Documentation/upstream: checkpatch --strict is content with each,
# they apply in their order, and none is signed.  LINUX names an unpacked kernel source; without
# it the one of the series is looked for in /usr/src, unpacked or packed.
# shellcheck disable=SC2317 # case_ calls the functions
set -u

TOP=$(cd "$(dirname "$0")/../../.." && pwd)
SERIES=7.3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
patches=("$TOP"/Documentation/upstream/0*[1-9]-*.patch)
n=0
bad=0

case_() {
	local name=$1 status
	shift
	n=$((n + 1))
	"$@" >"$tmp/out" 2>&1
	status=$?
	sed 's/^/# /' "$tmp/out"
	if [ $status -eq 0 ]; then
		echo "ok $n $name"
	else
		echo "not ok $n $name"
		bad=1
	fi
}

# Copies what the patches change, and checkpatch, to $tmp/linux.
take_source() {
	local source=${LINUX:-/usr/src/linux-source-$SERIES} files
	mapfile -t files < <(sed -n 's|^--- a/||p' "${patches[@]}" | sort -u)
	files+=(scripts/checkpatch.pl scripts/spelling.txt
		scripts/const_structs.checkpatch)
	mkdir "$tmp/linux"
	if [ -d "$source" ]; then
		(cd "$source" && cp --parents "${files[@]}" "$tmp/linux")
	elif [ -f "$source.tar.xz" ]; then
		tar -C "$tmp/linux" -xf "$source.tar.xz" --strip-components=1 \
			"${files[@]/#/linux-source-$SERIES/}"
	else
		return 1
	fi
}

complete() {
	local numbers
	[ -f "$TOP/Documentation/upstream/0000-cover-letter.patch" ] || return 1
	numbers=$(sed -n "s|^Subject: \[PATCH[^]]* \(.*\)\].*|\1|p" \
		"$TOP"/Documentation/upstream/0*.patch | tr '\n' ' ')
	echo "$numbers"
	[ "$numbers" = "$(seq -f "%g/${#patches[@]}" 0 ${#patches[@]} | tr '\n' ' ')" ]
}

# Only the person who sends a patch can sign it.
unsigned() {
	! grep -H -n -i '^signed-off-by:' "$@"
}

# A signature that the check must find.
finds_signature() {
	sed 's/^---$/Signed-off-by: A <a@example.org>\n---/' "${patches[0]}" \
		>"$tmp/signed.patch"
	! unsigned "$tmp/signed.patch"
}

applies() {
	git -C "$tmp/linux" apply --verbose "${patches[@]}"
}

style() {
	# A new file asks for a line in MAINTAINERS; the networking lines match it.
	# The signature is added by the person who sends the patch.
	perl "$tmp/linux/scripts/checkpatch.pl" --no-tree --strict --terse \
		--show-types --ignore FILE_PATH_CHANGES,MISSING_SIGN_OFF "$1"
}

# A finding that the check must make.
objects() {
	sed '0,/^+\t/s/^+\t/+        /' "${patches[0]}" >"$tmp/spaces.patch"
	! style "$tmp/spaces.patch"
}

echo "KTAP version 1"
if ! take_source 2>"$tmp/out"; then
	echo "1..4"
	case_ "the series is complete" complete
	case_ "no patch is signed" unsigned "$TOP"/Documentation/upstream/0*.patch
	case_ "a signature would be found" finds_signature
	echo "ok 4 the patches apply, and pass checkpatch # SKIP no linux-source-$SERIES, which is not part of Debian 12; set LINUX to its folder"
	exit $bad
fi
echo "1..$((${#patches[@]} + 5))"
case_ "the series is complete" complete
case_ "no patch is signed" unsigned "$TOP"/Documentation/upstream/0*.patch
case_ "a signature would be found" finds_signature
case_ "the patches apply in their order" applies
for patch in "${patches[@]}"; do
	case_ "checkpatch: ${patch##*/}" style "$patch"
done
case_ "checkpatch objects to spaces for tabs" objects
exit $bad
