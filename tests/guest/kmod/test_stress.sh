#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# mssfrac.ko under stress: 64 checked flows over a network that loses,
# reorders and repeats, while the module comes and goes, settings change and
# namespaces end; on a kernel with fault injection also without memory.
# MSSFRAC_STRESS=N sets the number of loads and of changes.
#
#	a ---------- veth, MTU 9000, netem both ways ---------- b
#	  32 flows, IPv4 and IPv6 -->          <-- 32 flows
#	  GSO and GRO on                       GSO and GRO off
. "$(dirname "$0")/../../lib.sh"

ROUNDS=${MSSFRAC_STRESS:-5}
FAULTS=/sys/kernel/debug/failslab
if [ -d $FAULTS ]; then
	plan 10
else
	plan 5
fi

# Loaded often: keep it in memory, without what only a debugger reads.
strip --strip-debug -o "$TMP/mssfrac.ko" "$MODULE" || exit
MODULE=$TMP/mssfrac.ko
RANDOM=4711
exec 3>&1 # how far it is: the full test takes hours

loaded() { grep -q '^mssfrac ' /proc/modules; }
unload() { ! loaded || rmmod mssfrac; }
defer unload
counter() { ip netns exec "$1" sed -n "s/^$2 //p" /proc/net/mssfrac; }

pair a b 9000
ip netns exec b ethtool -K vb tso off gso off gro off
for end in a b; do
	# A full table of TIME-WAIT answers a FIN that is sent again with a RST:
	# thousands of short flows fill the 4096 of a small guest in half a minute.
	ip netns exec $end sysctl -qw net.ipv4.tcp_max_tw_buckets=262144
	tc -n $end qdisc add dev v$end root netem limit 10000 \
		delay 2ms 1ms loss 1% duplicate 1% reorder 10%
done

# --- The load -----------------------------------------------------------------

# start_load OPTION...: 32 flows from a to b and 32 from b to a.  Their checkers
# get the time that is left: a round would wait for them most of the time.
loads=()
start_load() {
	nice -n 19 \
		tcpload pattern --from a --to b --address 10.9.0.2 --address fd09::2 \
		--flows 32 --seed 1 --grace 5 "$@" >"$TMP/load.a" 2>&1 &
	loads=($!)
	nice -n 19 \
		tcpload pattern --from b --to a --address 10.9.0.1 --address fd09::1 \
		--flows 32 --seed 2 --grace 5 "$@" >"$TMP/load.b" 2>&1 &
	loads+=($!)
	defer "kill ${loads[*]}"
	wait_for 300 grep 'have begun' "$TMP/load.a" &&
		wait_for 300 grep 'have begun' "$TMP/load.b"
}

# A load ends early only if it found something wrong.
load_runs() {
	kill -0 "${loads[0]}" && kill -0 "${loads[1]}" && return
	cat "$TMP"/load.?
	return 1
}

# Flows that are under way get a few seconds to finish: one whose window is
# small and whose segments are lost would take minutes.
end_load() {
	local pid bad=0
	kill -TERM "${loads[@]}" || bad=1
	for pid in "${loads[@]}"; do
		wait "$pid" || bad=1
	done
	cat "$TMP"/load.?
	return $bad
}

# change N: N settings of the namespace it runs in, to values within range
change() {
	local i files file value
	files=(/proc/sys/net/mssfrac/*)
	for ((i = 0; i < $1; i++)); do
		file=${files[RANDOM % ${#files[@]}]}
		case ${file##*/} in
		rx_frac | tx_frac) value=$((RANDOM % 65)) ;;
		seg_max) value=$((2 + RANDOM % 255)) ;;
		ab_percent) value=$((RANDOM % 101)) ;;
		ab_seed) value=$RANDOM ;;
		*) value=$((RANDOM % 2)) ;;
		esac
		echo "$value" >"$file" || return 1
	done
}
export -f change

# One shell in each namespace that changes settings: starting one each time would
# take longer than all the rest of a round.
setter() {
	local n
	RANDOM=$1
	while read -r n; do
		if change "$n"; then echo changed; else echo failed; fi
	done
}
export -f setter
declare -A ask answer
for end in a b; do
	mkfifo "$TMP/ask.$end" "$TMP/answer.$end"
	ip netns exec $end bash -c "setter $RANDOM" <"$TMP/ask.$end" \
		>"$TMP/answer.$end" &
	defer "kill $!"
	exec {to}>"$TMP/ask.$end" {from}<"$TMP/answer.$end"
	ask[$end]=$to
	answer[$end]=$from
done
# change_in END N
change_in() {
	local said
	echo "$2" >&"${ask[$1]}" && read -r said <&"${answer[$1]}" &&
		[ "$said" = changed ]
}

# Until told to stop: a namespace is made, 4 flows run over its loopback, and
# it is deleted while their sockets live.
namespaces() {
	local made=0 pid
	until [ -e "$TMP/stop" ]; do
		ip netns add passing || return 1
		ip -n passing link set lo up
		ip netns exec passing tcpload pattern --flows 4 &
		pid=$!
		sleep 0.3 # let connections open
		kill -KILL $pid
		wait $pid 2>/dev/null
		ip netns del passing || return 1
		made=$((made + 1))
		echo $made >"$TMP/namespaces"
	done
} >"$TMP/passing" 2>&1

# --- Loads, changes, namespaces -------------------------------------------------

check "64 flows begin" start_load
namespaces &
passing=$!

come_and_go() {
	local i
	for ((i = 0; i < ROUNDS; i++)); do
		insmod "$MODULE" tx_frac=$((RANDOM % 65)) \
			rx_frac=$((RANDOM % 65)) ab_percent=$((RANDOM % 101)) &&
			change_in a 1 && change_in b 1 &&
			rmmod mssfrac && load_runs || return 1
		[ $((i % 50)) -ne 49 ] || echo "# $((i + 1)) loads after $SECONDS s" >&3
	done
}
check "$ROUNDS loads and unloads" come_and_go
unload

# Both ends count treated connections, so the changes did meet some.
treated() {
	[ "$(counter a treated_tx_segments)" -gt 100 ] &&
		[ "$(counter b treated_rx_segments)" -gt 100 ]
}
change_often() {
	local i
	insmod "$MODULE" tx_frac=16 rx_frac=16 && wait_for 300 treated ||
		return 1
	for ((i = 0; i < ROUNDS; i += 10)); do
		change_in a 10 && change_in b 10 && load_runs || return 1
	done
}
check "$ROUNDS changes of settings in either namespace" change_often

# What lockdep has seen.  A connection of one namespace must not wait, under a
# lock that all share, for a reader of another.  (On 7.2 the end of an
# interrupt takes a lock of the timers there.)
innermost() {
	awk -v RS= '/: &bucket_locks\[i\].lock/ {
		print
		seen = 1
		bad = /-> .*shards\[i\].lock/
	} END { exit bad || !seen }' /proc/lockdep
}
order="no lock is taken under one that all namespaces share"
if [ -d $FAULTS ]; then
	if [ -e /proc/lockdep ]; then
		check "$order" innermost
	else
		skip "$order" "this kernel has no lockdep (CONFIG_PROVE_LOCKING)"
	fi
fi

passing_ends() {
	touch "$TMP/stop"
	wait $passing || { cat "$TMP/passing"; return 1; }
	echo "$(cat "$TMP/namespaces") namespaces"
	[ "$(cat "$TMP/namespaces")" -ge 3 ]
}
check "namespaces come and go meanwhile" passing_ends

check "every byte is right and no flow was stuck" end_load
sed 's/^/# /' "$TMP"/load.? "$TMP/namespaces"
unload

# --- Without memory ---------------------------------------------------------------

[ -d $FAULTS ] || exit 0

# faults KEY=VALUE...: of the slab allocator's fault injection
faults() {
	local pair
	for pair; do
		echo "${pair#*=}" >"$FAULTS/${pair%=*}" || return 1
	done
}
faults verbose=0 interval=1 space=0 task-filter=N
defer "faults probability=0"

# 1 of 100 allocations that cannot wait fails, everywhere in the kernel: the
# module may refuse to load, and no flow may notice.
starve() {
	local i refused=0
	start_load --faults || return 1
	faults ignore-gfp-wait=Y times=-1 probability=1 || return 1
	for ((i = 0; i < ROUNDS; i += 10)); do
		if insmod "$MODULE" tx_frac=$((RANDOM % 65)) rx_frac=16; then
			change_in a 5 && change_in b 5 && load_runs &&
				sleep 0.5 && rmmod mssfrac || return 1
		else
			refused=$((refused + 1))
			! loaded || return 1
		fi
		load_runs || return 1
	done
	faults probability=0
	echo "$refused loads refused"
	end_load && [ "$i" -gt "$refused" ] && resets_explained
}
# A connection may be reset, but not more than lacked a TIME-WAIT socket.
resets_explained() {
	local resets missed=0 end
	resets=$(sed -n 's/.*"resets": \([0-9]*\).*/\1/p' "$TMP"/load.? |
		paste -sd +)
	for end in a b; do
		missed=$((missed + $(ip netns exec $end nstat -asz |
			awk '$1 == "TcpExtTCPTimeWaitOverflow" { print $2 }')))
	done
	echo "$((resets)) resets, $missed TIME-WAIT sockets not allocated"
	[ "$((resets))" -le "$missed" ]
}
check "1 % of allocations fail: every byte is right" starve
faults probability=0
sed -n 's/^.* TIME-WAIT sockets/# &/p' "$TMP/out"
unload

# sweep COMMAND...: run it with the first allocation failing, then the second
# and so on, until none is left to fail; undo it where it succeeded.
# failing_under FIRST LAST: only allocations of a function in that range.
failing_under() {
	faults "require-start=$1" "require-end=$2" ignore-gfp-wait=N
}
with_fault() {
	# The shell becomes the command: the number is the task's own.
	bash -c 'echo $0 >/proc/self/fail-nth && exec "$@"' "$@"
}
sweep() {
	local nth undo=$1
	shift
	for ((nth = 1; nth < 1000; nth++)); do
		faults times=1 || return 1
		if with_fault $nth "$@" 2>>"$TMP/sweep"; then
			$undo || return 1
		fi
		[ "$(cat $FAULTS/times)" -eq 0 ] || break
	done
	echo "$((nth - 1)) allocations failed, one at a time"
	sort "$TMP/sweep" | uniq -c
	[ "$nth" -gt 5 ] && [ "$nth" -lt 1000 ]
}

initcall_range() {
	awk '{ print "0x" $1, $3 }' /proc/kallsyms | sort |
		grep -A 1 ' do_one_initcall$' | cut -d ' ' -f 1
}
starve_insmod() {
	# shellcheck disable=SC2046 # two words
	failing_under $(initcall_range) &&
		sweep "rmmod mssfrac" insmod "$MODULE" && ! loaded
}
check "each allocation of loading fails once: it refuses and leaves nothing" \
	starve_insmod
unload

module_range() {
	awk '/\[mssfrac\]$/ && $2 ~ /[tT]/ { print "0x" $1 }' /proc/kallsyms |
		sort | sed -n '1p;$p'
}
starve_namespace() {
	insmod "$MODULE" || return 1
	# shellcheck disable=SC2046 # two words
	failing_under $(module_range) &&
		sweep "ip netns del starved" ip netns add starved &&
		! ip netns list | grep starved
}
check "each allocation for a namespace fails once: it is not made" \
	starve_namespace
faults require-start=0 require-end=0xffffffffffffffff times=-1

again() {
	unload && insmod "$MODULE" && rmmod mssfrac
}
check "afterwards it loads and unloads" again
