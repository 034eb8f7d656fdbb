#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What pathprof records where it has few rights or few hooks, and what it reports
# of a drop.

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"
# shellcheck source=tests/guest/lib/profiles.sh
. "$(dirname "$0")/../lib/profiles.sh"

cd "$TMP" || exit
stage_pathprof || exit
plan 4

# as_user COMMAND...: as nobody, with the two capabilities only.
as_user() {
	chmod 777 "$TMP"
	setpriv --reuid 65534 --regid 65534 --clear-groups \
		--inh-caps -all,+bpf,+perfmon --ambient-caps -all,+bpf,+perfmon \
		--bounding-set -all,+bpf,+perfmon "$@"
}

# Steps: record as a user that has CAP_BPF and CAP_PERFMON.
# Expected: the packets are counted, as root would.
case_capabilities() {
	as_user "$PP" record --sample 1 --port 4031 -o caps.json -- bash -c "
		$(declare -f ping_pong); ping_pong 4031 7 127.0.0.1" || return
	is "$(fields caps.json 'n("rx", "data"), n("tx", "data"),
		a["unaccounted"]')" "7 7 0"
}
check "CAP_BPF and CAP_PERFMON are enough" case_capabilities

# Steps: as that user, ask for netfilter and then for NAT; nf_conntrack is a module.
# Expected: only its function is left out, with the reason; --nat, which needs
# it, is refused.
case_module() {
	modprobe nf_conntrack || return
	as_user "$PP" record --sample 1 --port 4034 --stages netfilter \
		-o module.json -- bash -c "
		$(declare -f ping_pong); ping_pong 4034 7 127.0.0.1" 2>err
	set -- $?
	cat err
	[ "$1" -eq 0 ] && is "$(grep -c '() is not hooked' err)" 1 &&
		grep -q '^pathprof: nf_conntrack_in() .* CAP_SYS_ADMIN$' err &&
		is "$(fields module.json 'n("data", "@local", "delivered"),
			{h["name"] for h in p["hooks"]
			 if h["state"] == "failed"}')" \
			"7 {'nf_conntrack_in'}" &&
		"$PP" report module.json >text &&
		sed -n '/^Not seen here:/,$p' text | grep -w conntrack || return
	as_user "$PP" record --sample 1 --port 4034 --stages netfilter --nat \
		-o nat.json -- true 2>err
	set -- $?
	cat err
	is "$1" 3 && grep -q -e '--nat: .* CAP_SYS_ADMIN$' err
}
check "a module's functions need CAP_SYS_ADMIN, others do not" case_module

# Steps: functions cannot be hooked, as ftrace is switched off.
# Expected: recorded with tracepoints; that is said; the counts are the same.
case_no_functions() {
	sysctl -qw kernel.ftrace_enabled=0 || return
	defer "sysctl -qw kernel.ftrace_enabled=1"
	"$PP" record --sample 1 --port 4032 -o few.json -- bash -c "
		$(declare -f ping_pong); ping_pong 4032 9 127.0.0.1" 2>err
	set -- $?
	sysctl -qw kernel.ftrace_enabled=1
	cat err
	[ "$1" -eq 0 ] && grep -q 'functions cannot be hooked here' err || return
	"$PP" report few.json >text && grep '^Not seen here:' text || return
	is "$(fields few.json 'n("rx", "data"), n("tx", "data"),
		a["unaccounted"], n("tx", "@write"), n("rx", "data",
		"delivered"), sum(a[i] for i in ("stale", "evicted"))')" \
		"9 9 0 0 9 0"
}
check "without functions, tracepoints are used" case_no_functions

# Steps: 5 packets to a port whose packets nft drops.
# Expected: so many drops, with the reason and the function of netfilter.
case_location() {
	nft add table ip t
	defer "nft delete table ip t"
	nft add chain ip t in '{ type filter hook input priority 0 ; }'
	nft add rule ip t in udp dport 4033 counter drop || return
	"$PP" record --sample 1 --udp --port 4033 -o drop.json -- python3 -IS -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(5): s.sendto(b"x", ("127.0.0.1", 4033))' || return
	fields drop.json '[(x["packets"], p["reasons"].get(str(x["reason"])),
		x.get("location")) for x in p["paths"] if x["end"] == "dropped"]'
	is "$(fields drop.json '[x["packets"] for x in p["paths"] if
		x["end"] == "dropped" and "netfilter" in
		p["reasons"][str(x["reason"])] and
		"nf" in x["location"]]')" "[5]" &&
		"$PP" report --detail drop.json | grep '^ *dropped in nf'
}
check "a drop has its reason and its function" case_location
