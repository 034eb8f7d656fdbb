#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What msstune's recording costs a load that keeps the CPU busy for some 2 s, in
# instructions, and that diagnose has a profile of it (profile_budget.py).
. "$(dirname "$0")/../../lib.sh"

plan 3
modprobe tcp_diag || exit
stage_pathprof || exit
cp "$TOP/build/bin/tcpload" "$TMP/run" || exit
export PATH=$TMP/run:$PATH
python_cases "$TOP/tests/guest/long/profile_budget.py"
