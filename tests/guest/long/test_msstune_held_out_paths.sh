#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# msstune records with pathprof while it diagnoses: faults and healthy loads that were
# written without its rules (held_out_path_faults.py).
#
# usage: test_msstune_held_out_paths.sh [faults | healthy | NAME...]  default: faults
# guest: --cpus 3
# alone: a sender, a reader and a CPU without work
. "$(dirname "$0")/../../lib.sh"

cases=$TOP/tests/guest/held_out_path_faults.py
[ $# -gt 0 ] || set -- faults
mapfile -t names < <(/usr/bin/python3 "$cases" list "$@")
plan ${#names[@]}
modprobe -a sch_netem veth ifb 8021q bridge act_mirred cls_matchall sch_ingress \
	tcp_diag nf_tables nft_numgen || exit
stage_pathprof || exit
export PATH=$TMP/run:$PATH
python_cases "$cases" "$@"
