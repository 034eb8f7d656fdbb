#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# As test_msstune_held_out_paths_3.sh, with loads where nothing is wrong.
# guest: --cpus 3
# alone: a sender, a reader and a CPU without work
exec "$(dirname "$0")/test_msstune_held_out_paths_3.sh" healthy
