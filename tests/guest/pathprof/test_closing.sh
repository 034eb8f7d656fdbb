#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# How pathprof says that a packet ended which no reader copied: taken by splice(),
# left unread by close(), a FIN of a connection that was closed here first, refused by
# a listener.  Each is compared with what the program did, or the kernel's counters.
# Runs in one guest.

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/guest/lib/profiles.sh
. "$(dirname "$0")/../lib/profiles.sh"

cd "$TMP" || exit
stage_pathprof || exit
ip link set lo up

# recorded NAME PROGRAM [OPTION...]: every packet of a program in Python.
recorded() {
	local name=$1 program=$2
	shift 2
	"$PP" record --sample 1 --dir rx --port 4041 -o "$name.json" "$@" -- \
		python3 -IS -c "$program"
}

plan 5

first_close='
import socket
listener = socket.create_server(("127.0.0.1", 4041))
for i in range(10):
    client = socket.create_connection(("127.0.0.1", 4041))
    server = listener.accept()[0]
    client.sendall(b"x")
    server.recv(9)
    server.close()
    client.recv(9)
    client.close()
'
# Steps: the server closes first, ten times.
# Expected: nothing is dropped, as no counter of the kernel says so.
case_first_close() {
	recorded close "$first_close" &&
		is "$(fields close.json 'a["dropped"], n("rx", "fin") >= 20')" "0 True"
}
check "the FIN of a connection that was closed here first is used" case_first_close

splices='
import os, socket
listener = socket.create_server(("127.0.0.1", 4041))
client = socket.create_connection(("127.0.0.1", 4041))
server = listener.accept()[0]
r, w = os.pipe()
for i in range(20):
    client.sendall(b"x" * 1000)
    got = 0
    while got < 1000:
        got += os.splice(server.fileno(), w, 1000 - got)
    os.read(r, 1000)
server.close()
'
# Steps: 20 packets of 1000 bytes, each taken by splice() before the next.
# Expected: 20 packets were read.
case_splice() {
	recorded splice "$splices" &&
		is "$(fields splice.json 'n("rx", "data", "delivered"),
			n("rx", "data", "unread"), n("rx", "data")')" "20 0 20"
}
check "data that a reader splices was read" case_splice

unread='
import socket
listener = socket.create_server(("127.0.0.1", 4041))
for i in range(6):
    client = socket.create_connection(("127.0.0.1", 4041))
    server = listener.accept()[0]
    client.sendall(b"x" * 1000)
    server.close()
    client.close()
'
# Steps: the server closes without reading, six times.
# Expected: six packets unread.  Nothing reports when close() frees them: only the next
# packet with the address shows it, so the last one may still be followed.
case_unread() {
	recorded unread "$unread" &&
		is "$(fields unread.json 'n("rx", "data", "unread") >= 5,
			n("rx", "data", "unread") + n("rx", "data", "in flight"),
			n("rx", "data")')" "True 6 6"
}
check "data that a socket is closed with is unread" case_unread

unread_udp='
import socket
server = socket.socket(type=socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 4041))
client = socket.socket(type=socket.SOCK_DGRAM)
for i in range(7):
    client.sendto(b"x", ("127.0.0.1", 4041))
server.recv(9)
server.recv(9)
server.close()
'
# Steps: two of seven datagrams are read.
# Expected: the others are unread, and not dropped.
case_unread_udp() {
	recorded udp "$unread_udp" --udp &&
		is "$(fields udp.json 'n("rx", "udp", "delivered"),
			n("rx", "udp", "unread"), a["dropped"]')" "2 5 0"
}
check "so are datagrams" case_unread_udp

refused='
import socket, time
listener = socket.create_server(("127.0.0.1", 4041), backlog=0)
held = [socket.socket() for i in range(4)]
for one in held:
    one.setblocking(False)
    one.connect_ex(("127.0.0.1", 4041))
    time.sleep(0.1)
time.sleep(1.5)
'
listen_drops() { nstat -asz TcpExtListenDrops | awk '/Drops/ { print $2 }'; }
# Steps: more connections than a listener takes.
# Expected: as many drops as ListenDrops, by a name.
case_refused() {
	local before
	before=$(listen_drops)
	recorded refused "$refused" || return
	is "$(fields refused.json 'a["dropped"]')" "$(($(listen_drops) - before))" &&
		more_than "$(fields refused.json 'a["dropped"]')" 1 drops &&
		"$PP" report refused.json | grep 'drop:refused_by_listener'
}
check "what a listener refuses is a drop, and has a name" case_refused
