#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Sets of options that put other programs together: this kernel's verifier takes
# each, and a transfer over loopback is recorded with it.  Verifiers refuse what
# others took, so it is for every kernel of KERNELS.
# long: loads pathprof's programs once for each set of options
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"

cd "$TMP" || exit
stage_pathprof || exit
# Their functions are there for the hooks of --stages.
for module in nf_conntrack nf_tables bridge vxlan wireguard tls 8021q macvlan ipvlan \
	bonding openvswitch esp4 veth; do
	modprobe -q $module || echo "# no module $module"
done
groups=(forward netfilter bridge vlan tunnel ipsec fragment udp icmp mptcp tls tc
	tap xdp all)
sets=(
	"" "--state" "--udp" "--port 5201 --dir rx" "--filter tcp"
	"--sample 1" "--sample 1 --fine" "--sample 1 --udp" "--sample 1 --state"
	"--sample 1 --stage-times" "--sample 1 --drop-stacks" "--sample 1 --dev lo"
	"--sample 1 --filter tcp" "--sample 1 --fine --udp --state --drop-stacks"
	"--sample 1 --capture 128" "--sample 1 --udp --capture 128"
	"--sample 1 --stages all --udp --capture 128"
	"--sample 1 --stages all --fine --udp --state --stage-times --drop-stacks"
	"--sample 1 --stages netfilter --nat --filter tcp"
	"--sample 1 --stages all --udp --nat --filter tcp --dev lo"
	"--sample 1 --stage ip_rcv"
)
for group in "${groups[@]}"; do
	sets+=("--sample 1 --stages $group")
done
plan ${#sets[@]}

# recorded OPTION...: a transfer, every packet or in bursts.
recorded() {
	local events=()
	case "$*" in *capture*) events=(--events e) ;; esac
	"$PP" record "$@" "${events[@]}" -o profile -- \
		tcpload pattern --flows 2 --seconds 2 >out 2>&1 || {
		tail -n 25 out
		return 1
	}
	"$PP" report profile >text || return
	# A short transfer may fall between two bursts.
	case "$*" in *"--sample 1"*) ! grep "^No packets" text ;; esac
}

for options in "${sets[@]}"; do
	# shellcheck disable=SC2086 # several words
	check "loads: ${options:-default}" recorded $options
done
