#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pathprof --sample 1 while 20,000 connections are opened, each with a byte that
# nobody reads.  pathprof's tables have a fixed size: what finds no room in them
# is counted, and every packet of TCP's is in the account.  CONNECTIONS=N in the
# environment: another number; 100000 take ten minutes.
# guest: --memory 4G
# long: opens 20,000 connections

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/guest/lib/profiles.sh
. "$(dirname "$0")/../lib/profiles.sh"

cd "$TMP" || exit
stage_pathprof || exit
exec 3>&1 # numbers worth seeing even when all is well

COUNT=${CONNECTIONS:-20000}

plan 3

sysctl -qw fs.nr_open=400000 net.core.somaxconn=4096 \
	net.ipv4.tcp_max_syn_backlog=4096 \
	net.ipv4.ip_local_port_range="10000 65000"

# memory_of PID: KB of all BPF maps and programs, and the most that it had itself.
# Nothing else here has any.
memory_of() {
	{
		bpftool -j map show
		bpftool -j prog show
	} | python3 -IS -c 'import json, sys
print(sum(one.get("bytes_memlock", 0) for line in sys.stdin
          for one in json.loads(line)) // 1024)'
	awk '/^VmHWM/ { print $2 }' "/proc/$1/status"
}

# record NAME COUNT: COUNT connections at once, which then close; the memory.
record() {
	local name=$1
	: >ready
	"$PP" record --sample 1 -o "$name" --ready-fd 9 9>ready 2>"$name.err" &
	wait_for 60 test -s ready || return
	python3 -IS - "$2" "$name.open" <<'END' || return
import resource, socket, sys
count = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (2 * count + 100,) * 2)
ends = []
for i in range(0, count, 20000):
    listening = socket.create_server((f"127.0.0.{i // 20000 + 2}", 4000), backlog=4096)
    for _ in range(min(20000, count - i)):
        a = socket.create_connection(listening.getsockname())
        a.send(b"x")
        ends += a, listening.accept()[0]
    listening.close()
print(len(ends) // 2, file=open(sys.argv[2], "w"))
END
	memory_of $! >"$name.memory"
	kill -INT $!
	wait $! || { cat "$name.err"; return 1; }
}

counter() { nstat -asz "$1" | awk -v n="$1" '$1 == n { print $2 }'; }

case_account() {
	local sent
	sent=$(counter TcpOutSegs)
	record many "$COUNT" || return
	sed 's/^/# /' many.err >&3
	fields many '[(k, v) for k, v in a.items() if v]' | sed 's/^/# /' >&3
	# Each is sent and, over loopback, received.
	is "$(cat many.open) $(fields many 'a["unaccounted"], a["sampled"]')" \
		"$COUNT 0 $((2 * ($(counter TcpOutSegs) - sent)))"
}
check "every packet of $COUNT connections is accounted for" case_account

# Expected: what waits unread gives way to newer packets, by that name.
case_losses() {
	is "$(fields many 'a["evicted"] + a["no_slot"] >= '"$COUNT"' - 4096,
		a["stale"]')" "True 0"
}
check "what finds no room is counted by its reason" case_losses

# Expected: the maps are as large as with ten connections; pathprof itself has
# no more than 40 MB.
case_memory() {
	record few 10 || return
	echo "# KB of maps and programs, of pathprof: $(paste -sd ' ' many.memory)," \
		"with 10 connections $(paste -sd ' ' few.memory)" >&3
	is "$(head -1 many.memory)" "$(head -1 few.memory)" &&
		more_than 40960 "$(tail -1 many.memory)" "limit in KB"
}
check "memory does not grow with the connections" case_memory
