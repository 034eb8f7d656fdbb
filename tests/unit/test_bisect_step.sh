#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# scripts/bisect-step: what it says of good, worse and useless kernels, as
# `git bisect run` wants it, and that a suspect gets a second hearing.  Guest
# and build are played by stubs; `pathprof check` is the real one.
set -u

top=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tree=$tmp/tree
mkdir -p "$tree/scripts" "$tree/build/bin" "$tree/tests/bench" "$tmp/linux"
cp "$top/scripts/bisect-step" "$tree/scripts/"
cp -r "$top/tests/bench/ladder" "$tree/tests/bench/"
ln -s "${PATHPROF:-$top/build/bin/pathprof}" "$tree/build/bin/pathprof"

# Each recording takes a line of the file script: its exit status, or how much
# more the stage estab costs, in %.
cat >"$tree/scripts/workload" <<END
#!/bin/bash
echo "\$@" >>"$tmp/calls"
line=\$(head -n 1 "$tmp/script")
sed -i 1d "$tmp/script"
case \$line in
exit*) \$line ;;
esac
release=6.1.0-56-amd64
[ "\$2" != /image/of/tree ] || release=6.12.117
exec python3 -B "$top/tests/unit/kept_profile.py" "\$6/\$7.json" \
	"slower('estab', 1 + \$line / 100); p['kernel']['release'] = '\$release'"
END
cat >"$tree/scripts/tree-kernel" <<END
#!/bin/sh
echo "tree-kernel \$*" >>"$tmp/calls"
echo compiling
echo /image/of/tree
exit \$(cat "$tmp/builds")
END
chmod +x "$tree/scripts/"*
n=0
bad=0

# expect NAME STATUS PATTERN RECORDINGS WORDS...: what it does where the
# recordings are these; PATTERN is looked for in all that it prints.
expect() {
	local name=$1 status=$2 pattern=$3 got
	tr , '\n' <<<"$4" >"$tmp/script"
	shift 4
	: >"$tmp/calls"
	(cd "$tmp/linux" && "$tree/scripts/bisect-step" "$@") >"$tmp/out" 2>&1
	got=$?
	n=$((n + 1))
	if [ $got -eq "$status" ] &&
		{ [ -z "$pattern" ] || grep -q -e "$pattern" "$tmp/out"; }; then
		echo "ok $n $name"
	else
		echo "# exit status $got, wanted $status, and '$pattern' in:"
		sed 's/^/# /' "$tmp/out"
		echo "not ok $n $name"
		bad=1
	fi
}

# calls NAME PATTERN COUNT: how often the last one called a stub like this.
calls() {
	local got
	got=$(grep -c -e "$2" "$tmp/calls")
	n=$((n + 1))
	if [ "$got" -eq "$3" ]; then
		echo "ok $n $1"
	else
		echo "# '$2' $got times, wanted $3, in:"
		sed 's/^/# /' "$tmp/calls"
		echo "not ok $n $1"
		bad=1
	fi
}

echo 0 >"$tmp/builds"
echo "KTAP version 1"
echo 1..30
expect "a kernel must be named" 128 usage "" -w bulk
expect "of two none is taken" 128 "one kernel" "" 6.1 6.12
expect "an option must exist" 128 "unknown option" "" --fast 6.1
expect "a workload must exist" 128 "no workload is called bulky" "" -w bulky 6.1
expect "a seed is a number" 128 "takes 0 to 499" "" --seed 500 6.1
expect "without a baseline it says how to make one" 128 \
	"bisect-step --good -w bulk" "" -w bulk 6.1
calls "and boots nothing" . 0
expect "a baseline is five recordings" 0 "5 of 5" 0,0.1,0.2,0.1,0 --good 6.1
calls "with seeds of their own" "-s 5[1-5]0" 5
expect "as before is good" 0 "on 6.1: good" 0.1 6.1
calls "at once" . 1
expect "less is good" 0 better -9 6.1
expect "more is worse, and named" 1 "worse *rx.at.estab" 5,5 6.1
calls "after a second hearing, with another seed" "-s 251 " 1
expect "not so if the second hears nothing" 0 good 5,0.1 6.1
expect "only the figure asked for counts" 0 good 5 --metric tx.at.driver 6.1
expect "a greater tolerance is kept" 0 good 5 --tolerance 10 6.1
expect "JSON is one object" 1 '"verdict": "worse"' 5,5 --json 6.1
expect "a guest that does not boot tells nothing" 125 "" "exit 125" 6.1
expect "what no guest can do ends the bisection" 128 "" "exit 3" 6.1
expect "a tree does not compare with a packaged kernel" 128 \
	"amd64, is packaged, and . is built" 0 .
calls "and is not built" . 0
expect "it has a baseline of its own" 0 "5 of 5" 0,0.1,0.2,0.1,0 \
	-b "$tmp/of-tree" --good .
expect "nor a packaged kernel with a tree" 128 "6.12 is packaged" 0 \
	-b "$tmp/of-tree" 6.12
expect "a tree is built" 0 "on .: good" 0 -b "$tmp/of-tree" .
calls "once, and its image recorded" "-k /image/of/tree" 1
echo 125 >"$tmp/builds"
expect "a tree that does not build tells nothing" 125 "" 0 \
	-b "$tmp/of-tree" .
calls "and boots nothing" " -s " 0
echo 3 >"$tmp/builds"
expect "where none can be built the bisection ends" 128 "" 0 \
	-b "$tmp/of-tree" .
expect "tolerance must be a number" 128 tolerance 0 --tolerance x 6.1
exit $bad
