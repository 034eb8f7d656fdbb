#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# As test_msstune_held_out.sh, with the other half of the held-out faults.
exec "$(dirname "$0")/test_msstune_held_out.sh" faults-2
