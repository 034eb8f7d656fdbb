#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Queue disciplines, which hosts of the unit tests may lack, set and undone by msstune.
# long: Python starts slowly in a guest
. "$(dirname "$0")/../../lib.sh"
plan 5

tune=("$TOP/userspace/msstune/msstune.sh" --state "$TMP/state")
modprobe -a sch_netem sch_tbf sch_fq sch_fq_codel veth tcp_diag || exit

pair q r 1500
inq() { ip netns exec q "${tune[@]}" "$@"; }
# The handle is new each time; everything else must be restored.
qdiscs() { tc -n q qdisc show dev vq root | sed 's/ 8[0-9a-f]*:/ HANDLE/'; }

undone() {
	local before
	before=$(qdiscs)
	inq apply --yes --allow-disruptive "$1" && qdiscs | grep -q "$2" &&
		inq rollback && is "$(qdiscs)" "$before"
}
check "a default qdisc is restored" undone "qdisc:vq=fq maxrate 100mbit" \
	"maxrate 100Mbit"
# Read, replaced and restored in one process, because Python starts slowly in a
# guest.
python_cases /dev/stdin "$TOP" <<-'END'
	import subprocess, sys
	sys.path[:0] = [sys.argv[1] + "/userspace/msstune",
	                sys.argv[1] + "/userspace/mssab"]
	from mssab.netns import inside
	from msstune.settings import settings
	def shown():
	    text = subprocess.run(["tc", "qdisc", "show", "dev", "vq", "root"],
	                          capture_output=True, text=True, check=True).stdout
	    kind, _, rest = text.removeprefix("qdisc ").partition(" ")
	    return kind, rest.partition(":")[2]  # the handle is new each time
	with inside("q"):
	    qdisc = settings.named("qdisc:vq")
	    for value in ("fq limit 3000 flow_limit 50 quantum 4000 maxrate 77mbit",
	                  "fq_codel limit 333 target 7ms interval 70ms noecn"):
	        qdisc.write(value)
	        before, old = shown(), qdisc.read()
	        qdisc.write("pfifo limit 7")
	        qdisc.write(old)
	        print(before, shown(), old)
	        good = shown() == before and before[0] == value.split()[0]
	        print("ok" if good else "not ok", value.split()[0],
	              "is restored with all its options")
	    qdisc.write("fq maxrate 77mbit")
	    qdisc.write("fq")
	    print("ok" if "maxrate" not in qdisc.read() else "not ok",
	          "an option that is not named gets its default")
	    subprocess.run("tc qdisc replace dev vq root handle 1: tbf rate 9mbit "
	                   "burst 20kb limit 1mb && tc qdisc add dev vq parent 1:1 "
	                   "pfifo limit 7", shell=True, check=True)
	    leaf = settings.named("qdisc:vq:1:1")
	    old = leaf.read()
	    leaf.write("fq limit 99")
	    between = leaf.read()
	    leaf.write(old)
	    print(old, "|", between, "|", leaf.read())
	    good = old == leaf.read() == "pfifo limit 7" and "fq limit 99" in between
	    print("ok" if good else "not ok", "the qdisc of a class is restored")
END
