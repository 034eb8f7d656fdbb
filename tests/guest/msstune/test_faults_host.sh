#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# msstune's first diagnosis of injected faults of a host (faults_host.py).
# long: some ten minutes of traffic
# alone: paced by the clock
#
# usage: test_faults_host.sh [--only PATTERN] [--seed N]
exec "$(dirname "$0")/test_faults.sh" host "$@"
