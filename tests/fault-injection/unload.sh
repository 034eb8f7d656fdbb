#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Loads and unloads the module while connections begin, end and are disconnected.
# The kernel can preempt a probe in tcp_disconnect() since 7.2, so that the module
# may end the same connection meanwhile.  MSSFRAC_STRESS=N sets the number of loads.
. "$(dirname "$0")/../lib.sh"
plan 1

ROUNDS=${MSSFRAC_STRESS:-5}
# Loaded often: keep it in memory, without what only a debugger reads.
strip --strip-debug -o "$TMP/mssfrac.ko" "$MODULE" || exit
unload() { ! grep -q "^mssfrac " /proc/modules || rmmod mssfrac; }
defer unload

# Six clients and a server, which ends them when it ends.  They get the time that
# is left: so they are preempted anywhere, and no round waits for them.
nice -n 19 /usr/bin/python3 -c '
import ctypes, os, signal, socket, struct

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)
server = socket.create_server(("127.0.0.1", 0), backlog=64)

def client():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    unspecified = struct.pack("H14x", socket.AF_UNSPEC)
    while True:
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        for _ in range(3):
            one.connect(server.getsockname())
            one.send(b"x")
            libc.connect(one.fileno(), unspecified, 16)
        one.close()

for _ in range(6):
    if not os.fork():
        client()
while True:
    server.accept()[0].close()
' &
load=$!
defer "kill $load"

come_and_go() {
	local i
	for ((i = 0; i < ROUNDS; i++)); do
		insmod "$TMP/mssfrac.ko" tx_frac=$((i % 3)) && sleep 0.2 &&
			rmmod mssfrac && kill -0 $load || return 1
	done
	echo "$i loads"
}
check "$ROUNDS loads and unloads while connections end" come_and_go
