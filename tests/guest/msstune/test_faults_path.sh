#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# msstune's first diagnosis of injected faults of paths (faults_path.py).
# long: some ten minutes of traffic
# alone: paced by the clock
#
# usage: test_faults_path.sh [--only PATTERN] [--seed N]
exec "$(dirname "$0")/test_faults.sh" path "$@"
