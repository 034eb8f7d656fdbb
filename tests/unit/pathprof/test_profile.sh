#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The profile reader against a kept profile and damaged copies of it: every
# one is either read or refused with one sentence, never a crash.

# shellcheck source=tests/unit/lib/files.sh
. "$(dirname "$0")/../lib/files.sh"
KEPT=$TOP/tests/unit/test_profile/sample.json

refuses() { refused report "$@"; }
damaged() { edited report "$KEPT" "$@"; }

round_trip() {
	"$PP" report --json --raw "$KEPT" >a.json && "$PP" report --json --raw \
		a.json >b.json && cmp a.json b.json && cmp a.json "$KEPT"
}

text() {
	"$PP" report --detail "$KEPT" >text && "$PP" report "$KEPT" >>text &&
		grep -q '^Account: 173 sampled = 171 done' text &&
		grep -q 'rx fast' text && ! grep -nE '.{81}' text
}

# Other filters than port and address are kept, and head the text.
filter() {
	sed 's/^  "addr": ""/&,\n  "filter": "dev eth0  arm treated"/' "$KEPT" \
		>f.json
	"$PP" report --json --raw f.json | cmp - f.json &&
		"$PP" report f.json | grep -x 'Only: dev eth0  arm treated'
}

# Cut short at many places: never a crash, always refused.
truncated() {
	local size i status
	size=$(stat -c %s "$KEPT")
	for ((i = 0; i < size - 2; i += 997)); do
		head -c $i "$KEPT" >cut.json
		"$PP" report cut.json >/dev/null 2>stderr
		status=$?
		[ $status -eq 1 ] || {
			echo "cut at $i: status $status"
			return 1
		}
	done
}

# One byte changed at many places: read or refused, never a crash.
flipped() {
	local size i status
	size=$(stat -c %s "$KEPT")
	for ((i = 1; i < size; i += 487)); do
		{
			head -c $((i - 1)) "$KEPT"
			printf '9'
			tail -c +$((i + 1)) "$KEPT"
		} >flip.json
		"$PP" report --detail flip.json >/dev/null 2>&1
		status=$?
		[ $status -le 1 ] || {
			echo "byte $i: status $status"
			return 1
		}
	done
}

# Files of older format versions show the same account and paths; pathprof's
# own cost is in their times.
older() {
	local version
	"$PP" report --raw "$KEPT" | grep -v '^Probe' >new.txt
	for version in 1 2 3; do
		"$PP" report --raw \
			"$TOP/tests/unit/test_profile/version-$version.json" |
			grep -v '^Probe' >old.txt && cmp old.txt new.txt || return
	done
}

# In every view pathprof's own cost is off the times, once; what was measured
# can be had back.
subtracted() {
	local view
	"$PP" export "$KEPT" >own.json && "$PP" export own.json >twice.json &&
		cmp own.json twice.json &&
		"$PP" export --raw own.json | cmp - "$KEPT" || return
	python3 -IS - "$KEPT" own.json <<'END' || return
import json, sys
raw, own = (json.load(open(name)) for name in sys.argv[1:])
kinds = {s["id"]: s["kind"] for s in raw["stages"]}
for a, b in zip(raw["paths"], own["paths"], strict=True):
    took = [x - y for x, y in zip(a["stage_ns"], b["stage_ns"])]
    assert took == a["stage_probe_ns"] and any(took), a
    for sum_of in "work", "wait":
        off = sum(t for t, i in zip(took, a["stages"])
                  if (kinds[i] == "wait") == (sum_of == "wait"))
        assert a[sum_of + "_ns"] - b[sum_of + "_ns"] == off, (a, b)
    assert b["p50_ns"] <= a["p50_ns"] and b["p99_ns"] < a["p99_ns"]
END
	for view in report "report -d" explain flame "export -f csv" \
		"export -f folded" "export -f openmetrics" \
		"export -f perfetto"; do
		# shellcheck disable=SC2086 # words
		"$PP" $view "$KEPT" >x.own && "$PP" $view --raw "$KEPT" \
			>x.raw || return
		cmp -s x.own x.raw && echo "$view: the same" && return 1
		# shellcheck disable=SC2086 # words
		"$PP" $view own.json | cmp - x.own || return
	done
	"$PP" diff --json --raw "$KEPT" own.json | cmp - <("$PP" diff --json \
		--raw "$KEPT" "$KEPT") &&
		"$PP" report "$KEPT" | grep -q "pathprof's own: subtracted" &&
		"$PP" report --raw "$KEPT" | grep -q 'own: included'
}

# More of its own than there was time: nothing is left, and not less.
never_negative() {
	python3 -IS - "$KEPT" >more.json <<'END'
import json, sys
p = json.load(open(sys.argv[1]))
for path in p["paths"]:
    path["stage_probe_ns"] = [1 << 50] * len(path["stages"])
print(json.dumps(p))
END
	"$PP" export more.json >zero.json && python3 -IS -c '
import json
for path in json.load(open("zero.json"))["paths"]:
    assert not any(path["stage_ns"]) and not path["work_ns"], path
    assert path["p50_ns"] >= 0' && "$PP" report -d more.json >shown &&
		! grep -nE '.{81}' shown
}

# On a wide terminal the table has quantiles; nowhere else.
wide() {
	script -qc "stty cols 120; '$PP' report '$KEPT'" /dev/null >wide.txt &&
		grep -q 'WAIT/PKT     P50     P99  PATH' wide.txt &&
		script -qc "stty cols 80; '$PP' report '$KEPT'" /dev/null \
			>narrow.txt && ! grep -q P99 narrow.txt &&
		! tr -d '\r' <narrow.txt | grep -nE '.{81}'
}

# Added to itself, every count of a profile is twice what it was.
merged() {
	"$PP" merge -o two.json "$KEPT" "$KEPT" &&
		python3 -IS - "$KEPT" two.json <<'END'
import json, sys
one, two = (json.load(open(name)) for name in sys.argv[1:])
def counts(p):
    for path in p["paths"]:
        yield [path[k] for k in ("packets", "segments", "bytes", "work_ns",
               "wait_ns")] + path["stage_ns"] + path["stage_probe_ns"] + \
              path["histogram"]
    yield [v for k, v in sorted(p["account"].items())]
assert len(one["paths"]) == len(two["paths"]) > 5
for a, b in zip(counts(one), counts(two), strict=True):
    assert [2 * n for n in a] == b, (a, b)
END
}

# A sum past 63 bits is refused, be it one file's or that of several.
overflown() {
	local big=9000000000000000000
	# Of two paths; of one, which may be; of two files.
	sed -E "s/(\"packets\": )[0-9]+/\1$big/" "$KEPT" >much.json
	sed -E "0,/(\"packets\": )[0-9]+/s//\1$big/" "$KEPT" >most.json
	refuses much.json 'adds up to more than can be counted' &&
		"$PP" report -d most.json >/dev/null &&
		! "$PP" merge -o none.json most.json most.json 2>err &&
		[ "$(wc -l <err)" -eq 1 ] &&
		grep -q 'most.json the sum is more than a profile' err &&
		[ ! -e none.json ]
}

path_twice() {
	python3 -IS - "$KEPT" >twice.json <<'END'
import json, sys
p = json.load(open(sys.argv[1]))
p["paths"].append(p["paths"][0])
print(json.dumps(p))
END
	refuses twice.json '"paths" has one path twice'
}

# What is long, or takes a hundred times its size in memory, is not read to its end.
too_large() {
	refuses <(printf '"' && head -c 80M /dev/zero | tr '\0' x) 'too large' &&
		refuses <(printf '[{}' && yes ',{}' | head -n 3M && echo ']') \
			'too large'
}

# refuses_output PATH PATTERN: merge -o PATH fails with one line that matches.
refuses_output() {
	"$PP" merge -o "$1" "$KEPT" "$KEPT" 2>stderr
	[ $? -eq 1 ] && [ "$(wc -l <stderr)" -eq 1 ] && grep -qE "$2" stderr
}

# What is no regular file stays what it is: a rename would replace it.
output_kept() {
	local rc=0
	cp "$KEPT" target.json && ln -s target.json link && ln -s none.json gone &&
		mkfifo fifo || return
	refuses_output link 'a symbolic link' && [ -L link ] &&
		cmp target.json "$KEPT" || rc=1
	refuses_output gone 'a symbolic link' && [ -L gone ] &&
		[ ! -e none.json ] || rc=1
	refuses_output fifo 'a FIFO' && [ -p fifo ] || rc=1
	# One of our own: if this fails, the device is gone.  Needs root.
	if mknod device c 1 7 2>/dev/null; then
		refuses_output device 'a device' && [ -c device ] || rc=1
	fi
	refuses_output . 'Is a directory' || rc=1
	refuses_output no/such/file 'No such file' || rc=1
	[ -z "$(find . -name '*.??????' ! -name '*.json')" ] && return $rc
}

# "-" is stdout, which may be full; a regular file is replaced as a whole.
output_stdout() {
	"$PP" merge -o two.json "$KEPT" "$KEPT" &&
		"$PP" merge -o - "$KEPT" "$KEPT" | cmp - two.json &&
		[ ! -e ./- ] || return
	! "$PP" merge -o - "$KEPT" "$KEPT" >/dev/full 2>stderr &&
		grep -q 'cannot write stdout: No space' stderr || return
	ln two.json other.json && echo old >two.json &&
		"$PP" merge -o two.json "$KEPT" "$KEPT" &&
		[ "$(cat other.json)" = old ]
}

# A drop's reason keeps its subsystem, and its function: in every view, and in a
# sum with a profile that has another reason of that number.
drops() {
	local text
	sed -e '/"end": "dropped"/{n;s/1,/196610,\n   "location": "ovs_dp_process_packet",/}' \
		-e 's/"1": "not_specified"/"196610": "openvswitch.last_action"/' \
		"$KEPT" >ovs.json
	sed 's/openvswitch.last_action/openvswitch.explicit/' ovs.json >ovs2.json
	# The ids of these paths follow from their reason and function.
	"$PP" report --json --raw ovs.json | grep -v '"id": "' >back.json
	grep -v '"id": "' ovs.json | cmp - back.json &&
		"$PP" report --detail ovs.json >text &&
		grep -q 'drop:openvsw' text &&
		grep -q 'dropped in ovs_dp_process_packet()' text &&
		"$PP" merge -o sum.json ovs.json ovs2.json "$KEPT" || return
	text=$(grep -A4 '"reasons"' sum.json)
	[[ $text = *'"196610": "openvswitch.last_action"'* &&
	$text = *'"196611": "openvswitch.explicit"'* ]] &&
		[ "$(grep -c '"reason": 19661' sum.json)" -eq \
			"$((2 * $(grep -c '"reason": 19661' ovs.json)))" ] &&
		[ "$(grep -c '"location"' sum.json)" -eq \
			"$((2 * $(grep -c '"location"' ovs.json)))" ]
}

# Ids are the documented hash (profile-format.rst), computed here from the file;
# exports use them, and the order of paths does not matter.
ids() {
	"$PP" report --json ovs.json >ids.json &&
		"$PP" export -f openmetrics ovs.json >ids.openmetrics || return
	python3 -IS - <<'END'
import json
p = json.load(open("ids.json"))
names = {s["id"]: s["name"] for s in p["stages"]}
def fnv(text):
    h = 0xcbf29ce484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001b3 % 2 ** 64
    return "%016x" % h
seen = set()
for path in p["paths"]:
    text = "|".join([path["direction"], str(path["family"]),
                     ",".join(names[i] for i in path["stages"]),
                     ",".join(path["flags"]), ",".join(path["facts"]),
                     path["end"], ""])
    if path["end"] == "dropped":
        text += "%s|%s" % (p["reasons"].get(str(path["reason"]),
                                            path["reason"]),
                           path.get("location", ""))
    assert path["id"] == fnv(text), text
    seen.add(path["id"])
assert len(seen) == len(p["paths"]) > 20
metrics = open("ids.openmetrics").read()
assert all('{path="%s",' % i in metrics for i in seen)
END
}

# Profiles recorded one after the other: rates are means.
merged_rate() {
	sed 's/"duration_ns": /&1/;s/"open_ns": /&1/' "$KEPT" >long.json
	"$PP" merge -o sum.json "$KEPT" long.json &&
		[ "$(number duration_ns sum.json)" -eq \
			$(($(number duration_ns "$KEPT") + $(number duration_ns long.json))) ]
}
number() { sed -n "s/^ \"$1\": \([0-9]*\),/\1/p" "$2"; }

# Packets of another --sample weigh something else.
merge_refused() {
	sed 's/"sample": 1,/"sample": 2,/' "$KEPT" >half.json
	"$PP" merge -o none.json "$KEPT" half.json 2>stderr
	[ $? -eq 1 ] && grep -q 'another --sample' stderr && [ ! -e none.json ]
}

# other_filter PLACE: a profile that was recorded with another filter there.
other_filter() {
	sed -E "$1" "$KEPT" >filter.json
	! cmp -s filter.json "$KEPT"
}

# The sum would be of neither; check cannot tell; diff says so and goes on.
filters_differ() {
	local edit
	for edit in 's/("port": )5201/\180/' 's/("addr": ")/\110.0.0.0\/8/' \
		's/^  "addr": ""/&,\n  "filter": "dev eth0"/' \
		's/^  "addr": ""/&,\n  "udp": true/' \
		's/^  "addr": ""/&,\n  "fine": true/'; do
		other_filter "$edit" || return
		! "$PP" merge -o none.json "$KEPT" filter.json 2>err &&
			[ "$(wc -l <err)" -eq 1 ] && [ ! -e none.json ] &&
			grep -q 'another filter' err || return
		"$PP" check "$KEPT" filter.json 2>err
		[ $? -eq 125 ] && grep -q 'another filter' err || return
		"$PP" diff "$KEPT" filter.json >text &&
			grep -q '^Recorded with different filters' text &&
			"$PP" diff --json "$KEPT" filter.json |
			grep -q '"same_filter": false' || return
	done
	"$PP" diff "$KEPT" "$KEPT" >text && ! grep -q filters text
}

# Times with and without pathprof's own cost are not compared.
costs_differ() {
	local old=$TOP/tests/unit/test_profile/version-2.json
	! "$PP" diff "$old" "$KEPT" 2>err >out.txt && [ ! -s out.txt ] &&
		grep -q 'own cost is not known; --raw' err &&
		"$PP" diff --raw "$old" "$KEPT" >out.txt
}

# With itself nothing differs; with twice the cost per packet, all does.
diffed() {
	"$PP" diff "$KEPT" "$KEPT" >same.txt && "$PP" diff --json "$KEPT" \
		"$KEPT" >same.json && ! head -n -1 same.txt | grep -F '*' &&
		! grep -nE '.{81}' same.txt && python3 -IS - same.json <<'END'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert len(rows) > 5
assert all(r["packets"][0] == r["packets"][1] for r in rows)
END
}

# Each format is what its readers take, with the sums of the profile.
exported() {
	for format in json csv folded openmetrics perfetto; do
		"$PP" export -f $format "$KEPT" >x.$format || return
	done
	"$PP" flame "$KEPT" >x.svg || return
	python3 -I - x.json <<'END'
import csv, json, sys, xml.dom.minidom
p = json.load(open(sys.argv[1]))
want = sum(sum(path["stage_ns"]) for path in p["paths"])
assert want == sum(int(row["ns"]) for row in csv.DictReader(open("x.csv")))
assert want == sum(int(line.rsplit(" ", 1)[1]) for line in open("x.folded"))
lines = open("x.openmetrics").read().splitlines()
assert lines[-1] == "# EOF"
assert sum(path["packets"] for path in p["paths"]) == sum(
    float(line.rsplit(" ", 1)[1]) for line in lines
    if line.startswith("pathprof_packets_total"))
assert json.load(open("x.perfetto"))["traceEvents"]
assert sum(path["p99_ns"] for path in p["paths"]) > 0
gauges = [line for line in lines if 'quantile="0.99"' in line]
assert len(gauges) == len(p["paths"])
assert len(xml.dom.minidom.parse("x.svg").getElementsByTagName("rect")) > 20
END
}

# What a file names never reaches the terminal, or a picture, as it is; nor does
# the half of a character where a name is cut.
hostile() {
	sed 's/"release": "/&\\u001b[31m<\/text>]]>\\u009b\\u007f\\uffff/
		s/"gro"/"g\\u001b;,\\""/; s/"netif"/"n\\u001b]0;"/
		s/"command": "/&'"x$(printf 'é%.0s' {1..60})"'/' "$KEPT" >one.json
	cmp -s one.json "$KEPT" && return 1
	"$PP" merge -o hostile.json one.json one.json one.json || return
	for view in report "report -d" "report --json" explain "explain --json" \
		flame "export -f csv" "export -f folded" "export -f openmetrics" \
		"export -f perfetto" "check --all hostile.json" \
		"diff hostile.json" "diff --json hostile.json"; do
		# shellcheck disable=SC2086 # words
		"$PP" $view hostile.json >shown 2>&1 || return
		LC_ALL=C grep -nE $'[\001-\010\013-\037\177]|\302[\200-\237]' shown &&
			return 1
		iconv -f UTF-8 -t UTF-8 shown >/dev/null || return
	done
	"$PP" flame hostile.json >x.svg && python3 -I -c \
		'import xml.dom.minidom as x; x.parse("x.svg")'
}

explained() {
	"$PP" explain "$KEPT" >text && grep -q '^Header prediction' text &&
		grep -q 'fast path .* pkt' text && ! grep -nE '.{81}' text &&
		"$PP" explain --json "$KEPT" | python3 -IS -c \
		'import json, sys; assert json.load(sys.stdin)["branches"]'
}

# first_fact FACTS-OF-SLOW FACTS-OF-FAST FIRST: of received data.
first_fact() {
	python3 -IS - "$KEPT" "$1" "$2" >facts.json <<'EOF'
import json, sys
with open(sys.argv[1]) as f:
    p = json.load(f)
for x in p["paths"]:
    if x["direction"] == "rx" and "data" in x["flags"]:
        x["facts"] = sys.argv[2 if "slow" in x["flags"] else 3].split(",")
print(json.dumps(p).replace('[""]', "[]"))
EOF
	"$PP" explain --json facts.json | python3 -IS -c \
		'import json, sys; b = json.load(sys.stdin)["branches"][0]
assert b["branch"] == "prediction of data"
got = b["facts"][0]["fact"]
sys.exit(got != sys.argv[1] and "got " + got)' "$3"
}
separated() {
	first_fact "timestamp,window change" timestamp "window change" &&
		first_fact "prediction off,urgent" "" urgent &&
		first_fact "prediction off" "" "prediction off"
}

# Data that --stages followed from its sender counts as received, too.
whole_host() {
	python3 -IS - "$KEPT" >whole.json <<'EOF' || return
import json, sys
with open(sys.argv[1]) as f:
    p = json.load(f)
for x in p["paths"]:
    if x["direction"] == "rx" and "established" in x["flags"]:
        x["direction"] = "tx"
print(json.dumps(p))
EOF
	"$PP" explain --json "$KEPT" >one.json &&
		"$PP" explain --json whole.json >two.json || return
	python3 -IS - <<'EOF' || return
import json
def ways(name):
    with open(name) as f:
        return {b["branch"]: b["ways"] for b in json.load(f)["branches"]}
one, two = ways("one.json"), ways("two.json")
for branch in "prediction of data", "prediction of acks", "backlog":
    assert one[branch] == two[branch], branch
EOF
	"$PP" merge -o many1.json "$KEPT" "$KEPT" "$KEPT" &&
		"$PP" merge -o many2.json whole.json whole.json whole.json &&
		"$PP" check --all --metric rx.data many1.json many2.json >text &&
		grep -q 'rx.data.cost' text
}

# Times of stages are kept where they are, add up, and have quantiles.
timed() {
	python3 -IS - "$KEPT" <<'END' || return
import json, sys
p = json.load(open(sys.argv[1]))
stage = next(s for s in p["stages"] if s["name"] == "estab")
assert "times" not in stage
stage["times"] = {"histogram": 11 * [0] + [300, 0, 3], "p50_ns": 0, "p99_ns": 0}
json.dump(p, open("timed.json", "w"))
END
	"$PP" export --raw timed.json >a.json &&
		"$PP" merge -o twice.json timed.json timed.json &&
		"$PP" merge -o part.json timed.json "$KEPT" || return
	python3 -IS - <<'END' && "$PP" report -d --raw timed.json >text &&
import json
def times(name):
    return {s["name"]: s["times"] for s in json.load(open(name))["stages"]
            if "times" in s}
assert times("a.json") == {"estab": {"histogram": 11 * [0] + [300, 0, 3],
                                     "p50_ns": 3082, "p99_ns": 4095}}, times("a.json")
assert times("twice.json")["estab"]["histogram"][11:] == [600, 0, 6]
assert not times("part.json"), "times of a part"
END
		grep -E '^estab +303 .* 3\.1K +4\.1K$' text || return
	! "$PP" report -d "$KEPT" | grep '^STAGE' &&
		sed 's/\[0, 0,/[0, -1,/' timed.json >bad.json &&
		refuses bad.json '"histogram" holds no count'
}

[ -x "$PP" ] || {
	echo "1..0 # SKIP $PP is not built"
	exit 4
}
echo "KTAP version 1"
echo "1..45"
check "JSON survives reading and writing" round_trip
check "text shows the account and fits 80 columns" text
check "filters survive, and are shown" filter
check "no such file" refuses none.json 'No such file'
check "a directory" refuses "$TMP" 'directory'
: >empty.json
check "an empty file" refuses empty.json 'not JSON, or cut short|empty'
echo '{"format": "perf"}' >foreign.json
check "another program's file" refuses foreign.json 'not a pathprof profile'
echo '[1, 2]' >list.json
check "JSON that is no object" refuses list.json 'not a pathprof profile'
check "a future version" damaged 's/^ "version": 4/ "version": 99/' \
	'newer pathprof \(format version 99'
check "no version" damaged 's/^ "version": 4/ "versiom": 1/' 'no format version'
check "a negative count" damaged '0,/"packets": /s//&-/' '"packets" is out'
# shellcheck disable=SC2016 # $ is sed's
check "an unknown stage" damaged '/"stages": \[$/,$s/^    3,/    63,/' \
	'"stages" names no stage'
check "an unknown flag" damaged 's/"data"/"date"/' '"flags" holds'
check "a missing account" damaged 's/"account"/"count"/' '"account" is missing'
check "sample 0" damaged 's/"sample": 1/"sample": 0/' '"sample" is 0'
check "a drop's reason and function" drops
check "path ids are the documented hash" ids
check "an empty function" damaged \
	'/"end": "dropped"/{n;s/1,/1, "location": "",/}' 'is empty, or one of too'
check "a reason beyond 32 bits" damaged \
	'/"end": "dropped"/{n;s/1,/4294967296,/}' '"reason" is out of range'
check "the sum lasts as long as its parts" merged_rate
check "an endless name" damaged \
	"s/\"release\": \"/&$(printf 'x%.0s' {1..200})/" '"release" is not'
check "files of older versions" older
check "its own cost is taken off, once, in every view" subtracted
check "and never more than there is" never_negative
check "quantiles on a wide terminal" wide
check "a probe cost that is no number" damaged \
	's/"head_ns": 92/"head_ns": -92/' '"head_ns" is out'
check "profiles add up" merged
check "no output replaces a link, a FIFO or a device" output_kept
check "an output of - is stdout" output_stdout
check "not if packets weigh differently" merge_refused
check "not past what can be counted" overflown
check "more than memory should take" too_large
check "a path twice" path_twice
check "a difference to itself is none" diffed
check "profiles of different filters" filters_differ
check "profiles with and without their own cost" costs_differ
check "exports have the same sums" exported
check "times of stages are kept, add up and have quantiles" timed
check "control characters and markup are not passed on" hostile
check "explain" explained
check "explain a path through the whole host" whole_host
check "the fact that separates the ways comes first" separated
check "completion is valid bash" eval '"$PP" completion | bash -n'
check "cut short anywhere" truncated
check "a byte changed anywhere" flipped
[ $bad -eq 0 ]
