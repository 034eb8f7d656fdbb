#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs the installed selftests with the modules that DKMS built for the running
# kernel.  The options are those of the kernel's run_kselftest.sh.
set -u
here=$(cd "$(dirname "$0")" && pwd)
list=$here/kselftest-list.txt

usage() {
	cat <<-END
	usage: run_kselftest.sh [-l] [-n] [-t COLLECTION:TEST]... [-c COLLECTION]...
	  -l  list the tests        -n  print what would run
	The tests load modules and change settings of the kernel: run them in a virtual
	machine, as root, with MSSFRAC_GUEST=1 in the environment.
	Exit status: 0 no test failed; 1 a test failed; 2 usage.
	END
}

wanted=()
dry=
while getopts lnt:c:h option; do
	case $option in
	l)
		cat "$list"
		exit 0
		;;
	n) dry=1 ;;
	t) wanted+=("$OPTARG") ;;
	c) mapfile -t -O ${#wanted[@]} wanted < <(grep "^$OPTARG:" "$list") ;;
	h)
		usage
		exit 0
		;;
	*)
		usage >&2
		exit 2
		;;
	esac
done
[ ${#wanted[@]} -gt 0 ] || mapfile -t wanted <"$list"
for test in "${wanted[@]}"; do
	grep -q -x -F "$test" "$list" || {
		echo "run_kselftest.sh: no test $test; -l lists them" >&2
		exit 2
	}
done

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for name in mssfrac mssfrac_cc; do
	module=$(modinfo -n "$name" 2>/dev/null)
	case $module in
	*.xz) xz -dc "$module" >"$tmp/$name.ko" ;;
	*.zst) zstd -q -dc "$module" >"$tmp/$name.ko" ;;
	*.ko) cp "$module" "$tmp/$name.ko" ;;
	esac
done
export MSSFRAC_MODULE=$tmp/mssfrac.ko

echo "TAP version 13"
echo "1..${#wanted[@]}"
n=0
bad=0
for test in "${wanted[@]}"; do
	n=$((n + 1))
	name="selftests: ${test%%:*}: ${test#*:}"
	if [ "$dry" ]; then
		echo "# $name"
		continue
	fi
	(cd "$here/${test%%:*}" && "./${test#*:}") 2>&1 | sed -u 's/^/# /'
	case ${PIPESTATUS[0]} in
	0) echo "ok $n $name" ;;
	4) echo "ok $n $name # SKIP" ;;
	*)
		echo "not ok $n $name"
		bad=1
		;;
	esac
done
exit $bad
