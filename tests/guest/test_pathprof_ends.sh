#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The ends of paths against the kernel's counters, in drawn runs (ends.py): loss,
# reordering, offloads, refused and reset connections and SYN cookies, over a
# bridge, a router that translates addresses, and a tunnel.
# MSSFRAC_ENDS: how many runs; MSSFRAC_SEED: the first seed, as an earlier run has
# printed it.  The long test draws others, and sampling bursts, in which some
# packets end otherwise than the kernel counts (Documentation/limitations.rst).

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

cd "$TMP" || exit
stage_pathprof || exit
runs=${MSSFRAC_ENDS:-8}
plan "$runs"
modprobe -aq veth bridge vxlan sch_netem nf_tables nft_chain_nat nft_masq

# Steps and expectation: see ends.py.
export MSSFRAC_BURSTS=${MSSFRAC_BURSTS:-0}
python_cases "$TOP/tests/guest/ends.py" "$PP" "${MSSFRAC_SEED:-3207}" "$runs"
