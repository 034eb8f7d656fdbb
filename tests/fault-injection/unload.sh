#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Loads and unloads the module while connections open, end and are disconnected.
# In tcp_disconnect() the probe of a tracepoint can be preempted since 7.2, and
# unloading meets it there.  MSSFRAC_STRESS=N sets the number of loads.
. "$(dirname "$0")/../lib.sh"
plan 1

ROUNDS=${MSSFRAC_STRESS:-5}
# Loaded often: keep it in memory, without what only a debugger reads.
strip --strip-debug -o "$TMP/mssfrac.ko" "$MODULE" || exit
defer '! grep -q "^mssfrac " /proc/modules || rmmod mssfrac'

/usr/bin/python3 -c '
import os, socket, struct
server = socket.create_server(("127.0.0.1", 0), backlog=64)
for _ in range(6):
    if not os.fork():
        break
else:
    while True:
        server.accept()[0].close()
unspecified = struct.pack("H14x", socket.AF_UNSPEC)
import ctypes
libc = ctypes.CDLL(None)
while True:
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    for _ in range(3):
        one.connect(server.getsockname())
        one.send(b"x")
        libc.connect(one.fileno(), unspecified, 16)
    one.close()
' &
defer "kill $!"

come_and_go() {
	local i
	for ((i = 0; i < ROUNDS; i++)); do
		insmod "$TMP/mssfrac.ko" tx_frac=$((i % 3)) && sleep 0.2 &&
			rmmod mssfrac && kill -0 %1 || return 1
	done
	echo "$i loads"
}
check "$ROUNDS loads and unloads while connections end" come_and_go
