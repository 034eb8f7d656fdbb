#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The full screen of `pathprof top` (view/screen*.c) of a kept profile,
# in a terminal of tmux: what a user sees after each key, at two sizes.

# shellcheck source=tests/unit/lib/files.sh
. "$(dirname "$0")/../lib/files.sh"
KEPT=$TOP/tests/unit/test_profile/sample.json
OBJECTS=$TOP/build/pathprof
export TERM=screen LC_ALL=C.UTF-8
unset TMUX

server=0 # one that ends may still hold its socket
tm() { tmux -S "$TMP/tmux$server" -f /dev/null "$@"; }
trap 'tm kill-server 2>/dev/null; rm -rf "$TMP"' EXIT

# All of pathprof but its commands.
build() {
	local objects
	# A source that is gone may have left its object.
	objects=$(cd "$TOP/userspace/pathprof" && printf '%s\n' */*.c |
		grep -v '^commands/' |
		sed "s,.*,$OBJECTS/&," | sed 's/c$/o/')
	# shellcheck disable=SC2046,SC2086 # lists of words
	gcc -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -I"$TOP/bpf" \
		-I"$TOP/userspace/pathprof" \
		-o screen_fake "$TOP/tests/unit/pathprof/screen_fake.c" $objects \
		$(pkg-config --libs libbpf jansson ncursesw libpcap) -lm -pthread
}

# start COLUMNSxLINES FILE: in a terminal of this size.
start() {
	tm kill-server 2>/dev/null
	server=$((server + 1))
	tm new-session -d -x "${1%x*}" -y "${1#*x}" "./screen_fake $2" &&
		shows 'help'
}

# shows PATTERN: the screen does within 30 s, and mostly at once; it stays in the
# file screen.
shows() {
	local i
	for ((i = 0; i < 300; i++)); do
		tm capture-pane -p >screen
		grep -qE -- "$1" screen && return
		sleep 0.1 # between two looks
	done
	echo "not shown: $1"
	cat screen
	return 1
}

# press KEY PATTERN
press() { tm send-keys "$1" && shows "$2"; }

# Expected: rates, totals, the reasons' line, drops with reason and place.
first_page() {
	start 80x24 "$KEPT" && shows '263 pkt/s .* drops 2' &&
		shows '^Totals of 0\.7 s: 173 packets' &&
		shows '^Received data: fast 9 %, slow 91 %' &&
		shows '^By path, sorted by cost' &&
		shows '1 .*not_specified, rx after tcp' &&
		shows '^> *[0-9.]+ .*rx slow data' &&
		shows '^ +netif [0-9.]+K  ip .*' && shows '\(done 8\.0M\)'
}

# Expected: as many distinct rows as rows, with all stages of each below it.
rows_differ() {
	start 200x60 "$KEPT" || return
	grep -E '^[> ] *[0-9]+\.[0-9] ' screen | cut -c62- >labels
	[ "$(wc -l <labels)" -gt 20 ] && sort labels | uniq -d | tee twice &&
		[ ! -s twice ]
}

# Expected: every key does what the help says.
keys() {
	start 80x24 "$KEPT" && press '?' 'sort by the next column' &&
		press Escape '^By path' &&
		press s 'sorted by packets' && press g '^By stage, ' &&
		shows '[0-9] +tx sent' && press g '^By end' &&
		press g '^By path' && press d 'REASON' &&
		press Escape '^By path' && press Enter 'Esc back' &&
		shows 'meaning|packet enters the stack|TCP header' &&
		press Enter '^By path' && press p PAUSED && press + 'more was' &&
		press - 'less was' && press c '^Last 0\.7 s' &&
		press Down '^>.*' && press r 'Counting from now on'
}

# Expected: the filter acts while it is typed; Esc clears it.
filter() {
	start 80x24 "$KEPT" && press / '^/_' && tm send-keys -l syn &&
		shows 'with "syn"' || return
	grep -E '^[> ] *[0-9]+\.[0-9] ' screen | grep -v syn && return 1
	press x 'No row contains "synx"' && press BSpace '/syn_' &&
		press Enter 'with "syn"' && press Escape '^By path, sorted by cost$'
}

# Expected: a reason longer than the line goes on in the next line.
long_reason() {
	local reason=a_reason_with_31_characters_in_it
	sed "s/\"not_specified\"/\"${reason:0:31}\"/" "$KEPT" >long.json
	start 48x24 long.json && tr -d '\n ' <screen |
		grep -q "${reason:0:31},rxaftertcp"
}

# Expected: it ends with status 0 and gives the terminal back.
quits() {
	tm kill-server 2>/dev/null
	server=$((server + 1))
	tm new-session -d -x 80 -y 24 \
		"./screen_fake $KEPT; echo \"status \$?\"; sleep 60" &&
		shows 'help' && press q 'status 0'
}

if ! command -v tmux >/dev/null || [ ! -e "$OBJECTS/view/screen.o" ]; then
	echo "1..0 # SKIP tmux or $OBJECTS is not there"
	exit 4
fi
build || exit
echo "KTAP version 1"
echo "1..6"
check "the first page answers at 80x24" first_page
check "rows differ by what made them differ, at 200x60" rows_differ
check "keys do what the help says" keys
check "the filter acts as it is typed" filter
check "a long reason is wrapped, not cut" long_reason
check "q restores the terminal" quits
[ $bad -eq 0 ]
