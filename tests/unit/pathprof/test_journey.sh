#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The reader of events files and the journeys it shows, against a kept file and
# damaged copies of it: each is read or refused with one sentence.

# shellcheck source=tests/unit/lib/files.sh
. "$(dirname "$0")/../lib/files.sh"
KEPT=$TOP/tests/unit/pathprof/test_journey/gro.events
SUMS=$TOP/tests/guest/pathprof/journeys.py

refuses() { refused journey "$@"; }
damaged() { edited journey "$KEPT" "$@"; }

# usage PATTERN WORD...: status 2, one line that matches.
usage() {
	local pattern=$1 status
	shift
	powerless "$PP" "$@" >stdout 2>stderr
	status=$?
	cat stderr
	[ $status -eq 2 ] && [ ! -s stdout ] && [ "$(wc -l <stderr)" -eq 1 ] &&
		grep -qE -- "$pattern" stderr
}

# A mistake must not record on this machine.
powerless() {
	[ "$(id -u)" -ne 0 ] || set -- setpriv --inh-caps=-all \
		--bounding-set=-all "$@"
	"$@"
}

# The events of each path add up to the sums that the kernel kept; with one
# nanosecond more in one event they do not.
adds_up() {
	head -n 1 "$KEPT" | python3 -IS -c 'import json, sys
json.dump(json.load(sys.stdin)["profile"], sys.stdout)' >profile.json &&
		python3 -IS "$SUMS" "$KEPT" profile.json || return
	python3 -IS - "$KEPT" >off.events <<'END' || return
import json, sys
with open(sys.argv[1]) as f:
    lines = [json.loads(line) for line in f]
lines[3]["events"][-1]["took_ns"] += 1
for line in lines:
    print(json.dumps(line))
END
	! python3 -IS "$SUMS" off.events profile.json
}

# Of every packet: next_ns and pathprof's own make up the whole time, offsets
# grow, and the last event has no successor.
every_packet() {
	local packets number
	packets=$(($(wc -l <"$KEPT") - 1))
	"$PP" journey --list --json "$KEPT" >list.json || return
	for ((number = 1; number <= packets; number++)); do
		"$PP" journey --json "$KEPT" $number || return
	done >all.json
	python3 -IS - list.json all.json $packets <<'END'
import json, sys
with open(sys.argv[1]) as f:
    rows = json.load(f)["packets"]
with open(sys.argv[2]) as f:
    texts = f.read().replace("\n}\n{", "\n}\0{").split("\0")
packets = [json.loads(text)["packets"][0] for text in texts]
assert len(rows) == len(packets) == int(sys.argv[3]) > 20
for row, p in zip(rows, packets):
    assert row.items() <= p.items(), row
    at = [e["ns"] for e in p["events"]]
    assert at == sorted(at) and at[0] == 0 and at[-1] == p["total_ns"]
    nexts = [e["next_ns"] for e in p["events"] if "next_ns" in e]
    assert len(nexts) == len(at) - 1
    assert sum(nexts) + p["own_ns"] == p["total_ns"], p
    assert p["work_ns"] + p["wait_ns"] == sum(nexts), p
END
}

# The slowest is the first of the list in that order, and the list has every
# packet; a path takes only those of its words.
chosen() {
	"$PP" journey "$KEPT" --slowest --json >slowest &&
		"$PP" journey "$KEPT" --list --slowest --json >order &&
		"$PP" journey "$KEPT" --list --path "data rx" --json >rx &&
		python3 -IS - "$KEPT" <<'END'
import json, sys
def load(name):
    with open(name) as f:
        return json.load(f)["packets"]
with open(sys.argv[1]) as f:
    kept = [json.loads(line) for line in f][1:]
times = [p["total_ns"] for p in load("order")]
assert len(times) == len(kept) and times == sorted(times, reverse=True)
assert load("slowest")[0]["packet"] == load("order")[0]["packet"]
want = {p["packet"] for p in kept
        if p["direction"] == "rx" and "data" in p["flags"]}
assert want and {p["packet"] for p in load("rx")} == want
END
}

# What became one packet names the others: each that GRO merged names one that
# names it, and each data packet received was sent from here.
related() {
	"$PP" journey "$KEPT" --list --json >list.json &&
		for number in $(python3 -IS -c '
import json
for p in json.load(open("list.json"))["packets"]:
    print(p["packet"])'); do
			"$PP" journey "$KEPT" "$number" --json || return
		done >all.json
	python3 -IS - <<'END'
import json
with open("all.json") as f:
    texts = f.read().replace("\n}\n{", "\n}\0{").split("\0")
packets = {p["packet"]: p for t in texts for p in json.loads(t)["packets"]}
merged = [p for p in packets.values() if p["end"] == "merged"]
assert merged
for p in merged:
    assert len(p["merged_into"]) == 1, p
    assert p["packet"] in packets[p["merged_into"][0]]["merged_here"]
received = [p for p in packets.values() if p["path"].startswith("rx")
            and "data" in p["flags"] and p["end"] != "merged"]
assert received
for p in received:
    sent, = p["sent_as"]
    assert p["packet"] in packets[sent]["received_as"]
    assert packets[sent]["start_ns"] <= p["start_ns"]
END
}

# In text: a line for each event, 79 columns, why, and the end.
told() {
	local number
	number=$(grep -m 1 '"again":true' "$KEPT" |
		sed -E 's/^\{"packet":([0-9]+),.*/\1/')
	"$PP" journey "$KEPT" "$number" >text && "$PP" journey "$KEPT" >>text ||
		return
	cat text
	! grep -nE '.{80}' text && grep -qE ' again copy' text &&
		grep -q '^End: delivered after [0-9]* ns: ' text &&
		grep -qE '^  ack (now|delayed) +' text &&
		grep -qE ' wait +[0-9]+  done' text &&
		grep -qE '^  10.9.0.1:[0-9]+ > 10.9.0.2:4023$' text
}

# OF PATH is the mean of the path with the same stages: before each path of the
# file there is another one now, which differs in its first stage only.
means() {
	local number
	python3 -IS - "$KEPT" >twins.events <<'END' || return
import json, sys
with open(sys.argv[1]) as f:
    lines = [json.loads(line) for line in f]
paths = lines[0]["profile"]["paths"]
lines[0]["profile"]["paths"] = [
    twin for path in paths for twin in (
        dict(path, stages=[34 if path["direction"] == "tx" else 16]
             + path["stages"][1:],
             stage_ns=[3 * ns for ns in path["stage_ns"]],
             work_ns=3 * path["work_ns"], wait_ns=3 * path["wait_ns"]),
        path)]
for line in lines:
    print(json.dumps(line))
END
	for ((number = 1; number < $(wc -l <"$KEPT"); number++)); do
		"$PP" journey twins.events $number || return
	done >all.text
	python3 -IS - "$KEPT" <<'END'
import json, sys
with open(sys.argv[1]) as f:
    profile, *packets = [json.loads(line) for line in f]
profile = profile["profile"]
names = {s["id"]: s["name"] for s in profile["stages"]}
def head(p):
    return (p["direction"], p["family"], p["end"], p["reason"],
            *sorted(p["flags"]), *sorted(p["facts"]))
shown = open("all.text").read().split("STAGE\n")[1:]
assert len(shown) == len(packets)
for p, text in zip(packets, shown):
    rows = [(line[46:].split("  ")[0], line[24:34].strip())
            for line in text.split("\n\n")[0].splitlines()]
    rows = [(stage, mean) for stage, mean in rows if mean.isdigit()]
    want = [[(names[stage], str(ns // path["packets"]))
             for stage, ns in zip(path["stages"][:-1], path["stage_ns"])]
            for path in profile["paths"] if head(path) == head(p)]
    assert rows and rows in want, (p["packet"], rows, want)
END
}

# Lost events leave a gap that is shown, and an unknown end.
gaps() {
	python3 -IS - "$KEPT" >gaps.events <<'END'
import json, sys
with open(sys.argv[1]) as f:
    lines = [json.loads(line) for line in f]
lines[0]["lost"] = 3
p = next(p for p in lines[1:] if len(p["events"]) > 5)
del p["events"][2], p["source"]
p["events"][2]["lost"] = 1
p.update(lost=2, end=None)
lines[1] = dict(p, packet=1)
for line in lines:
    print(json.dumps(line))
END
	"$PP" journey gaps.events 1 >text && "$PP" journey gaps.events >>text ||
		return
	cat text
	grep -q '2 of its events were lost' text &&
		grep -q '(1 events lost)' text &&
		grep -q '(addresses lost)' text &&
		grep -q '^End: not kept' text &&
		grep -q ' 3 events lost$' text
}

# A line that is long is not read to its end.
too_large() {
	refuses <(
		head -n 1 "$KEPT"
		printf '{"packet":1,"source":"'
		head -c 80M /dev/zero | tr '\0' x
	) '"packet" is too large.*\(line 2\)'
}

# Cut short anywhere: never a crash, always refused.
truncated() {
	local size i status
	size=$(stat -c %s "$KEPT")
	for ((i = 0; i < size - 2; i += 1499)); do
		head -c $i "$KEPT" >cut.events
		"$PP" journey cut.events >/dev/null 2>stderr
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
	for ((i = 1; i < size; i += 997)); do
		{
			head -c $((i - 1)) "$KEPT"
			printf '9'
			tail -c +$((i + 1)) "$KEPT"
		} >flip.events
		"$PP" journey --slowest flip.events >/dev/null 2>&1
		status=$?
		[ $status -le 1 ] || {
			echo "byte $i: status $status"
			return 1
		}
	done
}

# A trace has a slice for each event, none overlaps another of its track, and
# each packet's arrow has a begin and an end.
trace() {
	"$PP" journey "$KEPT" --trace "$1" >trace.json || return
	python3 -IS - "$KEPT" <<'END'
import json, sys
events = json.load(open("trace.json"))["traceEvents"]
packets = [json.loads(line) for line in open(sys.argv[1])][1:]
slices = [e for e in events if e["ph"] == "X"]
assert len(slices) == sum(len(p["events"]) for p in packets) > 20
tracks = {}
for e in slices:
    tracks.setdefault(e["tid"], []).append((e["ts"], e["ts"] + e["dur"]))
for track in tracks.values():
    track.sort()
    assert all(a[1] <= b[0] + 0.001 for a, b in zip(track, track[1:])), track
named = {e["tid"] for e in events if e["name"] == "thread_name"}
assert named == set(tracks)
long = {p["packet"] for p in packets if len(p["events"]) > 1}
for ph in "sf":
    assert {e["id"] for e in events if e["ph"] == ph and
            e["name"] == "packet"} == long, ph
END
}

# with_bytes: the kept file, with a captured IPv4 header and a connection's
# state in every packet.
with_bytes() {
	sed '2,$s/,"events":\[/,"state":{"cwnd":17,"srtt_us":250},"length":60,"captured":"450000280001000040067ccd7f0000017f000001"&/' \
		"$KEPT" >bytes.events
}

# pcapng has every packet, with the bytes and the number; tcpdump reads it.
pcapng() {
	with_bytes && "$PP" journey bytes.events --pcapng >x.pcapng || return
	python3 -IS - "$KEPT" <<'END' || return
import json, struct, sys
data, at, found = open("x.pcapng", "rb").read(), 0, []
packets = [json.loads(line) for line in open(sys.argv[1])][1:]
while at < len(data):
    kind, size = struct.unpack_from("<II", data, at)
    assert struct.unpack_from("<I", data, at + size - 4)[0] == size, "length"
    if kind == 6:
        high, low, have, length = struct.unpack_from("<IIII", data, at + 12)
        code, n = struct.unpack_from("<HH", data, at + 28 + have)
        comment = data[at + 32 + have:][:n].decode()
        assert (have, length, code) == (20, 60, 1), "packet block"
        assert data[at + 28:][:4] == bytes.fromhex("45000028")
        found.append((int(comment.split()[1][:-1]), (high << 32 | low)))
    at += size
assert at == len(data) and found[0][1] >= packets[0]["start_ns"]
assert [n for n, _ in found] == [p["packet"] for p in packets]
END
	! command -v tcpdump >/dev/null ||
		[ "$(tcpdump -nn -r x.pcapng 2>/dev/null | wc -l)" -eq \
			"$(($(wc -l <"$KEPT") - 1))" ]
}

# The state of the connection is in the text and in JSON.
state() {
	with_bytes && "$PP" journey bytes.events --slowest |
		grep -q '^  cwnd 17 ' && "$PP" journey --json bytes.events 1 |
		grep -q '"srtt_us": 250'
}
no_bytes() {
	"$PP" journey "$KEPT" --pcapng >stdout 2>stderr
	[ $? -eq 1 ] && [ ! -s stdout ] && grep -q 'record with --capture' stderr
}

[ -x "$PP" ] || {
	echo "1..0 # SKIP $PP is not built"
	exit 4
}
echo "KTAP version 1"
echo "1..37"
check "events add up to the profile" adds_up
check "every packet's times add up" every_packet
check "the slowest packets, and those of a path" chosen
check "merged packets name each other" related
check "a journey as text" told
check "the means of a journey's own path" means
check "lost events are shown" gaps
check "no such file" refuses none.events 'No such file'
check "a directory" refuses "$TMP" 'directory'
: >empty.events
check "an empty file" refuses empty.events 'not an events file'
tr -d '\n' <"$TOP/tests/unit/test_profile/sample.json" >profile.json
check "a profile" refuses profile.json 'its "format" is not "pathprof-events"'
check "another version" damaged '1s/"version":1/"version":2/' \
	'another pathprof'
check "a damaged profile" damaged '1s/"sample":1/"sample":0/' '"sample" is 0'
check "a packet too few" damaged '$d' 'fewer packets'
# shellcheck disable=SC2016 # $ is sed's
check "a packet too many" damaged '$p' 'more packets'
check "a long line" too_large
check "a number twice" damaged '3s/"packet":2/"packet":1/' \
	'two packets have one number'
check "an unknown stage" damaged '3s/"stage":[0-9]+/"stage":63/' \
	'"stage" names no stage of this file \(line 3\)'
check "a negative time" damaged '3s/"ns":0/"ns":-1/' '"ns" is out of range'
check "an event older than the one before it" damaged \
	'3s/"ns":0,/"ns":999999999999,/' '"ns" goes back'
check "an unknown flag" damaged '3s/"flags":\["/&x/' '"flags" holds'
check "an invalid address" damaged \
	'3s/"source":"/&\\u001b/' '"source" is no address'
check "a missing end" damaged '3s/"end":/"eng":/' '"end" is not'
check "no such packet" eval '! "$PP" journey "$KEPT" 9999 2>err &&
	grep -q "has no packet 9999" err'
check "no such path" eval '! "$PP" journey "$KEPT" --path nowhere 2>err &&
	grep -q "no packet of path nowhere" err'
check "no file" usage 'which events file' journey
check "a packet number that is no number" usage 'is a number' journey "$KEPT" x
check "a packet number together with a choice" usage 'packet 1, or' journey "$KEPT" 1 --slowest
check "a buffer size without --events" usage "is for --events" record -o x --event-buffer 8
check "events written to the profile's file" usage 'same file' record --events x -o x
check "a trace, one track per stage" trace stage
check "a trace, one track per CPU" trace cpu
check "pcapng of captured bytes" pcapng
check "the state of the connection" state
check "pcapng without captured bytes" no_bytes
check "a file cut short anywhere" truncated
check "a file with a byte changed anywhere" flipped
[ $bad -eq 0 ]
