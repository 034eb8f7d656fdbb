# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# What tests that record profiles share: traffic whose packets are known, and
# questions to the profile.  Sourced.

# Questions to a profile file: fields FILE EXPRESSION..., one answer a line,
# with p the profile, a its account, n(words...) the packets of the paths that
# have all these words (direction, end, flags, vFAMILY, @stage, fact NAME), and
# n(..., k="segments") another sum; joined(True) those that TCP joined to
# another one, joined(False) the backlog.  One start of python answers them all.
fields() {
	python3 -IS - "$@" <<'EOF'
import json, sys
with open(sys.argv[1]) as f:
    p = json.load(f)
names = {s["id"]: s["name"] for s in p["stages"]}
words = [({x["direction"], x["end"], "v%d" % x["family"], *x["flags"],
           *("@" + names[i] for i in x["stages"]),
           *("fact " + i for i in x["facts"])}, x) for x in p["paths"]]
def n(*want, k="packets"):
    return sum(x[k] for have, x in words if have.issuperset(want))
def joined(by_tcp):
    return sum(x["packets"] for have, x in words if "joined" in have
               and bool(have & {"@estab", "@state"}) == by_tcp)
a = p["account"]
for expression in sys.argv[2:]:
    answer = eval("(" + expression + ")")
    print(*answer if isinstance(answer, tuple) else [answer])
EOF
}

# each_path FILE: packets, direction, end, flags and stages, for a look at a failure
each_path() {
	fields "$1" '"\n".join(str((x["packets"], x["direction"], x["end"],
		*x["flags"], *(names[i] for i in x["stages"]))) for x in p["paths"])'
}

more_than() {
	[ "$1" -gt "$2" ] || {
		echo "$3: $1, wanted more than $2"
		return 1
	}
}

# ping_pong PORT COUNT ADDR ...: COUNT packets, each read before the next.
ping_pong() {
	python3 -IS - "$@" <<'EOF'
import socket, sys
for port, count, addr in zip(*[iter(sys.argv[1:])] * 3):
    listener = socket.create_server((addr, int(port)))
    a = socket.create_connection((addr, int(port)))
    b = listener.accept()[0]
    for i in range(int(count)):
        a.sendall(b"x" * 100)
        b.recv(1000)
EOF
}

no_programs() { ! bpftool prog | grep -qE 'name (netif_receive_s|tcp_probe|tcp_add_backlog) '; }
