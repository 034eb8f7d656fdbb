#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pathprof explain: injected causes are named.  The cases are in explain.py; each takes
# some ten seconds in an emulated guest.
# long: each case takes some ten seconds
. "$(dirname "$0")/../../lib.sh"

stage_pathprof || exit
plan 14
modprobe tun || exit
pair a b 1500
export PP
python_cases "$TOP/tests/guest/pathprof/explain.py"
