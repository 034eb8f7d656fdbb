#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# As test_msstune_held_out_paths.sh, with the third set (held_out_path_faults_3.py).
#
# usage: test_msstune_held_out_paths_3.sh [faults | healthy | NAME...]
#   default: faults
# guest: --cpus 3
# alone: a sender, a reader and a CPU without work
. "$(dirname "$0")/../../lib.sh"

cases=$TOP/tests/guest/held_out_path_faults_3.py
[ $# -gt 0 ] || set -- faults
mapfile -t names < <(/usr/bin/python3 "$cases" list "$@")
plan ${#names[@]}
modprobe -a sch_netem sch_tbf veth macvlan 8021q bridge bonding tcp_diag nf_tables \
	nft_limit || exit
stage_pathprof || exit
export PATH=$TMP/run:$PATH
python_cases "$cases" "$@"
