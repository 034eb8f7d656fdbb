#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# msstune names no fault and proposes no setting on healthy loads of many kinds
# (wide_faults.py).
. "$(dirname "$0")/../../lib.sh"

plan 20
modprobe -a sch_netem veth tcp_diag nf_tables nf_conntrack nft_ct || exit
python_cases "$TOP/tests/guest/wide_faults.py" healthy
