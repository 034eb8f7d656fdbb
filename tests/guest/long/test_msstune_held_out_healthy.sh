#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# As test_msstune_held_out.sh, with the held-out healthy loads.
exec "$(dirname "$0")/test_msstune_held_out.sh" healthy
