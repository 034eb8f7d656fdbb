#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pathprof against the kernel's own counters: every packet on the right path,
# none lost unseen, nothing left behind.  Runs in one guest.

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/guest/lib/profiles.sh
. "$(dirname "$0")/../lib/profiles.sh"

cd "$TMP" || exit
stage_pathprof || exit
exec 3>&1 # numbers worth seeing even when all is well

# at NETNS COMMAND...: "-" is here.
at() {
	if [ "$1" = - ]; then
		"${@:2}"
	else
		ip netns exec "$@"
	fi
}

# counters FILE NETNS...: kernel counters, summed over namespaces.
counters() {
	local ns out=$1
	shift
	for ns; do
		at "$ns" cat /proc/net/netstat /proc/net/snmp
	done | awk '
		/^(TcpExt|Tcp):/ {
			if ($1 in head && head[$1] != "") {
				n = split(head[$1], name)
				for (i = 2; i <= n; i++)
					sum[$1 name[i]] += $i
				head[$1] = ""
			} else
				head[$1] = $0
		}
		END { for (i in sum) print i, sum[i] }' >"$out"
}

# grew NAME...: by how much counters grew from "before" to "after".
grew() {
	awk -v names="$*" 'FNR == NR { old[$1] = $2; next } { new[$1] = $2 }
		END {
			n = split(names, name)
			for (i = 1; i <= n; i++)
				printf "%d%s", new[name[i]] - old[name[i]],
					i < n ? " " : "\n"
		}' before after
}

# near SEEN WANTED N: SEEN, if it is at most N below what was wanted.
near() {
	if [ "$1" -le "$2" ] && [ $(($2 - $1)) -le "$3" ]; then
		echo "$1"
	else
		echo "$2"
	fi
}

# The sums that must match the kernel, and the account.  The kernel skips a
# program that an interrupt nests into itself; these calls it counts, and each
# may be one difference.  Without any, equality is exact.  Since 6.7 a delayed ACK
# that had to wait for the socket's owner (DelayedACKLocked) looks like another.
matches_kernel() {
	local line missed late seen lost='("evicted", "stale", "no_slot",
		"map_full", "abandoned", "sock_clash")'
	{ read -r missed && read -r line; } < <(fields "$1" \
		'sum(h["missed"] for h in p["hooks"])' \
		'n("rx", "fast", "data"), n("hpack"), n("pureack"),
		n("tx", "retransmit", k="segments"), n("rx", "ooo"),
		joined(True), joined(False), n("fact delayed ack"),
		n("rx") - n("rx", "merged"),
		n("tx", k="segments") -
		n("tx", "retransmit", "@transmit", k="segments"),
		a["unaccounted"],
		sum(a[i] for i in '"$lost"')') || return
	[ "$missed" -eq 0 ] || echo "# $missed calls missed" >&3
	echo "# HPHits HPAcks PureAcks RetransSegs OFOQueue RcvCoalesce" \
		"BacklogCoalesce DelayedACKs InSegs OutSegs unaccounted" \
		"lost: $line" >&3
	[[ $line = *" 0" ]] ||
		fields "$1" '[(i, a[i]) for i in '"$lost"' if a[i]]' \
			'[(x["flags"], [names[i] for i in x["stages"]])
			for x in p["paths"] if x["end"] in ("stale", "evicted")]'
	read -ra seen <<<"$line"
	late=$(near "${seen[7]}" "$(grew TcpExt:DelayedACKs)" \
		"$(grew TcpExt:DelayedACKLocked)")
	within "$missed" "$line" "$(grew TcpExt:TCPHPHits TcpExt:TCPHPAcks \
		TcpExt:TCPPureAcks Tcp:RetransSegs TcpExt:TCPOFOQueue \
		TcpExt:TCPRcvCoalesce TcpExt:TCPBacklogCoalesce) $late $(
		grew Tcp:InSegs Tcp:OutSegs) 0 0"
}

# within N "A B ..." "A B ...": no pair differs by more than N.
within() {
	local a b i
	echo "got '$2', wanted '$3' within $1"
	read -ra a <<<"$2"
	read -ra b <<<"$3"
	for i in "${!b[@]}"; do
		[ $((a[i] - b[i])) -le "$1" ] && [ $((b[i] - a[i])) -le "$1" ] ||
			return 1
	done
}

# stage_times FILE: each stage has as many times as packets that came through.
stage_times() {
	is "$(fields "$1" '[s["name"] for s in p["stages"] if
		sum(s.get("times", {"histogram": []})["histogram"]) !=
		sum(x["packets"] * x["stages"].count(s["id"])
		    for x in p["paths"] if x["end"] != "in flight")],
		sum("times" in s for s in p["stages"]) > 5')" "[] True"
}

# some FILE WORDS...: each of these sets of words has packets.
some() {
	local file=$1 words got asked=()
	shift
	for words; do asked+=("n($words)"); done
	fields "$file" "${asked[@]}" >found || return
	while read -r got; do
		more_than "$got" 0 "$1" || return
		shift
	done <found
	is $# 0
}

listening() { ss -Hltn | grep -q ":$1 "; }
# over NETNS...: no connection there can still send.  After its program has ended, a
# connection sends until the peer has acknowledged everything, including the FIN.
# In TIME-WAIT it only answers.
over() {
	local ns left
	for ns; do
		left=$(at "$ns" ss -Htan state connected exclude time-wait) ||
			return
		[ -z "$left" ] || return
	done
}
in_ns_listening() { ip netns exec "$1" ss -Hltn | grep -q ":$2 "; }

plan 19

# Steps: list the stages, as root and as nobody.
# Expected: at least 12 receive and 8 transmit stages are there.
case_list() {
	local out
	out=$("$PP" list) || return
	more_than "$(grep -cE '^rx +[^ ]+ +yes' <<<"$out")" 11 "rx stages" &&
		more_than "$(grep -cE '^tx +[^ ]+ +yes' <<<"$out")" 7 \
			"tx stages" || return
	is "$(setpriv --reuid 65534 --clear-groups "$PP" list)" "$out"
}
check "list shows the stages of this kernel" case_list

# Steps: 23 packets on one port and 40 on another; the filter names the first.
# Expected: exactly 23 data packets received and 23 sent, none of the others.
case_filter() {
	"$PP" record --sample 1 -o f.json --port 4023 -- bash -c "
		$(declare -f ping_pong)
		ping_pong 4023 23 127.0.0.1 4040 40 127.0.0.1" || return
	fields f.json 'n("rx", "data"), n("tx", "data"), a["unaccounted"]' \
		'p["counters"]["filtered"]' >got || return
	is "$(head -1 got)" "23 23 0" &&
		more_than "$(tail -1 got)" 80 filtered
}
check "23 packets are 23 packets, and other ports are left out" case_filter

# Steps: bulk transfer over loopback with every packet followed.
# Expected: the kernel's counts, exactly.
case_loopback() {
	iperf3 -s -1 -D
	wait_for 20 listening 5201 || return
	counters before -
	"$PP" record --sample 1 -o lo.json -- bash -c "
		$(declare -f wait_for at over)
		iperf3 -c 127.0.0.1 -n 4M && wait_for 60 over -" || return
	counters after -
	matches_kernel lo.json && more_than "$(grew TcpExt:TCPHPHits)" 0 HPHits
}
check "loopback: counts equal the kernel's" case_loopback

# Steps: two namespaces; delay, loss and reordering on the way; transfers of
# IPv4 and IPv6; the recording goes on until both ends have closed.
# Expected: fast and slow paths, backlog, retransmissions and reordering all
# occur, and all counts equal the kernel's.
case_veth() {
	pair a b 1500
	tc -n a qdisc add dev va root netem delay 2ms loss 5% \
		reorder 75% 50% || return
	ip netns exec b iperf3 -s -D -I "$TMP/server"
	defer 'kill $(cat "$TMP/server")'
	wait_for 20 in_ns_listening b 5201 || return
	counters before - a b
	"$PP" record --sample 1 -o veth.json -- bash -c "
		$(declare -f wait_for at over)
		ip netns exec a iperf3 -c 10.9.0.2 -n 2M &&
		ip netns exec a iperf3 -c fd09::2 -n 1M &&
		wait_for 60 over a b" || return
	counters after - a b
	matches_kernel veth.json || return
	some veth.json '"rx","fast","data","v4"' '"rx","slow","data","v4"' \
		'"rx","fast","data","v6"' '"rx","ooo"' '"tx","retransmit"' \
		'"tx","@qdisc"' '"tx","dropped"'
}
check "veth with loss and reordering: counts equal the kernel's" case_veth

# Steps: a reader that owns its socket while packets arrive.
# Expected: packets that waited in the backlog are among those that matched.
case_backlog() {
	more_than $(($(fields veth.json 'n("rx", "backlog")') + $(
		fields lo.json 'n("rx", "backlog")'))) 0 backlog
}
check "packets processed in process context are among them" case_backlog

# Steps: GRO at the receiver, segments from the sender.
# Expected: merged packets, super-packets, and still the kernel's counts.
case_gro() {
	tc -n a qdisc del dev va root
	ip netns exec a ethtool -K va tso off gso off || return
	ip netns exec b ethtool -K vb gro on || return
	counters before - a b
	"$PP" record --sample 1 -o gro.json -- bash -c "
		$(declare -f wait_for at over)
		ip netns exec a iperf3 -c 10.9.0.2 -n 2M &&
		wait_for 60 over a b" || return
	counters after - a b
	matches_kernel gro.json || return
	# iperf3's server has an IPv6 socket.
	is "$(fields gro.json 'n("v6")')" 0 || return
	some gro.json '"merged"' '"rx","gro","data"'
}
check "GRO: counts equal the kernel's" case_gro

# Steps: follow 1 in 8 of all packets of a transfer.
# Expected: the share is within 5 standard deviations of 1/8; of each of them each
# stage's time is kept.
case_sampling() {
	local before after
	before=$(ip netns exec b cat /sys/class/net/vb/statistics/rx_packets)
	"$PP" record -o s.json --sample 8 --stage-times -- ip netns exec a iperf3 \
		-c 10.9.0.2 -n 3M || return
	after=$(ip netns exec b cat /sys/class/net/vb/statistics/rx_packets)
	# rx at b alone: what a receives comes on another device.
	fields s.json "(lambda n, k: 'ok' if n > 500 and abs(k - n / 8) <
		5 * (n * 7 / 64) ** .5 else 'sampled %d of %d' % (k, n))(
		$((after - before)), n('rx', '@gro'))" 'a["unaccounted"]' >got
	is "$(cat got)" $'ok\n0' && stage_times s.json
}
check "1 in 8 packets is 1 in 8 packets" case_sampling

# Steps: record, report, report --json twice.
# Expected: JSON survives a round trip; the text fits 80 columns.
case_report() {
	"$PP" report --json veth.json >1.json && "$PP" report --json 1.json \
		>2.json && cmp 1.json 2.json || return
	"$PP" report veth.json >text && "$PP" report --detail lo.json >>text ||
		return
	is "$(awk 'length > 80' text)" "" &&
		more_than "$(grep -c 'rx fast data' text)" 0 rows
}
check "a report round-trips and fits 80 columns" case_report

# Steps: one frame of top during a transfer.
# Expected: rows, the account, 80 columns.
case_top() {
	local load
	ip netns exec a iperf3 -c 10.9.0.2 -t 60 -b 20M >/dev/null &
	load=$!
	"$PP" --top --once --sample 1 -i 1 >frame || return
	kill $load 2>/dev/null
	sed 's/^/# /' frame | head -12 >&3
	is "$(awk 'length > 80' frame)" "" &&
		more_than "$(grep -cE '^ *[0-9.]+ +[0-9.]+ .* rx ' frame)" 0 \
			rows && grep -q '^Account: ' frame
}
check "top --once prints a frame" case_top

tm() { tmux -S "$TMP/tmux" -f /dev/null "$@"; }
screen_has() { tm capture-pane -p >screen && grep -qE -- "$1" screen; }
# Steps: the live screen during a transfer, and `g` for each further group.
# Expected: rows for the port, for both devices and both namespaces.
case_groups() {
	local load by row rc=0
	ip netns exec a iperf3 -c 10.9.0.2 -t 60 -b 20M >/dev/null &
	load=$!
	tm new-session -d -x 80 -y 40 "$PP top --sample 1 -i 1" || return
	while read -r by row && [ $rc = 0 ]; do
		wait_for 30 screen_has "^By $by," &&
			wait_for 30 screen_has "[0-9KM-]  $row\$" || rc=1
		tm send-keys g
	done <<-EOF
		path rx .*
		stage rx .*
		end rx .*
		port port 5201
		device v[ab]@[ab]
		namespace [ab]
	EOF
	kill $load
	sed 's/^/# /' screen
	tm kill-server
	return $rc
}
check "top groups by port, device and namespace" case_groups

# Steps: record one address of the loopback; 5 packets to another, 7 to it;
# interrupt.  Expected: status 0, the file valid, exactly the 7 in it.
case_interrupt() {
	local pid
	mkfifo ready
	"$PP" record --sample 1 -o int.json --addr 127.0.0.7 --ready-fd 9 9>ready &
	pid=$!
	read -r _ <ready
	ping_pong 4024 5 127.0.0.1 4025 7 127.0.0.7
	kill -INT $pid
	wait $pid || return
	is "$(fields int.json 'n("rx", "data"), n("tx", "data")')" "7 7"
}
check "an interrupted recording by address is complete" case_interrupt

# Steps: all hooks, on packets of both families; the verifier's work is in the
# debug output.  Expected: none refused, all small, the ping-pong exact.
case_fine() {
	PATHPROF_DEBUG=1 "$PP" record --sample 1 --fine --udp --port 4026 \
		-o fine.json -- bash -c "
		$(declare -f ping_pong)
		ping_pong 4026 5 127.0.0.1 4026 5 127.0.0.2" 2>debug || return
	awk '/ instructions verified$/ { sub(":", "", $1); print $2, $1 }' \
		debug | sort -n >verified
	sed 's/^/# verified: /' verified | tail -3 >&3
	more_than "$(wc -l <verified)" 35 programs || return
	awk '$1 > 65536 { print "too many: " $0; bad = 1 } END { exit bad }' \
		verified || return
	is "$(fields fine.json 'n("rx", "data", "@queue"), n("tx", "data"),
		sum(h["state"] == "failed" for h in p["hooks"]),
		p["config"]["fine"] and p["config"]["udp"]')" "10 10 0 True"
}
check "all hooks attach, and the verifier finds them small" case_fine

# Steps: bulk transfer over loopback with all hooks.
# Expected: the kernel's count of what was predicted, and none that went the slow
# way for no known reason (tests/bisect/slow-1.patch makes such).
case_way() {
	iperf3 -s -1 -D
	wait_for 20 listening 5201 || return
	counters before -
	"$PP" record --sample 1 --fine -o way.json -- bash -c "
		$(declare -f wait_for at over)
		iperf3 -c 127.0.0.1 -n 4M && wait_for 60 over -" || return
	counters after -
	within 0 "$(fields way.json 'n("rx", "fast", "data"), n("hpack"),
		n("fact unknown test")')" \
		"$(grew TcpExt:TCPHPHits TcpExt:TCPHPAcks) 0" &&
		some way.json '"rx","slow","@validate"'
}
check "--fine: the way a packet took is the kernel's" case_way

# early_fin: a connection from c to d, whose server reads after half a second.  The
# firewall of d loses its 400 bytes once, so that the FIN comes before them.
early_fin() {
	python3 -IS - <<'EOF'
import ctypes, socket, subprocess, time
def inside(name):
    with open(f"/run/netns/{name}") as f:
        assert not ctypes.CDLL(None).setns(f.fileno(), 0)
inside("d")
server = socket.create_server(("10.9.0.2", 4031))
inside("c")
client = socket.create_connection(("10.9.0.2", 4031))
peer, _ = server.accept()
# From here on packets are copied on their way: nothing is joined to a clone.
subprocess.run(["ethtool", "-K", "vc", "sg", "off"], check=True, stdout=2)
client.send(b"x" * 400)
client.shutdown(socket.SHUT_WR)
time.sleep(0.5)
got = b""
while part := peer.recv(10000):
    got += part
assert len(got) == 400
peer.close()
client.close()
EOF
}

# Steps: a FIN without data arrives ahead of its turn.
# Expected: it waits, and its end is the kernel's: joined to the data before it.
case_early_fin() {
	pair c d 1500
	modprobe -a nf_tables nft_limit || return
	ip netns exec d nft -f - <<-'EOF' || return
	table inet early {
		chain arrivals {
			type filter hook prerouting priority 0;
			tcp dport 4031 meta length 452 limit rate 1/day burst 1 packets drop
		}
	}
	EOF
	counters before c d
	"$PP" record --sample 1 --fine -o early.json -- bash -c "
		$(declare -f wait_for at over early_fin)
		early_fin && wait_for 60 over c d" || return
	counters after c d
	within 0 "$(fields early.json 'joined(True), n("rx", "ooo"),
		a["unaccounted"]')" \
		"$(grew TcpExt:TCPRcvCoalesce TcpExt:TCPOFOQueue) 0" &&
		some early.json '"rx","ooo","fin","joined"'
}
check "a FIN ahead of its turn ends where the kernel ends it" case_early_fin

# udp_pair COUNT: datagrams over loopback, each read before the next.
udp_pair() {
	python3 -IS - "$@" <<'EOF'
import socket, sys
a, b = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in "ab")
b.bind(("127.0.0.1", 4027))
for i in range(int(sys.argv[1])):
    a.sendto(b"x" * 100, ("127.0.0.1", 4027))
    b.recv(1000)
EOF
}

# Steps: 12 datagrams, while TCP goes to another port.
# Expected: 12 received, read, and 12 sent.
case_udp() {
	"$PP" record --sample 1 --udp --port 4027 -o udp.json -- bash -c "
		$(declare -f ping_pong udp_pair)
		ping_pong 4028 5 127.0.0.1; udp_pair 12" || return
	is "$(fields udp.json 'n("rx", "udp", "delivered"), n("tx", "udp",
		"sent"), n(), a["unaccounted"]')" "12 12 24 0"
}
check "UDP: 12 datagrams are 12 datagrams" case_udp

# Steps: packets to two addresses, one of the prefix asked for, filtered by
# direction, too; then by interface and by namespace.
# Expected: only those.
case_filters() {
	"$PP" record --sample 1 --addr 127.3.0.0/16 --dir rx -o p.json -- \
		bash -c "$(declare -f ping_pong)
		ping_pong 4029 6 127.3.4.5 4029 9 127.4.4.5" || return
	is "$(fields p.json 'n("rx", "data"), n("tx")')" "6 0" || return
	"$PP" record --sample 1 --netns a -o ns.json -- bash -c "
		$(declare -f ping_pong); ping_pong 4029 6 127.0.0.1" || return
	is "$(fields ns.json 'n()')" 0 || return
	"$PP" record --sample 1 --dev lo --dir rx -o dev.json -- bash -c "
		$(declare -f ping_pong); ping_pong 4029 6 127.0.0.1" || return
	is "$(fields dev.json 'n("rx", "data")')" 6
}
check "filters by prefix, direction, namespace and interface" case_filters

# Steps: bursts within a budget while a transfer runs, some thousand packets.
# Expected: several bursts, packets in both directions, a balanced account.
case_bursts() {
	"$PP" record --budget 50 -o win.json -- ip netns exec a iperf3 \
		-c 10.9.0.2 -t 6 || return
	fields win.json 'p["counters"]["windows"], a' | sed 's/^/# /' >&3
	is "$(fields win.json 'p["counters"]["windows"] > 1, n("rx") > 0,
		n("tx") > 0, a["unaccounted"],
		0 < p["open_ns"] < p["duration_ns"],
		p["probe"]["function_ns"]')" \
		"True True True 0 True 0" && "$PP" report win.json &&
		stage_times win.json
}
check "sampling bursts" case_bursts

# Steps: kill -9 while the hooks are attached.
# Expected: no program is left, and no file.
case_killed() {
	local pid
	rm -f ready && mkfifo ready
	"$PP" record --sample 1 -o killed.json --ready-fd 9 9>ready &
	pid=$!
	read -r _ <ready
	no_programs && return 1
	kill -KILL $pid
	wait_for 10 no_programs && is "$(ls killed.json* 2>/dev/null)" ""
}
check "killed, it leaves nothing" case_killed

check "no BPF program stays behind" wait_for 10 no_programs
