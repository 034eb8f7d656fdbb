#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# msstune's first diagnosis of faults that the paths of packets show (faults_cost.py).
# long: some ten minutes of traffic
# alone: paced by the clock
# guest: --cpus 3
#
# usage: test_faults_cost.sh [--only PATTERN] [--seed N]
exec "$(dirname "$0")/test_faults.sh" cost "$@"
