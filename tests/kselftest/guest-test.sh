#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A test of tests/guest/kmod as kselftest runs it: called by that test's name, it
# skips (exit status 4) where the test cannot run, and starts it otherwise.  The
# tests load modules and change settings of the kernel: outside a virtual machine they
# run only if MSSFRAC_GUEST is set.
here=$(cd "$(dirname "$0")" && pwd)
release=$(uname -r)
test=$(basename "$0")

skip() {
	echo "TAP version 13"
	echo "1..0 # SKIP $*"
	exit 4
}

[ "$test" != guest-test.sh ] || skip "run it by the name of a test"
[ "$(id -u)" -eq 0 ] || skip "needs root"
[ "${MSSFRAC_GUEST:-}" ] ||
	skip "it changes the kernel it runs on: use a virtual machine and set MSSFRAC_GUEST=1"

export MODULE=${MSSFRAC_MODULE:-$here/modules/mssfrac.ko}
export KUNIT_MODULE=$here/modules/mssfrac_kunit.ko
for built in "$MODULE" "${MODULE%.ko}_cc.ko"; do
	[ -e "$built" ] ||
		skip "${built##*/} was not built: set KDIR and build again"
done
for tool in ethtool insmod ip modinfo python3 setpriv ss strip sysctl tc; do
	command -v $tool >/dev/null || skip "needs the program $tool"
done
[ -x /usr/bin/python3 ] || skip "needs /usr/bin/python3"
built=$(modinfo -F vermagic "$MODULE" | cut -d' ' -f1)
[ "$built" = "$release" ] ||
	skip "mssfrac.ko was built for $built, this is $release: set KDIR and build again"
! grep -q '^mssfrac ' /proc/modules || skip "mssfrac is loaded: unload it first"

export PATH=$here:$PATH
exec "$here/tests/guest/kmod/$test"
