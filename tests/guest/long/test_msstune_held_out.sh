#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# msstune's first diagnosis of faults and healthy loads that were written without its
# rules (held_out_faults.py).
#
# usage: test_msstune_held_out.sh [faults-1 | faults-2 | healthy | NAME...]
#   default: faults-1, every second fault; the other scripts run the remainder
. "$(dirname "$0")/../../lib.sh"

cases=$TOP/tests/guest/held_out_faults.py
[ $# -gt 0 ] || set -- faults-1
case $1 in
faults-1 | faults-2 | healthy)
	plan "$(/usr/bin/python3 "$cases" list "$1" | wc -l)"
	;;
*) plan $# ;;
esac
modprobe -a sch_netem sch_tbf sch_fq sch_cake veth dummy tcp_diag nf_tables \
	nf_conntrack nft_ct nft_limit nft_reject_inet || exit
mountpoint -q /sys/fs/cgroup || mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
python_cases "$cases" "$@"
