#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Policers, random losses and losses in bursts on paths drawn at random
# (lossy_paths.py): does msstune tell them apart?
. "$(dirname "$0")/../../lib.sh"

cases=$TOP/tests/guest/lossy_paths.py
mapfile -t names < <(/usr/bin/python3 "$cases" list)
plan ${#names[@]}
modprobe -a sch_netem sch_ingress cls_matchall act_police veth tcp_diag || exit
python_cases "$cases" run
