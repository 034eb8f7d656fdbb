#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What msstune's samples and counts of calls cost a load that keeps the CPU busy, in
# instructions (probe_budget.py).
. "$(dirname "$0")/../../lib.sh"

plan 2
mkdir -p "$TMP/run" && cp "$TOP/build/bin/tcpload" "$TMP/run" || exit
export PATH=$TMP/run:$PATH
python_cases "$TOP/tests/guest/long/probe_budget.py"
