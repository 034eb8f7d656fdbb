#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# tx_steady: the segment size goes down step by step and up again.  The cases
# are in steady.py.
. "$(dirname "$0")/../../lib.sh"
plan 3

insmod "$MODULE" || exit
defer "rmmod mssfrac"
pair a b 9000
tc -n a qdisc add dev va root netem delay 5ms limit 1000
echo 1 >/sys/kernel/tracing/events/mssfrac/align/enable || exit
defer "echo 0 >/sys/kernel/tracing/events/mssfrac/align/enable"

python_cases "$TOP/tests/guest/kmod/steady.py"
