#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Each layer rule must be able to fail: writes one violation per rule in a
# small tree and expects exactly that rule to object.
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
n=0
bad=0

# write FILE LINE...
write() {
	local file=$tree/$1
	mkdir -p "$(dirname "$file")"
	shift
	printf '%s\n' "$@" >"$file"
}

# expect NAME RULE: the numbers of the rules that object, nothing for none.
expect() {
	local got
	got=$(TREE=$tree "$top/tests/lint/layers" |
		sed -n 's/^not ok \([0-9]*\).*/\1/p' | tr '\n' ' ')
	n=$((n + 1))
	if [ "${got% }" = "$2" ]; then
		echo "ok $n $1"
	else
		echo "# rules that object: '$got', wanted '$2'"
		echo "not ok $n $1"
		bad=1
	fi
}

# violate NAME RULE FILE LINE...: expect RULE while FILE has these lines.
violate() {
	local name=$1 rule=$2 file=$3 keep
	keep=$(cat "$tree/$file" 2>/dev/null)
	shift 2
	write "$@"
	expect "$name" "$rule"
	if [ "$keep" ]; then
		write "$file" "$keep"
	else
		rm "$tree/$file"
	fi
}

echo "KTAP version 1"
echo "1..26"

write kmod/compat.h '#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)'
write kmod/main.c '#include <linux/tcp.h>'
write bpf/prog.bpf.c '#include "vmlinux.h"' '#include <bpf/bpf_helpers.h>' \
	'#include "own.h"'
write bpf/own.h '/* ours */'
write userspace/pathprof/record/session.c '#include "prog.skel.h"'
write userspace/pathprof/commands/list.c '#include "profile/profile.h"' \
	'#include "record/session.h"'
write tests/run '#!/bin/bash'

expect "a clean tree" ""
violate "a top-level folder nobody planned" 1 \
	extra/file ""
violate "a second file with the skeleton" 2 \
	userspace/pathprof/commands/list.c '#include "prog.skel.h"'
violate "a command that includes a command" 3 \
	userspace/pathprof/commands/list.c '#include "commands/top.h"'
violate "a view that includes a command" 3 \
	userspace/pathprof/view/render.h '#include "commands/top.h"'
violate "a profile that knows its views" 3 \
	userspace/pathprof/profile/label.c '#include "base/tool.h"' \
	'#include "view/render.h"'
violate "a profile that knows the kernel" 3 \
	userspace/pathprof/profile/stats.c '#include "kernel/hooks.h"'
violate "a file of pathprof in no folder of the list" 3 \
	userspace/pathprof/other/file.c ""
violate "a file of pathprof beside its folders" 3 \
	userspace/pathprof/file.c ""
violate "a kernel version in the module" 4 \
	kmod/main.c '#if LINUX_VERSION_CODE > 5'
violate "a kernel version in BPF" 4 \
	bpf/own.h '#if KERNEL_VERSION(6, 1, 0)'
violate "a system header in BPF" 5 \
	bpf/own.h '#include <linux/tcp.h>'
violate "a header of another part in BPF" 5 \
	bpf/own.h '#include "profile.h"'
violate "a path out of bpf/" 5 \
	bpf/own.h '#include "../kmod/window.h"'
violate "vmlinux.h in userspace" 6 \
	userspace/pathprof/commands/list.c '#include "vmlinux.h"'
violate "a file of 701 lines" 7 \
	kmod/main.c "$(seq -f '/* %g */' 701)"
violate "a script of 701 lines" 7 \
	tests/run "$(seq -f '# %g' 701)"
violate "a statistic of mssab that looks into a run" 8 \
	userspace/mssab/mssab/statistics/stats.py 'from ..run import journal'
violate "a command of mssab that imports a command" 8 \
	userspace/mssab/mssab/commands/grid.py 'from .list import run'
violate "an experiment of mssab that knows the testbed" 8 \
	userspace/mssab/mssab/experiment/cell.py 'from ..testbed.ends import Ends'
violate "a module for all rooms of mssab that imports one" 8 \
	userspace/mssab/mssab/netns.py 'from .experiment import cell'
violate "a command of the tuner that writes" 9 \
	userspace/msstune/msstune/commands/apply.py 'setting.write("1")'
violate "a fact of the tuner that imports a cause" 10 \
	userspace/msstune/msstune/facts/host.py 'from ..causes import plan'
violate "a module for all rooms of the tuner that imports one" 10 \
	userspace/msstune/msstune/units.py 'from .lint import rules'
violate "a home directory in a script" 11 \
	tests/run "cd /ho""me/someone/src"
violate "root's folder in a script" 11 \
	tests/run "cd /ro""ot/src"
exit $bad
