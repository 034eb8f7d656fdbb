#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# As test_msstune_held_out_paths.sh, with the sixth set (held_out_path_faults_6.py).
# MSSTUNE_APPLY=1 in the environment: judges what msstune proposes, not what it names.
#
# usage: test_msstune_held_out_paths_6.sh [faults | healthy | NAME...]
#   default: faults
. "$(dirname "$0")/../../lib.sh"

cases=$TOP/tests/guest/held_out_path_faults_6.py
[ $# -gt 0 ] || set -- faults
mapfile -t names < <(/usr/bin/python3 "$cases" list "$@")
plan ${#names[@]}
modprobe -a sch_netem sch_tbf sch_htb sch_fq sch_red sch_ingress cls_matchall \
	act_police veth bridge ipvlan tcp_diag tcp_bbr nf_tables nft_numgen nft_ct \
	nft_nat nft_masq nft_chain_nat nf_conntrack || exit
stage_pathprof || exit
export PATH=$TMP/run:$PATH
python_cases "$cases" "$@"
