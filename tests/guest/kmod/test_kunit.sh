#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The KUnit suites of the module's arithmetic (tests/kunit), in a kernel with
# CONFIG_KUNIT: loading their module runs them, debugfs has the results.
# kernel: debug
. "$(dirname "$0")/../../lib.sh"

KUNIT_MODULE=${KUNIT_MODULE:-$TOP/build/kunit/$(uname -r)/mssfrac_kunit.ko}
RESULTS=/sys/kernel/debug/kunit
SUITES="mssfrac_window mssfrac_cwnd"

[ -d $RESULTS ] || modprobe -q kunit || skip_all "this kernel has no KUnit"
[ -e "$KUNIT_MODULE" ] || skip_all "no mssfrac_kunit.ko for kernel $(uname -r)"
insmod "$KUNIT_MODULE" || exit
defer "rmmod mssfrac_kunit"

# The cases of a suite are one level deeper than the suite.  Loading runs them only
# with CONFIG_KUNIT_AUTORUN_ENABLED, where there is that option.
for suite in $SUITES; do
	grep -q '^    ok' "$RESULTS/$suite/results" ||
		echo 1 >"$RESULTS/$suite/run" || exit
	cat "$RESULTS/$suite/results" >>"$TMP/results" || exit
done
plan "$(awk '/^    1\.\./ { n += substr($1, 4) } END { print n + 0 }' \
	"$TMP/results")"
while IFS= read -r line; do
	case $line in
	"    ok "* | "    not ok "*)
		name=${line#*ok * }
		case $line in
		*"# SKIP"*) skip "${name%% # *}" "${name##*# SKIP}" ;;
		"    ok "*) ok "$name" ;;
		*) not_ok "$name" ;;
		esac
		;;
	*) echo "# $line" ;;
	esac
done <"$TMP/results"
