#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Congestion control mssfrac (mssfrac_cc.ko) as a user meets it: restricted,
# allowed, selected in every way, shown, switched, kept while in use, unloaded.
# The deterministic guest judges shares and rates (det_cong.sh).
. "$(dirname "$0")/../../lib.sh"
plan 16

LOAD=$TOP/scripts/load
for file in "$MODULE" "$CC_MODULE"; do
	strip --strip-debug -o "$TMP/${file##*/}" "$file" || exit
done
export MODULE=$TMP/mssfrac.ko
CC_MODULE=$TMP/mssfrac_cc.ko
cc_of() { ip netns exec "$1" sysctl -n net.ipv4.tcp_congestion_control; }
set_cc() { ip netns exec "$1" sysctl -qw net.ipv4.tcp_congestion_control="$2"; }
available() { sysctl -n net.ipv4.tcp_available_congestion_control; }
allowed() { sysctl -n net.ipv4.tcp_allowed_congestion_control; }

# shown PORT: the line of ss -ti for the sender towards this port
shown() { ip netns exec a ss -Htin state established "dport = $1"; }
shows() { shown "$1" | grep -q -w "$2"; }
# The transfer lasts as long as the test needs it: a busy host may take long.
start() {
	tcpload bulk --from a --to b --address 10.9.0.2 --port "$1" \
		--warmup-ms 0 --measure-ms 600000 "${@:2}" &
	sender=$!
}
stop() {
	kill "$sender"
	wait "$sender"
	wait_for 60 gone_from_ss
}
gone_from_ss() { ! ip netns exec a ss -Htan | grep -qv TIME-WAIT; }
# sends PORT CC ARGUMENT...: ss shows that congestion control meanwhile
sends() {
	local status
	start "$1" "${@:3}"
	wait_for 60 shows "$1" "$2"
	status=$?
	shown "$1"
	stop && return $status
}

pair a b 1500
tc -n a qdisc add dev va root netem delay 2ms limit 1000
loaded() { grep -q "^$1 " /proc/modules; }
unload() {
	! loaded mssfrac_cc || rmmod mssfrac_cc
	! loaded mssfrac || rmmod mssfrac
}
defer unload
before=$(available)

# --- Who may ------------------------------------------------------------------

listed() {
	insmod "$CC_MODULE" && grep -w mssfrac <<<"$(available)" &&
		! grep -w mssfrac <<<"$(allowed)"
}
check "after loading it is available, but restricted" listed

# try: set it as nobody; prints ok or the errno's name
try() {
	setpriv --reuid 65534 --clear-groups /usr/bin/python3 -c '
import errno, socket
s = socket.socket()
try:
    s.setsockopt(socket.IPPROTO_TCP, 13, b"mssfrac")
    print("ok", s.getsockopt(socket.IPPROTO_TCP, 13, 16).rstrip(b"\0").decode())
except OSError as e:
    print(errno.errorcode[e.errno])'
}
allow() { sysctl -qw net.ipv4.tcp_allowed_congestion_control="$1"; }
restricted() { is "$(try)" EPERM; }
check "users without privileges cannot select it" restricted
nobody() {
	local was
	was=$(allowed)
	allow "$was mssfrac" && is "$(try)" "ok mssfrac" &&
		allow "$was" && is "$(try)" EPERM &&
		allow "$was mssfrac" && is "$(try)" "ok mssfrac"
}
check "they can select it once root has allowed it" nobody

# --- Selected -----------------------------------------------------------------

unchosen() { is "$(cc_of a)" "$(sysctl -n net.ipv4.tcp_congestion_control)" &&
	! grep mssfrac <<<"$(cc_of a)"; }
check "loading does not select it" unchosen

check "setsockopt selects it, and ss -ti shows it" sends 5100 mssfrac --cc mssfrac

by_sysctl() {
	set_cc a mssfrac && is "$(cc_of b)" "$(sysctl -n \
		net.ipv4.tcp_congestion_control)" && sends 5101 mssfrac
}
check "sysctl selects it for one namespace" by_sysctl

# The module stays as long as a namespace's default, or a socket, needs it.  It
# holds no other: mssfrac.ko, which diverts functions, comes and goes.
held() {
	! rmmod mssfrac_cc 2>"$TMP/err" && grep "in use" "$TMP/err"
}
check "it cannot be unloaded while a namespace's default" held
set_cc a cubic

held_by_socket() {
	local status
	start 5102 --cc mssfrac
	wait_for 60 shows 5102 mssfrac && held &&
		"$LOAD" tx_frac=64 && rmmod mssfrac && shows 5102 mssfrac
	status=$?
	stop && return $status
}
check "it cannot be unloaded while a socket uses it; mssfrac.ko can" held_by_socket

by_route() {
	ip -n a route replace 10.9.0.0/24 dev va congctl mssfrac &&
		sends 5103 mssfrac &&
		ip -n a route replace 10.9.0.0/24 dev va
}
check "a route selects it" by_route

# --- What it must survive -------------------------------------------------------

# Every byte, through loss, duplication and reordering, while the congestion
# control changes in mid-life; over IPv4 and IPv6.
cat >"$TMP/switch.py" <<'PY'
import ctypes, os, socket, sys, threading
libc = ctypes.CDLL(None)
def enter(ns):
    assert not libc.setns(os.open(f"/run/netns/{ns}", 0), 0x40000000)
family, address = {"4": (socket.AF_INET, "10.9.0.2"),
                   "6": (socket.AF_INET6, "fd09::2")}[sys.argv[1]]
data = b"".join(n.to_bytes(4, "big") for n in range(300000))
enter("b")
server = socket.socket(family)
server.bind((address, 5200)); server.listen()
enter("a")
client = socket.socket(family)
client.connect((address, 5200))
peer, _ = server.accept()
def send():
    names = [b"mssfrac", b"cubic", b"mssfrac", b"reno", b"mssfrac", b"mssfrac"]
    for part, name in enumerate(names):
        client.setsockopt(socket.IPPROTO_TCP, 13, name)
        client.sendall(data[part * 200000:(part + 1) * 200000])
    client.shutdown(socket.SHUT_WR)
thread = threading.Thread(target=send)
thread.start()
got = b""
while chunk := peer.recv(65536):
    got += chunk
thread.join()
print(len(got), "bytes" if got == data else "bytes, not those sent")
sys.exit(got != data)
PY
retransmitted() { ip netns exec a awk '/^Tcp:/ { n = $13 } END { print n }' \
	/proc/net/snmp; }
switches() {
	local was
	was=$(retransmitted)
	# Each segment by itself: of a few large packets none may be lost.  TCP
	# makes such packets for a device without GSO too; they are split below
	# netem.
	ip -n a link set va gso_max_segs 1
	tc -n a qdisc replace dev va root netem delay 2ms 1ms loss 2% \
		duplicate 1% limit 1000
	/usr/bin/python3 "$TMP/switch.py" "$1" || return
	[ "$(retransmitted)" -gt "$was" ] || { echo "no loss"; return 1; }
}
check "no byte is lost under loss, reordering and a change of algorithm" switches 4
check "no byte is lost under the same over IPv6" switches 6

# ECN: marks instead of losses must lower the window as losses do.  netem drops
# one SYN in fifty, for that cannot be marked; the kernel would send it again
# without ECN (RFC 3168, section 6.1.1.1).
marked() {
	local status
	ip netns exec a sysctl -qw net.ipv4.tcp_ecn=1 net.ipv4.tcp_ecn_fallback=0
	ip netns exec b sysctl -qw net.ipv4.tcp_ecn=1
	tc -n a qdisc replace dev va root netem delay 2ms loss 2% ecn limit 1000
	start 5104 --cc mssfrac
	wait_for 60 sh -c "ip netns exec a ss -Htin 'dport = 5104' |
		grep 'mssfrac .*ssthresh:.*delivered_ce:'"
	status=$?
	shown 5104
	stop && return $status
}
check "ECN marks end slow start" marked

# With smaller segments by tx_frac at the same time.
with_policy() {
	tc -n a qdisc replace dev va root netem delay 2ms limit 1000
	"$LOAD" && ip netns exec a sysctl -qw net.mssfrac.tx_frac=64 &&
		sends 5105 mssfrac --cc mssfrac --rcvbuf 16000
}
check "it works together with tx_frac" with_policy

# --- The end --------------------------------------------------------------------

gone() {
	local i
	rmmod mssfrac_cc && is "$(available)" "$before" || return 1
	for i in 1 2 3; do
		insmod "$CC_MODULE" && rmmod mssfrac_cc || return 1
	done
	is "$(available)" "$before"
}
check "it unloads once unused, and leaves nothing behind" gone

# In either order, loaded and unloaded beside the other module.
orders() {
	unload && insmod "$CC_MODULE" && insmod "$MODULE" && rmmod mssfrac_cc &&
		insmod "$CC_MODULE" && rmmod mssfrac && insmod "$MODULE" &&
		rmmod mssfrac && rmmod mssfrac_cc
}
check "both modules load and unload in any order" orders

# Some kernels keep a reference to a restricted congestion control that they refuse
# as the default of a namespace (tcp_set_default_congestion_control), and its module
# then stays.  So this is tried last, and on a copy of another name.
refused() {
	LC_ALL=C sed 's/mssfrac/mssfrak/g; s/mssfrak-debug/mssfrac-debug/g' \
		"$CC_MODULE" >"$TMP/mssfrak_cc.ko"
	insmod "$TMP/mssfrak_cc.ko" && ! set_cc a mssfrak 2>"$TMP/err" &&
		grep "not permitted" "$TMP/err" || return 1
	rmmod mssfrak_cc || [[ $(uname -r) =~ ^(6\.1|7\.2)\. ]]
}
check "a namespace cannot make it its default" refused
