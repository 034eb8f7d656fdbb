#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# msstune auto end to end (auto.py): the goodput lost to an injected fault is
# restored, and a host without a fault is not changed.
# long: pairs of blocks in virtual time
#
# usage: det_auto.sh [NAME...]     other cases of auto.py instead
. "$(dirname "$0")/../../lib.sh"

cases=("$@")
[ $# -gt 0 ] || cases=("send buffer too small" "nothing is wrong")
plan ${#cases[@]}
modprobe -a sch_netem sch_tbf sch_fq sch_fq_codel veth tcp_diag tcp_bbr || exit
insmod "$MODULE" || exit
defer "rmmod mssfrac"
python_cases "$TOP/tests/guest/msstune/auto.py" "${cases[@]}"
