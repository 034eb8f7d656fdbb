#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pathprof check names the metrics that became worse, does not report changes
# within their bounds, and refuses profiles that cannot be compared.
set -u

# shellcheck source=tests/unit/lib/files.sh
. "$(dirname "$0")/../lib/files.sh"
KEPT=$TOP/tests/unit/test_profile/sample.json

# change FILE STATEMENT: the kept profile, changed; see kept_profile.py
change() {
	python3 -B "$TOP/tests/unit/kept_profile.py" "$1" "$2"
}

# gives STATUS PATTERN ARGUMENT...: of pathprof check.
gives() {
	local got
	"$PP" check "${@:3}" 2>&1 | tee shown
	got=${PIPESTATUS[0]}
	echo "status $got, wanted $1 and '$2'"
	[ "$got" = "$1" ] && grep -qE -- "$2" shown
}

slower_named() {
	change new.json 'slower("copy", 1.3, "rx")' &&
		gives 1 '^worse +rx\.at\.copy .* \+30\.00 %' base.json \
			new.json &&
		gives 0 '0 outside' --metric tx base.json new.json &&
		gives 1 '^worse +rx\.at\.copy' --metric rx.at base.json \
			new.json
}
faster() {
	change new.json 'slower("copy", 0.7, "rx")' &&
		gives 0 '^better +rx\.at\.copy' base.json new.json
}
small() {
	change new.json 'slower("copy", 1.005, "rx")' &&
		gives 0 '0 outside' base.json new.json &&
		gives 1 'worse +rx\.at\.copy' --tolerance 0.1% base.json \
			new.json
}
# The unprofiled run has a quarter of the tolerance.
whole_run() {
	change base-load.json 'p["load"] = {"ns": 10000000, "packets": 1000}' &&
		change new.json 'p["load"] = {"ns": 10020000, "packets": 1000}' &&
		gives 0 '0 outside' base-load.json new.json &&
		change new.json 'p["load"] = {"ns": 10030000, "packets": 1000}' &&
		gives 1 'worse +load\.time .* 0\.25$' base-load.json new.json
}
# More and cheaper packets for the same bytes, and more instructions for them.
same_bytes() {
	change base-load.json 'p["load"] = {"ns": 10000000, "packets": 1000, "bytes": 500000}' &&
		change new.json 'p["load"] = {"ns": 10540000, "packets": 1125, "bytes": 500000}' &&
		gives 1 'worse +load\.byte .*\+5\.40 %' base-load.json new.json &&
		gives 1 'worse +load\.packets .*\+12\.50 %' base-load.json new.json &&
		gives 0 'better +load\.time .*-6' --metric load.time base-load.json new.json
}
share() {
	change new.json '
for x in path("rx", "data", "fast"): x["packets"] //= 2' &&
		gives 1 '^worse +rx\.slow\.share' base.json new.json
}
spread() {
	change other.json 'slower("copy", 1.2, "rx")' &&
		change new.json 'slower("copy", 1.3, "rx")' &&
		gives 0 '0 outside' base.json other.json new.json
}
# Of five baselines one far off is left out, and two are not.
outlier() {
	change other.json 'slower("copy", 1.07, "rx")' &&
		change new.json 'slower("copy", 1.02, "rx")' &&
		gives 1 '^worse +rx\.at\.copy .* \+2\.00 %' base.json other.json \
			base.json base.json base.json new.json &&
		gives 0 '0 outside' base.json other.json base.json other.json \
			base.json new.json &&
		gives 0 '0 outside' base.json other.json base.json base.json \
			new.json
}
json() {
	change new.json 'slower("copy", 1.3, "rx")' || return
	"$PP" check --json base.json new.json >j
	[ $? = 1 ] && python3 -IS -c '
import json, sys
j = json.load(open("j"))
assert j["verdict"] == "worse"
assert j["figures"][0]["name"] == "rx.at.copy", j["figures"][0]'
}
command() {
	change new.json 'p["command"] = "another"' &&
		gives 125 'cannot tell: .*another command' base.json new.json
}
filtered() {
	change new.json 'p["config"]["filter"] = "arm treated"' &&
		gives 125 'another filter' base.json new.json &&
		gives 0 '0 outside' new.json new.json
}
failed() {
	change new.json 'p["command_status"] = 1' &&
		gives 125 'command that failed' base.json new.json
}
lossy() {
	change new.json 'p["account"]["no_slot"] = 100' &&
		gives 125 'lost more than 1 %' base.json new.json
}

corrected() {
	change new.json 'p["probe"]["known"] = True' &&
		gives 125 "own cost is not known" base.json new.json &&
		gives 0 '0 outside' --raw base.json new.json
}

[ -x "$PP" ] || {
	echo "1..0 # SKIP $PP is not built"
	exit 4
}
echo "KTAP version 1"
echo "1..19"
change base.json ''
check "a profile against itself is good" gives 0 '0 outside .*: good' \
	base.json base.json
check "a slower stage is named" slower_named
check "a faster stage is better" faster
check "a change within the tolerance is not reported" small
check "the unprofiled run has a quarter of the tolerance" whole_run
check "more packets for the same bytes are worse" same_bytes
check "more packets on the slow path are worse" share
check "baselines that differ widen the bound" spread
check "one outlier in five baselines does not widen it" outlier
check "JSON" json
check "another command: cannot tell" command
check "another filter: cannot tell" filtered
check "a failed command: cannot tell" failed
check "one without pathprof's own cost, one with: cannot tell" corrected
check "many packets lost: cannot tell" lossy
check "few packets: cannot tell" gives 125 '100 packets' "$KEPT" "$KEPT"
check "no such metric: cannot tell" gives 125 'no metric' --metric rx.nothing \
	base.json base.json
check "a file that is no profile: cannot tell" gives 125 'cannot read|No such' \
	base.json none.json
check "one file: usage" gives 2 'Name one baseline' base.json
[ $bad -eq 0 ]
