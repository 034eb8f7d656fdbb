#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The two editions of the congestion control, mssfrac_cc.ko and
# mssfrac_cc.bpf.o, take the same decisions: each load runs once under either,
# and what every ACK leaves behind must be equal to the byte.  That is snd_cwnd,
# snd_ssthresh, the pacing rate, and all that the congestion control stores.
#
# The editions are compiled by different compilers, so an ACK takes one of them a
# few hundred ns more.  Where times differ by a microsecond, windows soon differ
# by a step.  Therefore this runs in the guest whose clock advances at timer
# interrupts only, where both read the same times.  Data is queued at once and
# never read, so that no process takes part while packets travel.
. "$(dirname "$0")/../../lib.sh"
. "$(dirname "$0")/../lib/topology.sh"
case $(uname -r) in
6.1.*) skip_all "the BPF edition is for Linux 6.12 and newer" ;;
esac
plan 9

OBJECT=$TOP/build/bpf/mssfrac_cc.bpf.o
TAINTED=/proc/sys/kernel/tainted

# --- Loading --------------------------------------------------------------------

available() { sysctl -n net.ipv4.tcp_available_congestion_control; }
allowed() { sysctl -n net.ipv4.tcp_allowed_congestion_control; }
taint=$(cat $TAINTED)
echo "# taint before: $taint"
loads() {
	bpftool struct_ops register "$OBJECT" &&
		grep -w mssfrac_bpf <<<"$(available)" &&
		is "$(cat $TAINTED)" "$taint"
}
check "one command loads it, which does not taint the kernel" loads
defer "bpftool struct_ops unregister name mssfrac_bpf"

# try: set it as nobody; prints ok or the errno's name
try() {
	setpriv --reuid 65534 --clear-groups /usr/bin/python3 -IS -c '
import errno, socket
try:
    socket.socket().setsockopt(socket.IPPROTO_TCP, 13, b"mssfrac_bpf")
    print("ok")
except OSError as e:
    print(errno.errorcode[e.errno])'
}
allow() { sysctl -qw net.ipv4.tcp_allowed_congestion_control="$1"; }
restricted() {
	local was
	was=$(allowed)
	! grep -w mssfrac_bpf <<<"$was" && is "$(try)" EPERM &&
		allow "$was mssfrac_bpf" && is "$(try)" ok && allow "$was"
}
check "users without privileges select it once root has allowed it" restricted

insmod "$CC_MODULE" || exit
defer "rmmod mssfrac_cc"

# --- The path: a - r - b, 20 ms, 6 Mbit/s ----------------------------------------

host a r b
cable a va r ra
cable r rb b vb
for device in a:va:10.8.1.1 r:ra:10.8.1.2 r:rb:10.8.2.2 b:vb:10.8.2.1; do
	IFS=: read -r ns dev address <<<"$device"
	ip -n "$ns" addr add "$address/24" dev "$dev"
	ip netns exec "$ns" ethtool -K "$dev" tso off gso off gro off >/dev/null
done
neighbours a va 10.8.1.1 r ra 10.8.1.2
neighbours r rb 10.8.2.2 b vb 10.8.2.1
ip -n a route add default via 10.8.1.2
ip -n b route add default via 10.8.2.2
ip netns exec a sysctl -qw net.ipv4.tcp_no_metrics_save=1
ip netns exec r nft -f - <<-END
	table ip t {
		chain forward { type filter hook forward priority 0; }
	}
END
# In a tick of 4 ms tbf sends its burst, two segments.
full_queue() {
	tc -n r qdisc replace dev rb root tbf rate 20mbit burst 3200 limit 50000
}
# dropping EXPRESSION: the router drops the data segments that it selects
dropping() {
	full_queue && ip netns exec r nft "add rule ip t forward iifname ra \
		meta length gt 500 $1 drop"
}
single_losses() { dropping "numgen inc mod 61 == 0"; }
loss_bursts() { dropping "numgen inc mod 150 < 8"; }
# Every 40th segment overtakes those of the last 12 ms.
reordering() {
	tc -n r qdisc replace dev rb root netem delay 12ms reorder 100% gap 40 \
		limit 10000
}
# path NAME: as if it had never been used
path() {
	tc -n r qdisc del dev rb root 2>/dev/null
	tc -n b qdisc del dev vb root 2>/dev/null
	ip netns exec r nft flush chain ip t forward &&
		tc -n b qdisc replace dev vb root netem delay 20ms limit 10000 &&
		"$1"
}

# --- One connection ---------------------------------------------------------------

# Writes of these sizes, with as many SECONDS after each.  The receiver reads when
# all is acknowledged.  Before each write the sender takes the next congestion
# control of the list, if there is one.
cat >"$TMP/send.py" <<'PY'
import ctypes, fcntl, os, socket, struct, sys, time
names, port, seconds = sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3])
sizes = [int(size) for size in sys.argv[4:]]
libc = ctypes.CDLL(None)
def enter(ns):
    assert not libc.setns(os.open(f"/run/netns/{ns}", 0), 0x40000000)
def unacknowledged():
    return struct.unpack("i", fcntl.ioctl(client, 0x5411, bytes(4)))[0]
def select(name):
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
RCVBUFFORCE, SNDBUFFORCE = 33, 32
enter("b")
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, 1 << 25)
server.bind(("10.8.2.1", port))
server.listen()
data = b"".join(n.to_bytes(4, "big") for n in range(sum(sizes) // 4))
enter("a")
client = socket.socket()
client.setsockopt(socket.SOL_SOCKET, SNDBUFFORCE, 1 << 25)
select(names.pop(0))
time.sleep(0.01)  # ends with a tick: none passes while the SYN is sent
client.connect(("10.8.2.1", port))
peer, _ = server.accept()
at = 0
for size in sizes:
    client.sendall(data[at:at + size])
    at += size
    time.sleep(seconds)  # what is tested: idle time
    if names:
        select(names.pop(0))
for _ in range(200):
    if not unacknowledged():
        break
    time.sleep(1)  # polling interval
assert not unacknowledged()
client.shutdown(socket.SHUT_WR)
got = b""
while chunk := peer.recv(1 << 20):
    got += chunk
peer.close()
assert not client.recv(1)
time.sleep(1)  # the last ACK arrives: it would be a packet of the next path
print(len(got), "bytes" if got == data else "bytes, not those sent")
sys.exit(got != data)
PY
# transfer PATH CC PORT SECONDS SIZE...
transfer() { path "$1" && /usr/bin/python3 -IS "$TMP/send.py" "${@:2}"; }

mkfifo "$TMP/end"
"$TOP/build/tests/trajectory" "$TOP/build/tests/trajectory.bpf.o" 6400 6499 \
	<"$TMP/end" >"$TMP/acks" 2>"$TMP/recorder" &
recorder=$!
exec 8>"$TMP/end"
wait_for 60 grep -q recording "$TMP/recorder" || cat "$TMP/recorder"

# both PATH PORT SECONDS SIZE...: the module on PORT, BPF on the next
both() {
	transfer "$1" mssfrac "${@:2}" 8>&- &&
		transfer "$1" mssfrac_bpf $(($2 + 1)) "${@:3}" 8>&-
}
both full_queue 6400 1 3000000
both single_losses 6410 1 1000000
both loss_bursts 6420 1 600000
both reordering 6430 1 1500000
both full_queue 6440 3 200000 200000 20000 200000
exec 8>&-
wait $recorder
cat "$TMP/recorder"

# --- The comparison ---------------------------------------------------------------

# of PORT: the lines of a connection, without the port.  The first holds what the
# handshake left, with the time at which the process called connect().
of() {
	awk -v port="$1" '$1 == port && n++ { sub(/^[0-9]+ /, ""); print }' \
		"$TMP/acks"
}
# same PORT CONDITION: no ACK differs; and by CONDITION, of awk, the load was
# what it is called
same() {
	of "$1" >"$TMP/module"
	of $(($1 + 1)) >"$TMP/bpf"
	awk -v port="$1" "
		NR == 1 { for (i = 1; i <= NF; i++) c[\$i] = i; next }
		\$1 == port { acks++; if ($2) found++ }
		END { print acks + 0, \"ACKs,\", found + 0, \"of the load's kind\"
		exit acks < 200 || !found }" "$TMP/acks" || return
	cmp "$TMP/module" "$TMP/bpf" && return
	head -n 1 "$TMP/acks" | cut -d ' ' -f 2-
	diff "$TMP/module" "$TMP/bpf" | head -n 20
	return 1
}
compare() {
	check "$@"
	head -n 1 "$TMP/out" | sed 's/^/# /'
}
# shellcheck disable=SC2016 # awk's
{
	compare "same windows, a full queue" same 6400 '$c["ca_state"] == 3'
	compare "same windows, single losses" same 6410 '$c["pacing_status"]'
	compare "same windows, bursts of losses" same 6420 '$c["ca_state"] == 3'
	compare "same windows, reordering" same 6430 '$c["undo_win"]'
	compare "same windows, idle times" same 6440 '$c["us"] > 4000000'
}
# --- The end ----------------------------------------------------------------------

switches() {
	transfer single_losses \
		mssfrac_bpf,cubic,mssfrac_bpf,mssfrac,mssfrac_bpf 6300 0 \
		200000 200000 200000 200000 200000
}
check "no byte is lost when the congestion control changes in mid-life" switches

gone() {
	taint=$(cat $TAINTED) # the module's, by now
	bpftool struct_ops unregister name mssfrac_bpf &&
		! grep -w mssfrac_bpf <<<"$(available)" && loads
}
check "it unregisters, and registers again" gone
