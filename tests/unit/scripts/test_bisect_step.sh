#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# scripts/bisect-step: its verdict on good, worse and unusable kernels, as `git
# bisect run` expects it; that a suspect is recorded again; which changed
# functions ran; and with what a baseline compares.  Guest and build are stubs,
# `pathprof check` is the real one.
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tree=$tmp/tree
mkdir -p "$tree/scripts" "$tree/build/bin" "$tree/tests/bench" "$tmp/linux"
cp "$top"/scripts/bisect{-step,_*.py} "$tree/scripts/"
cp -r "$top/tests/bench/ladder" "$tree/tests/bench/"
ln -s "${PATHPROF:-$top/build/bin/pathprof}" "$tree/build/bin/pathprof"

# Each recording takes a line of the file script: its exit status, or how much
# more the stage estab costs, in %, or "image" for what the image holds.  The
# functions it runs are in the file runs.
cat >"$tree/scripts/workload" <<END
#!/bin/bash
echo "\$@" >>"$tmp/calls"
name=\${@: -1}
case " \$* " in
*" -r 0 "*)
	for workload; do
		cp "$tmp/runs" "\$6/\${workload%%=*}.functions" 2>/dev/null
	done
	exit 0
	;;
*" --functions "*) cp "$tmp/runs" "\$6/\${name%%=*}.functions" ;;
esac
line=\$(head -n 1 "$tmp/script")
if [ "\$line" = image ]; then
	line=\$(cat "\$2")
else
	sed -i 1d "$tmp/script"
fi
case \$line in
exit*) \$line ;;
esac
release=6.1.0-56-amd64
[[ \$2 != */vmlinuz-of-tree ]] || release=6.12.117
exec python3 -B "$top/tests/unit/kept_profile.py" "\$6/\${name%%=*}.json" \
	"slower('estab', 1 + \$line / 100); p['kernel']['release'] = '\$release'"
END
cat >"$tree/scripts/tree-kernel" <<END
#!/bin/sh
echo "tree-kernel \$*" >>"$tmp/calls"
while [ "\$1" != --copy ]; do shift; done
[ ! -e "\$3/broken" ] || exit 125
[ ! -e "\$3/cost" ] || cp "\$3/cost" "\$2/vmlinuz-of-tree"
cp "$tmp/functions" "\$2/functions.json"
cp "$tmp/made" "\$2/made-from"
echo compiling
echo "\$2/vmlinuz-of-tree"
exit \$(cat "$tmp/builds")
END
: >"$tree/build/bin/tcpload"
echo '{"net/a.o tcp_ack": "1", "net/b.o ip_rcv": "1"}' >"$tmp/functions"
echo '{"tcp_ack": 4000, "tcp_push": 1000}' >"$tmp/runs"
echo "gcc 12" >"$tmp/made"
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
echo 1..80
expect "a kernel must be named" 128 usage "" -w bulk
expect "two kernels are refused" 128 "unrecognized arguments: 6.12" "" 6.1 6.12
expect "an option must exist" 128 "unrecognized arguments: --fast" "" --fast 6.1
expect "a workload must exist" 128 "no workload is called bulky" "" -w bulky 6.1
expect "a seed is a number" 128 "takes 0 to 499" "" --seed 500 6.1
expect "without a baseline it prints how to make one" 128 \
	"bisect-step --good -w bulk" "" -w bulk 6.1
calls "without booting anything" . 0
expect "a baseline is five recordings" 0 "5 of 5" 0,0.1,0.2,0.1,0 --good 6.1
calls "with seeds of their own" "-s 5[1-5]0" 5
expect "an equal recording is good" 0 "on 6.1: good" 0.1 6.1
calls "after one recording" . 1
expect "a lower cost is good" 0 better -9 6.1
expect "a higher cost is worse, and its metric named" 1 "worse *rx.at.estab" 5,5 6.1
calls "after a second recording, with another seed" "-s 251 " 1
expect "it is good if the second recording is" 0 good 5,0.1 6.1
expect "only the selected metric counts" 0 good 5 --metric tx.at.driver 6.1
expect "a greater tolerance is used" 0 good 5 --tolerance 10 6.1
expect "JSON is one object" 1 '"verdict": "worse"' 5,5 --json 6.1
expect "a guest that does not boot gives no verdict" 125 "" "exit 125" 6.1
expect "a failure of all guests ends the bisection" 128 "" "exit 3" 6.1
expect "a tree does not compare with a packaged kernel" 128 \
	"amd64, is packaged, and . is built" 0 \
	-b "$tree/build/bisect/packaged" .
calls "before it is built" . 0
expect "a tree has a baseline of its own" 0 "5 of 5" 0,0.1,0.2,0.1,0 \
	-b "$tmp/of-tree" --good .
expect "a packaged kernel does not compare with a tree" 128 "6.12 is packaged" 0 \
	-b "$tmp/of-tree" 6.12
expect "a tree is built" 0 "on .: good" 0 -b "$tmp/of-tree" .
calls "once, and its image recorded" "-k .*/vmlinuz-of-tree" 1
echo 125 >"$tmp/builds"
expect "a tree that does not build gives no verdict" 125 "" 0 \
	-b "$tmp/of-tree" .
calls "without booting anything" " -s " 0
echo 3 >"$tmp/builds"
expect "a machine that cannot build ends the bisection" 128 "" 0 \
	-b "$tmp/of-tree" .
echo 0 >"$tmp/builds"
expect "a step reports that no function differs" 0 "no function differs" 0 \
	-b "$tmp/of-tree" .
echo '{"net/a.o tcp_ack": "2", "net/b.o ip_rcv": "1"}' >"$tmp/functions"
expect "a changed function that runs is counted" 0 \
	"1 functions differ.*1 of them run.*tcp_ack 4,000 times" 0 -b "$tmp/of-tree" .
echo '{"net/a.o tcp_ack": "1", "net/b.o ip_rcv": "2"}' >"$tmp/functions"
expect "a change that does not run gets no verdict" 125 \
	"none of them runs in ping-pong: ip_rcv" 0 -b "$tmp/of-tree" .
expect "and no workload is named that does not run it" 125 "no workload runs them" 0 -b "$tmp/of-tree" .
sed -i 's/"tcp_push": 1000/"ip_rcv": 77/' "$tmp/of-tree/ping-pong.baseline"
expect "a workload that runs it is named" 125 "-w udp runs ip_rcv 77 times" 0 \
	-b "$tmp/of-tree" .
long=tcp_identify_packet_loss.constprop.0
echo "{\"net/a.o $long\": \"2\", \"net/b.o ip_rcv\": \"1\"}" >"$tmp/functions"
echo "{\"tcp_ack\": 4000, \"${long:0:30}\": 12}" >"$tmp/runs"
expect "a changed function that runs has a name too long for the kernel's table" 0 \
	"1 of them run.*$long 12 times" 0 -b "$tmp/of-tree" .
echo '{"tcp_ack": 4000, "tcp_push": 1000}' >"$tmp/runs"
echo '{"lib/i.o _copy_to_iter": "2 untraced", "net/b.o ip_rcv": "2"}' >"$tmp/functions"
expect "a changed function that cannot be counted may have run" 0 \
	"1 of them cannot be counted: _copy_to_iter" 0 -b "$tmp/of-tree" .
echo '{"net/a.o tcp_ack": "1", "net/b.o ip_rcv": "2", "net/b.o .altinstr_aux": "2 untraced"}' >"$tmp/functions"
expect "a part of a function counts with the functions of its file" 125 \
	"1 functions differ.* none of them runs in ping-pong: ip_rcv" 0 \
	-b "$tmp/of-tree" .
echo '{"net/a.o tcp_ack": "1", "net/b.o ip_rcv": "1", "net/b.o .altinstr_aux": "2 untraced"}' >"$tmp/functions"
expect "and alone if none of them changed" 0 "cannot be counted: .altinstr_aux" 0 \
	-b "$tmp/of-tree" .
echo '{"net/a.o tcp_ack": "1 untraced", "net/b.o ip_rcv": "2"}' >"$tmp/functions"
expect "the mark of such a function is no change" 125 "1 functions differ" 0 \
	-b "$tmp/of-tree" .
expect "a worse metric counts although nothing changed ran" 1 "none of them runs" 5,5 -b "$tmp/of-tree" .
git init -q "$tmp/linux" && touch "$tmp/linux/.git/BISECT_LOG"
expect "in a bisection such a commit is good" 0 "not exercised, and so good" 0 \
	-b "$tmp/of-tree" .
sed -i 's/"longest_s": [0-9.]*/"longest_s": 7.0/' "$tmp/of-tree/ping-pong.baseline"
expect "a time limit follows from the baseline" 0 "" 0 -b "$tmp/of-tree" .
calls "ten times its recording, and two minutes" "-t 190 " 1
expect "a report of the kernel log is accepted" 0 "" 0 -b "$tmp/of-tree" \
	--accept "WARNING: net" .
calls "by the guest" "--accept WARNING: net" 1
echo "gcc 13" >"$tmp/made"
expect "a baseline of another compiler is refused" 128 "bisect.config or compiler" 0 \
	-b "$tmp/of-tree" .
echo "gcc 12" >"$tmp/made"
echo changed >"$tree/build/bin/tcpload"
expect "and one of another load" 128 "another tcpload" 0 -b "$tmp/of-tree" .
calls "before it is built" "tree-kernel" 0
: >"$tree/build/bin/tcpload"
echo CONFIG_X=y >"$tmp/own"
expect "a tree may have options of its own" 0 "" 0 -b "$tmp/of-tree" \
	--config "$tmp/own" .
calls "for its configuration" "tree-kernel --config $tmp/own --copy" 1
expect "a tree has a folder of its own" 128 \
	"build/bisect/tree-linux-[0-9a-f]*; record" 0 .
expect "the first line names what moved" 1 \
	"^worse: rx packets: .* instructions in stage estab" 5,5 6.1
expect "what became better can be searched for" 1 \
	"^better: rx packets: -.* instructions in stage estab" -5,-5 --better 6.1
expect "and a higher cost is then good" 0 "on 6.1: good" 5 --better 6.1
expect "a narrow disagreement is decided by a third recording" 1 \
	"narrow: two recordings differ" 1.1,0.9,1.1 --metric rx.at.estab \
	--tolerance 1 6.1
calls "with seeds of its own" "-s 126 " 1
expect "either way" 0 "narrow: two recordings differ" 1.1,0.9,0.9 \
	--metric rx.at.estab --tolerance 1 6.1
expect "two kernels can be compared at once" 1 "rx.at.estab" \
	0,0.1,0.2,0.1,0,5,5 --compare 6.1 6.12
expect "which takes no other baseline" 128 "leave out" "" --compare 6.1 -b x 6.12

# A workload of the user.
echo 1 >"$tmp/load.pkt"
own="for i in 1 2; do drill $tmp/load.pkt; done"
expect "a workload of the user has no name of its own to choose" 128 \
	"leave out -w" "" --load "$own" -w bulk 6.1
expect "without a baseline it prints how to make one for it" 128 \
	"bisect-step --good --load 'for i" "" --load "$own" 6.1
expect "its baseline is five recordings" 0 "5 of 5" 0,0.1,0.2,0.1,0 \
	--good --load "$own" 6.1
calls "of the command" "own-[0-9a-f]*=for .* drill $tmp/load.pkt" 5
expect "it is compared like the others" 1 "worse *rx.at.estab" 5,5 --load "$own" 6.1
expect "another command has no baseline" 128 "record one" 0 --load "drill x" 6.1
echo 2 >"$tmp/load.pkt"
expect "nor has another content of its files" 128 "other files of the workload" 0 \
	--load "$own" 6.1

# A series of commits: a gain at 3, which 6 takes back; 5 cannot be built.
rm -r "$tmp/linux/.git"
git_() { git -C "$tmp/linux" -c user.name=x -c user.email=x@localhost "$@"; }
git_ init -q -b work
for cost in 0 0.01 0.02 -5 -5.01 -5 0.02 0 0.01; do
	place=$(git_ rev-list --count HEAD 2>/dev/null) || place=0
	rm -f "$tmp/linux/broken"
	[ "$place" != 5 ] || touch "$tmp/linux/broken"
	echo $cost >"$tmp/linux/cost"
	git_ add -A && git_ commit -q -m "commit $place"
	git_ tag "c$place"
done
whole="c0..c8"
expect "a series takes two commits" 128 "takes A..B" 0 --series c0 .
expect "in a tree" 128 "takes A..B" 0 --series $whole 6.1
expect "the first before the last" 128 "merge-base" 0 --series c8..c0 .
expect "without other comparisons" 128 "leave out" 0 --series $whole --good .
expect "a loss is found that takes back an earlier gain" 1 \
	"^worse: between .* commit 4 and .* commit 6, 2 commits" image --series $whole --points 3 .
expect "and the gain is shown on the way" 1 \
	"4 of 8, .* commit 4: better, rx packets: -.* in stage estab" image \
	--series $whole --points 3 .
expect "which a comparison of both ends does not show" 0 "0 findings" image \
	--series $whole --points 2 .
expect "the gain can be searched for" 1 "^better: .* commit 3$" image \
	--series $whole --points 3 --better .
calls "its two kernels are recorded again" "-s 251 " 2
expect "no commit is named where none is worse" 0 "0 findings, 3 of" image \
	--series c6..c8 .
expect "a series without a kernel that can be judged has no verdict" 125 "1 of 2 commits" \
	image --series c4..c5 .
n=$((n + 1))
if [ "$(git_ rev-parse --abbrev-ref HEAD)" = work ]; then
	echo "ok $n the branch is checked out again"
else
	echo "not ok $n the branch is checked out again"
	bad=1
fi
echo changed >"$tmp/linux/cost"
expect "a tree with changes is left alone" 128 "not committed" image --series $whole .
expect "tolerance must be a number" 128 tolerance 0 --tolerance x 6.1
exit $bad
