#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The ends of pathprof's paths against the kernel's counters, one drawn run for
# each topology of ends.py.  On one CPU, whose clock counts instructions, they are
# the same runs each time.  test_ends.sh draws others, on two CPUs.

export MSSFRAC_ENDS=${MSSFRAC_ENDS:-4}
export MSSFRAC_SEED=${MSSFRAC_SEED:-3211}
export MSSFRAC_BURSTS=${MSSFRAC_BURSTS:-0}
exec "$(dirname "$0")/test_ends.sh"
