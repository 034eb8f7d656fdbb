#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Congestion control mssfrac beside others on one bottleneck, in the
# deterministic guest: fair shares, use of the link, loss, and what idle time
# does to the window.
#
# Tail drop synchronises flows: a full queue drops from several at once, which
# then grow together, so few flows of one round trip time share unevenly for
# long.  Hence the seed's start times, and shares over many such periods.
#
# long: flows compete over many periods of the queue, minutes of virtual time
. "$(dirname "$0")/../../lib.sh"
. "$(dirname "$0")/bottleneck.sh"
plan 6

insmod "$CC_MODULE" || exit
defer "rmmod mssfrac_cc"
bottleneck 20 20 || exit

# jain FLOOR RATE...: (sum x)^2 / (n * sum x^2), 1 being equal shares
jain() {
	awk -v floor="$1" -v rates="${*:2}" 'BEGIN {
		n = split(rates, x, " ")
		for (i in x) { sum += x[i]; squares += x[i] * x[i] }
		index_ = n && squares ? sum * sum / (n * squares) : 0
		printf "Jain index %.3f: %s\n", index_, rates
		exit index_ < floor
	}'
}
# at_least SHARE RATE OF: RATE is that share of OF
at_least() {
	awk -v share="$1" -v rate="$2" -v of="$3" 'BEGIN {
		printf "%d of %d: %.3f\n", rate, of, of ? rate / of : 0
		exit !of || rate < share * of
	}'
}
SEED=1
# shellcheck disable=SC2046 # one rate, one word
fair() { jain 0.95 $(flows $SEED 3000 40000 "$@"); }
check "two and two cubic share" fair mssfrac mssfrac cubic cubic
check "two and two reno share" fair mssfrac mssfrac reno reno
check "four share" fair mssfrac mssfrac mssfrac mssfrac

alone() {
	at_least "$1" "$(flows $SEED 3000 "$2" mssfrac)" \
		"$(flows $SEED 3000 "$2" cubic)"
}
check "alone it uses what cubic uses" alone 0.97 5000

# Random loss of 1 % instead of a full queue: windows of some 15 segments.
tc -n a qdisc add dev va root netem loss 1% limit 1000
check "with 1 % loss it is not far from cubic" alone 0.8 10000
tc -n a qdisc del dev va root

# 20 s of idle time must not let the window leap along the curve.
cat >"$TMP/idle.py" <<'PY'
import ctypes, os, socket, struct, sys, threading, time
libc = ctypes.CDLL(None)
def enter(ns):
    assert not libc.setns(os.open(f"/run/netns/{ns}", 0), 0x40000000)
def window():
    return struct.unpack_from("I", client.getsockopt(6, 11, 104), 80)[0]
def send(size):
    client.sendall(bytes(size))
    while sent_but_unread():
        time.sleep(0.01)  # polling interval
def sent_but_unread():
    with lock:
        return taken[0] < total[0]
def drain():
    while chunk := peer.recv(65536):
        with lock:
            taken[0] += len(chunk)
lock, taken, total = threading.Lock(), [0], [0]
enter("b")
server = socket.socket()
server.bind(("10.8.2.1", 6100)); server.listen()
enter("a")
client = socket.socket()
client.setsockopt(6, 13, b"mssfrac")
client.connect(("10.8.2.1", 6100))
peer, _ = server.accept()
threading.Thread(target=drain, daemon=True).start()
total[0] = 6000000
send(6000000)
before = window()
time.sleep(20)  # what is tested
total[0] += 400000
send(400000)
after = window()
print("segments before and after:", before, after)
sys.exit(before < 10 or after > before * 3 // 2 or after < before // 4)
PY
# The module is in use until the last connection has closed.
closed() { ! ip netns exec a ss -Htan | grep -qv TIME-WAIT; }
idle() {
	ip netns exec a sysctl -qw net.ipv4.tcp_slow_start_after_idle=0 &&
		/usr/bin/python3 "$TMP/idle.py" && wait_for 20 closed
}
check "idle time does not move the curve" idle
