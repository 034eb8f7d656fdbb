#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pathprof --stages where BPF programs of others decide: tc, tcx, XDP, AF_XDP.
# Each stage has as many packets as the program has run, and each packet that a
# program drops, sends elsewhere or gives to a socket ends as that.
# long: attaches the hooks of --stages for each case

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../../lib.sh"
# shellcheck source=tests/guest/lib/profiles.sh
. "$(dirname "$0")/../../lib/profiles.sh"
# shellcheck source=tests/guest/lib/topology.sh
. "$(dirname "$0")/../../lib/topology.sh"
# shellcheck source=tests/guest/lib/topology_devices.sh
. "$(dirname "$0")/../../lib/topology_devices.sh"

cd "$TMP" || exit
stage_pathprof || exit
exec 3>&1 # numbers worth seeing even when all is well

plan 6
modprobe -q veth
mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf
sysctl -qw kernel.bpf_stats_enabled=1
programs=(python3 -IS "$TOP/tests/guest/pathprof/stages/bpf_programs.py")

# runs_of NAME...: of all programs of that name.
runs_of() {
	bpftool -j prog show name "$1" | python3 -IS -c 'import json, sys
found = json.load(sys.stdin)
print(sum(p.get("run_cnt", 0) for p in
          (found if isinstance(found, list) else [found])))'
}

# pinned: a pin that goes with the test.
pinned() {
	rm -f "/sys/fs/bpf/$1"
	defer "rm -f /sys/fs/bpf/$1"
}

# datagrams COUNT: from p1 to p2.
datagrams() {
	ip netns exec p1 python3 -IS -c 'import socket, sys
s = socket.socket(type=socket.SOCK_DGRAM)
for i in range(int(sys.argv[1])):
    s.sendto(b"x" * 100, ("10.1.0.3", 4000))' "$1"
}

# Steps: 23 writes each way; a program of tcx on one device.
# Expected: the stage has as many packets as the program has run.
case_tcx() {
	local sent ran
	fresh
	pods && pinned link || return
	"${programs[@]}" tcx p2 eth0 /sys/fs/bpf/link 2>err || {
		grep -q 'Errno 22' err && {
			rm -f /sys/fs/bpf/link
			return 4
		}
		cat err
		return 1
	}
	record tcx tc p1 p2 10.1.0.3 4000 4000 23 100 || return
	ran=$(runs_of pass) sent=$(snmp_of Tcp OutSegs p1 p2)
	rm -f /sys/fs/bpf/link
	more_than "$ran" 23 "runs of the program" &&
		is "$(passed tcx tc)" "$ran" &&
		is "$(fields tcx '[h["why"].split(",")[0] for h in p["hooks"]
			if h["name"] == "tc_program"][0]')" "program pass" &&
		whole tcx "$sent"
}
if case_tcx; then
	ok "tcx"
elif [ $? -eq 4 ]; then
	skip "tcx" "Linux $(uname -r) has no tcx"
else
	not_ok "tcx"
fi

# passes MODE STAGE PODS: 23 writes each way; an XDP program on the veth of these.
# Expected: the stage has as many packets as the programs have run.
passes() {
	local ns ran
	fresh
	pods || return
	for ns in $3; do
		pinned "$ns"
		"${programs[@]}" "$1" "$ns" eth0 2 "/sys/fs/bpf/$ns" || return
	done
	record "$1" xdp p1 p2 10.1.0.3 4000 4000 23 100 || return
	ran=$(runs_of pass)
	rm -f /sys/fs/bpf/p1 /sys/fs/bpf/p2
	more_than "$ran" 23 "runs of the program" &&
		is "$(passed "$1" "$2")" "$ran" &&
		whole "$1" "$(snmp_of Tcp OutSegs p1 p2)"
}
check "native XDP on veth" passes native xdp_drv "p1 p2"
check "generic XDP" passes generic xdp p2

# verdict NAME END VERDICT: 7 datagrams to a device whose program does that with them.
verdict() {
	fresh
	pods && pinned p1 && pinned p2 || return
	# The other end takes frames only if it has a program, too.
	"${programs[@]}" native p2 eth0 "$3" /sys/fs/bpf/p2 &&
		"${programs[@]}" native p1 eth0 2 /sys/fs/bpf/p1 || return
	"$PP" record --sample 1 --udp --stages xdp -o "$1.json" -- bash -c \
		"$(declare -f datagrams); datagrams 7" || return
	rm -f /sys/fs/bpf/p1 /sys/fs/bpf/p2
	fields "$1.json" '"\n".join(str((x["packets"], x["end"],
		*(names[i] for i in x["stages"]))) for x in p["paths"])' |
		sed 's/^/# /' >&3
	is "$(fields "$1.json" "n('tx', '@xdp_drv', '$2'), a['unaccounted']")" \
		"7 0"
}
check "XDP drops" verdict drop dropped 1
check "XDP sends back" verdict redirect sent 3

# Steps: 7 datagrams to a device whose generic XDP program gives all packets to
# an AF_XDP socket.
# Expected: they end as delivered, as many as the socket's ring counts.
case_socket() {
	fresh
	pods || return
	got=$("${programs[@]}" socket p2 eth0 7 "$PP" record --sample 1 \
		--udp --stages xdp -o socket.json -- bash -c \
		"$(declare -f datagrams); datagrams 7" 2>err) ||
		{ cat err; return 1; }
	is "${got##*$'\n'}" 7 &&
		is "$(fields socket.json \
			'n("tx", "@xsk", "delivered"), a["unaccounted"]')" "7 0"
}
check "AF_XDP" case_socket
