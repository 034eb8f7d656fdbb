#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# msstune names no fault and proposes nothing on healthy loads (loads_healthy.py).
# long: some ten minutes of traffic
# alone: paced by the clock
# guest: --cpus 3
#
# usage: test_healthy.sh [--only PATTERN] [--seed N]
exec "$(dirname "$0")/test_faults.sh" healthy "$@"
