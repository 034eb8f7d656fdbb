#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# As test_msstune_held_out_paths.sh, with the fifth set (held_out_path_faults_5.py).
#
# usage: test_msstune_held_out_paths_5.sh [faults | healthy | NAME...]
#   default: faults
. "$(dirname "$0")/../../lib.sh"

cases=$TOP/tests/guest/held_out_path_faults_5.py
[ $# -gt 0 ] || set -- faults
mapfile -t names < <(/usr/bin/python3 "$cases" list "$@")
plan ${#names[@]}
modprobe -a sch_netem sch_tbf sch_htb sch_hfsc veth bridge ipvlan tcp_diag nf_tables \
	nft_numgen nft_ct nft_limit nft_nat nft_masq nft_chain_nat nf_conntrack || exit
stage_pathprof || exit
export PATH=$TMP/run:$PATH
python_cases "$cases" "$@"
