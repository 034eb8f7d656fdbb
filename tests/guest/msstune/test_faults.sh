#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# msstune's first diagnosis of injected faults: of programs and of the windows of an
# end by default (faults_ends.py).  The other test_faults_*.sh run other groups.
# long: some ten minutes of traffic
# alone: paced by the clock
#
# usage: test_faults.sh [GROUP [--only PATTERN] [--seed N]]     as driver.py
. "$(dirname "$0")/../../lib.sh"

[ $# -gt 0 ] || set -- ends
driver=$TOP/tests/guest/msstune/driver.py
mapfile -t names < <(/usr/bin/python3 "$driver" list "$@")
plan ${#names[@]}
stage_pathprof || exit
export PATH=$TMP/run:$PATH
python_cases "$driver" run "$@"
