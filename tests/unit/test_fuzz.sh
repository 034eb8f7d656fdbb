#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# pathprof's readers and views against thousands of damaged and hostile files,
# under the sanitizers (tests/fuzz/).  MSSFRAC_FUZZ=SECONDS goes on for so long,
# with another seed each time.

TOP=$(cd "$(dirname "$0")/../.." && pwd)
FUZZ=$TOP/build/tests/fuzz
KEPT=("$TOP"/tests/unit/test_profile/*.json "$TOP"/tests/unit/test_journey/*.events)

[ -x "$FUZZ" ] || {
	echo "1..0 # SKIP $FUZZ is not built"
	exit 4
}
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
# The kept files have no times of stages.
python3 -B "$TOP/tests/unit/kept_profile.py" "$TMP/timed.json" '
for stage in p["stages"]: stage["times"] = {"histogram": [0, 300, 0, 3]}'
KEPT+=("$TMP/timed.json")
if [ -n "$MSSFRAC_FUZZ" ]; then
	how=(-s "$(date +%s)" -t "$MSSFRAC_FUZZ")
else
	how=(-s 1 -n 2000)
fi
bad=0
# verdict NAME STATUS OUTPUT: of the next case.
verdict() {
	n=$((n + 1))
	printf '%s\n' "$3" | sed 's/^\(# \)*/# /'
	if [ "$2" -eq 0 ]; then
		echo "ok $n $1"
	else
		echo "not ok $n $1"
		bad=1
	fi
}

echo "KTAP version 1"
echo "1..2"
found=$("$FUZZ" "${how[@]}" "${KEPT[@]}" 2>&1)
verdict "each file is shown or refused, as it should be" $? "$found"
# What was found can be found again: the sum is that of all mutants.
once=$("$FUZZ" -s 7 -n 50 "${KEPT[@]}" 2>&1)
[ "$once" = "$("$FUZZ" -s 7 -n 50 "${KEPT[@]}" 2>&1)" ]
verdict "a seed makes the same files again" $? "$once"
exit $bad
