# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# What the guest tests share: KTAP output, namespaces that end with the test,
# and waits that poll.  Sourced, never run; refuses to act outside a guest.

# As kselftest has it: a test that cannot run here is skipped, with status 4.
[ -n "${MSSFRAC_GUEST:-}" ] || {
	echo "KTAP version 1"
	echo "1..0 # SKIP this test changes the kernel it runs on; start it" \
		"through tests/run or scripts/guest"
	exit 4
}

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Read by the tests.
# shellcheck disable=SC2034
MODULE=${MODULE:-$TOP/build/kmod/$(uname -r)/mssfrac.ko}
# shellcheck disable=SC2034 # used by tests
CC_MODULE=${MODULE%.ko}_cc.ko
# What their Python parts share.
export PYTHONPATH=$TOP/tests/guest/lib${PYTHONPATH:+:$PYTHONPATH}
TMP=$(mktemp -d)
ktap_n=0
ktap_bad=0
ktap_skipped=0
ktap_xfailed=0
ktap_plan=0
cleanups=()

# Run a command when the test ends, last registered first.
defer() { cleanups+=("$*"); }

finish() {
	local i status=$?
	for ((i = ${#cleanups[@]} - 1; i >= 0; i--)); do
		eval "${cleanups[i]}" >/dev/null 2>&1
	done
	rm -rf "$TMP"
	[ "$ktap_n" -eq 0 ] || echo "# Totals:" \
		"pass:$((ktap_n - ktap_bad - ktap_skipped - ktap_xfailed))" \
		"fail:$ktap_bad xfail:$ktap_xfailed xpass:0" \
		"skip:$ktap_skipped error:0"
	if [ "$ktap_n" -ne "$ktap_plan" ]; then
		echo "# ran $ktap_n of $ktap_plan cases (exit status $status)"
		exit 1
	fi
	[ "$ktap_bad" -eq 0 ] || exit 1
}
trap finish EXIT

# plan N: how many cases follow.
plan() {
	ktap_plan=$1
	echo "KTAP version 1"
	echo "1..$1"
}

# skip_all REASON: none of the cases can run here.
skip_all() {
	[ "$ktap_plan" -ne 0 ] || echo "KTAP version 1"
	echo "1..0 # SKIP $1"
	trap - EXIT
	rm -rf "$TMP"
	exit 4
}

# ok NAME / not_ok NAME / skip NAME REASON: report one case.  xfail NAME REASON:
# it failed, as it was meant to.
ok() {
	ktap_n=$((ktap_n + 1))
	echo "ok $ktap_n $1"
}
not_ok() {
	ktap_n=$((ktap_n + 1))
	ktap_bad=$((ktap_bad + 1))
	echo "not ok $ktap_n $1"
}
skip() {
	ktap_n=$((ktap_n + 1))
	ktap_skipped=$((ktap_skipped + 1))
	echo "ok $ktap_n $1 # SKIP $2"
}
xfail() {
	ktap_n=$((ktap_n + 1))
	ktap_xfailed=$((ktap_xfailed + 1))
	echo "ok $ktap_n $1 # XFAIL $2"
}

# check NAME COMMAND...: one case, ok if the command succeeds.  If it fails,
# prints its output and the step that failed: the last command that each
# function of the test ran, with its line.
check() {
	local check_name=$1 check_status=0 check_steps=()
	# shellcheck disable=SC2034 # used in the trap only
	local check_lib=${BASH_SOURCE[0]} check_depth=$((${#FUNCNAME[@]} + 1))
	shift
	set -T # functions inherit the trap
	trap 'case $BASH_COMMAND in
	return* | echo* | local*) ;;
	*)
		[ "${BASH_SOURCE[0]}" = "$check_lib" ] || {
			check_steps=("${check_steps[@]:0:${#FUNCNAME[@]}-check_depth}")
			check_steps[${#FUNCNAME[@]}-check_depth]="${BASH_SOURCE[0]##*/}:$LINENO: $BASH_COMMAND"
		} ;;
	esac' DEBUG
	"$@" >"$TMP/out" 2>&1 || check_status=$?
	trap - DEBUG
	set +T
	if [ "$check_status" -eq 0 ]; then
		ok "$check_name"
		return
	fi
	sed 's/^/# /' "$TMP/out"
	[ ${#check_steps[@]} -gt 0 ] || check_steps=("$*")
	printf '# failed with status %s at\n' "$check_status"
	printf '#   %s\n' "${check_steps[@]}"
	not_ok "$check_name"
}

# python_cases SCRIPT ARGUMENT...: cases of a Python script, which prints a line
# "ok NAME" or "not ok NAME" for each; the rest are remarks.
python_cases() {
	local line
	while IFS= read -r line; do
		case $line in
		"ok "*) ok "${line#ok }" ;;
		"not ok "*) not_ok "${line#not ok }" ;;
		*) echo "# $line" ;;
		esac
	done < <(/usr/bin/python3 "$@" 2>&1)
}

# is GOT WANTED: equality that explains itself.
is() {
	[ "$1" = "$2" ] || {
		echo "got '$1', wanted '$2'"
		return 1
	}
}

# wait_for SECONDS COMMAND...: poll until it succeeds.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || {
			echo "waited too long for: $*"
			return 1
		}
		sleep 0.1 # polling interval
	done
}

# stage_pathprof: the profiler in memory, as $PP; in a guest, reading a program
# costs more than running it.  PATHPROF names another than the one built.
stage_pathprof() {
	local built=${PATHPROF:-$TOP/build/bin/pathprof} libraries
	mapfile -t libraries < <(ldd "$built" | awk '$2 == "=>" { print $3 }')
	mkdir "$TMP/run" && cp "$built" "$TMP/run/pathprof" &&
		cp "${libraries[@]}" "$TMP/run" && chmod 755 "$TMP" || return
	# Read by the tests.
	# shellcheck disable=SC2034
	PP=$TMP/run/pathprof
	export LD_LIBRARY_PATH=$TMP/run
}

# pair A B MTU: two namespaces joined by veth, 10.9.0.1 and 10.9.0.2,
# fd09::1 and fd09::2.
pair() {
	local ns
	for ns in "$1" "$2"; do
		ip netns add "$ns"
		defer "ip netns del $ns"
		ip -n "$ns" link set lo up
	done
	ip link add "v$1" netns "$1" type veth peer name "v$2" netns "$2"
	ip -n "$1" addr add 10.9.0.1/24 dev "v$1"
	ip -n "$2" addr add 10.9.0.2/24 dev "v$2"
	ip -n "$1" addr add fd09::1/64 dev "v$1" nodad
	ip -n "$2" addr add fd09::2/64 dev "v$2" nodad
	ip -n "$1" link set "v$1" mtu "$3" up
	ip -n "$2" link set "v$2" mtu "$3" up
}
