#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# msstune auto removes faults that only the paths of packets show (auto_paths.py).
. "$(dirname "$0")/../../lib.sh"

cases=$TOP/tests/guest/auto_paths.py
mapfile -t names < <(/usr/bin/python3 "$cases" list)
plan ${#names[@]}
modprobe -a veth tcp_diag nf_tables || exit
stage_pathprof || exit
export PATH=$TMP/run:$PATH
python_cases "$cases" run
