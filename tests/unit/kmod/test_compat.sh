#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Kernels that the module does not support are refused in one sentence: by
# kmod/compat.h at build, by scripts/load at load.
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d)
"$top/tests/unit/kmod/kernel-headers" "$tmp/headers"
trap 'rm -rf "$tmp"' EXIT
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

# said CONFIG...: the errors of compat.h on a kernel with these options
said() {
	echo '#include "compat.h"' | gcc -E -o /dev/null "${@/#/-DCONFIG_}" \
		-I"$top/kmod" -I"$tmp/headers" - 2>&1 |
		sed -n 's/.*error: #error "\(.*\)"/\1/p'
}
supported=(X86_64 DYNAMIC_FTRACE_WITH_ARGS KPROBES)

echo "KTAP version 1"
echo "1..5"
verdict "a supported kernel is accepted" "$(said "${supported[@]}")" ""
rt="mssfrac does not support PREEMPT_RT: its probes take locks that sleep there"
verdict "PREEMPT_RT is refused at build" "$(said "${supported[@]}" PREEMPT_RT)" "$rt"
verdict "a kernel without kprobes is refused at build" \
	"$(said X86_64 DYNAMIC_FTRACE_WITH_ARGS)" \
	"mssfrac needs CONFIG_KPROBES to find the functions it diverts"

printf '#!/bin/sh\necho "#1 SMP PREEMPT_RT Debian 6.1"\n' >"$tmp/uname"
printf '#!/bin/sh\necho 0\n' >"$tmp/id"
chmod +x "$tmp"/*
loaded=$(PATH=$tmp:$PATH "$top/scripts/load" 2>&1)
verdict "and at load, with status 3" "$?" 3
verdict "in one sentence" "$loaded" "load: mssfrac does not support PREEMPT_RT, and this kernel has it: its probes take locks that sleep there"
exit $bad
