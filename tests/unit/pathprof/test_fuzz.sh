#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pathprof's readers and views against thousands of damaged and hostile files,
# under the sanitizers (tests/fuzz/).  MSSFRAC_FUZZ=SECONDS goes on for so long,
# with another seed each time.

# shellcheck source=tests/unit/lib/files.sh
. "$(dirname "$0")/../lib/files.sh"
FUZZ=$TOP/build/tests/fuzz
KEPT=("$TOP"/tests/unit/test_profile/*.json "$TOP"/tests/unit/pathprof/test_journey/*.events)

[ -x "$FUZZ" ] || {
	echo "1..0 # SKIP $FUZZ is not built"
	exit 4
}
exec 3>&1 # the seed, and what was read, even when all is well
# The kept files have no times of stages.
python3 -B "$TOP/tests/unit/kept_profile.py" "$TMP/timed.json" '
for stage in p["stages"]: stage["times"] = {"histogram": [0, 300, 0, 3]}'
KEPT+=("$TMP/timed.json")
# Nor have they the state of connections, and captured bytes.
sed '2,$s/,"events":\[/,"state":{"cwnd":17},"length":60,"captured":"45000028"&/' \
	"$TOP/tests/unit/pathprof/test_journey/gro.events" >"$TMP/bytes.events"
KEPT+=("$TMP/bytes.events")
if [ -n "$MSSFRAC_FUZZ" ]; then
	how=(-s "$(date +%s)" -t "$MSSFRAC_FUZZ")
else
	how=(-s 1 -n 2000)
fi

mutants() {
	local status
	"$FUZZ" "${how[@]}" "${KEPT[@]}" >found 2>&1
	status=$?
	sed 's/^/# /' found >&3
	return $status
}
# What was found can be found again: the sum is that of all mutants.
again() {
	"$FUZZ" -s 7 -n 50 "${KEPT[@]}" >once 2>&1
	"$FUZZ" -s 7 -n 50 "${KEPT[@]}" 2>&1 | diff once -
}

echo "KTAP version 1"
echo "1..2"
check "every file is shown or refused correctly" mutants
check "a seed makes the same files again" again
[ $bad -eq 0 ]
