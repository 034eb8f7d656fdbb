#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What msstune's recording, and its samples and counts of calls, cost a load that keeps
# the CPU busy for some 2 s, in instructions; diagnose has a profile of it (budget.py).
# long: millions of packets in virtual time
. "$(dirname "$0")/../../lib.sh"

plan 5
modprobe tcp_diag || exit
stage_pathprof || exit
cp "$TOP/build/bin/tcpload" "$TMP/run" || exit
export PATH=$TMP/run:$PATH
python_cases "$TOP/tests/guest/msstune/budget.py"
