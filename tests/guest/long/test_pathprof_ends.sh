#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# test_pathprof_ends.sh with more runs, from a seed that nobody has seen.

export MSSFRAC_ENDS=${MSSFRAC_ENDS:-48}
export MSSFRAC_BURSTS=1
export MSSFRAC_SEED=${MSSFRAC_SEED:-$((RANDOM * 1000))}
exec "$(dirname "$0")/../test_pathprof_ends.sh"
