#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Each key of an arm of mssab changes what it names, by the kernel's own account
# (cell_keys.py).
#
# usage: test_cell_keys.sh [KEY...]     only these cases of cell_keys.py
#
# long: each case makes a testbed of its own
. "$(dirname "$0")/../../lib.sh"

plan $(($# ? $# : 29))
modprobe -a sch_netem sch_fq veth tcp_diag nf_tables || exit
insmod "$MODULE" || exit
defer "rmmod mssfrac"
python_cases "$TOP/tests/guest/mssab/cell_keys.py" "$@"
