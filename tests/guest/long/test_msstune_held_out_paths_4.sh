#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# As test_msstune_held_out_paths.sh, with the fourth set (held_out_path_faults_4.py).
#
# usage: test_msstune_held_out_paths_4.sh [faults | healthy | NAME...]
#   default: faults
. "$(dirname "$0")/../../lib.sh"

cases=$TOP/tests/guest/held_out_path_faults_4.py
[ $# -gt 0 ] || set -- faults
mapfile -t names < <(/usr/bin/python3 "$cases" list "$@")
plan ${#names[@]}
modprobe -a sch_netem sch_tbf sch_htb sch_prio sch_fq veth macvlan 8021q bridge ifb \
	ip_gre vxlan cls_matchall act_mirred tcp_diag nf_tables nft_numgen nft_ct \
	nft_connlimit nf_conntrack || exit
stage_pathprof || exit
export PATH=$TMP/run:$PATH
python_cases "$cases" "$@"
