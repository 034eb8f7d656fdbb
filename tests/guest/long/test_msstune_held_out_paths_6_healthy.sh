#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# As test_msstune_held_out_paths_6.sh, with loads where nothing is wrong.
exec "$(dirname "$0")/test_msstune_held_out_paths_6.sh" healthy
