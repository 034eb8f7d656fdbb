#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# msstune tells policers, random losses and losses in bursts apart (faults_path.py).
# long: some ten minutes of traffic
# alone: paced by the clock
#
# usage: test_faults_loss.sh [--only PATTERN] [--seed N]
exec "$(dirname "$0")/test_faults.sh" loss "$@"
