#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The README's commands for a host with the module, word for word: each
# succeeds, and the module is removed at the end.
[ -n "${MSSFRAC_GUEST:-}" ] || {
	echo "1..0 # SKIP it loads a module into the running kernel; use tests/run"
	exit 4
}
[ -e /sys/kernel/btf/vmlinux ] || {
	echo "1..0 # SKIP pathprof needs BTF, which this kernel has not"
	exit 4
}
exec "$(dirname "$0")/../../readme" guest
