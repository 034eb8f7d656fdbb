#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Congestion control mssfrac beside others on one bottleneck, in the
# deterministic guest: shares, use of the link, loss.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/bottleneck.sh"
plan 3
