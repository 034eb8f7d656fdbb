#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The ends of paths against the kernel's counters, in drawn runs (ends.py): loss,
# reordering, offloads, refused and reset connections, SYN cookies and sampling
# bursts, over a bridge, a router that translates addresses, and a tunnel.
# MSSFRAC_ENDS: how many runs; MSSFRAC_SEED: the first seed, as an earlier run has
# printed it; MSSFRAC_BURSTS=0 leaves out bursts.
# long: several drawn runs over each topology

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"

cd "$TMP" || exit
stage_pathprof || exit
runs=${MSSFRAC_ENDS:-48}
plan "$runs"
modprobe -aq veth bridge vxlan sch_netem nf_tables nft_chain_nat nft_masq nft_numgen

# Steps and expectation: see ends.py.
python_cases "$TOP/tests/guest/pathprof/ends.py" "$PP" \
	"${MSSFRAC_SEED:-$((RANDOM * 1000))}" "$runs"
