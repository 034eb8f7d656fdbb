#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# msstune's first diagnosis of faults of applications, tables, routes and paths
# (wide_faults.py).
#
# usage: test_msstune_wide.sh [NAME...]     other cases of wide_faults.py instead
. "$(dirname "$0")/../../lib.sh"

plan $(($# ? $# : 25))
[ $# -gt 0 ] || set -- faults
modprobe -a sch_netem sch_htb sch_ingress act_police cls_matchall veth tcp_diag \
	nf_tables nf_conntrack nft_ct nft_numgen || exit
mountpoint -q /sys/fs/cgroup || mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
python_cases "$TOP/tests/guest/wide_faults.py" "$@"
