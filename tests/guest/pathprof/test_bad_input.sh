#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pathprof given what it cannot use: each case ends with the right status and
# one sentence that names the culprit, and harms no file.

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../../lib.sh"

cd "$TMP" || exit
stage_pathprof || exit

# refuses STATUS PATTERN COMMAND...: status, and one line that matches.
refuses() {
	local want=$1 pattern=$2 status
	shift 2
	"$@" >stdout 2>stderr
	status=$?
	cat stderr
	is "$status" "$want" && is "$(wc -l <stderr)" 1 &&
		grep -qE -- "$pattern" stderr
}

# What really records follows one family: fewer hooks to attach and detach.
record() { "$PP" record --addr 127.0.0.1 "$@"; }

nobody() { setpriv --reuid 65534 --clear-groups "$@"; }

plan 39

check "no command" refuses 2 'no command given' "$PP"
check "unknown command, nearest named" refuses 2 'did you mean record\?' \
	"$PP" recrod
check "ambiguous command" refuses 2 'record or report' "$PP" re
check "unknown option, nearest named" refuses 2 'did you mean --sample' \
	"$PP" top --smaple 3
check "--sample 0" refuses 2 'from 1 to' "$PP" top --sample 0
check "--sample -1" refuses 2 '"-1"' "$PP" top --sample -1
check "--sample 1e30" refuses 2 'from 1 to' "$PP" record -o f --sample 1e30
check "--sample x" refuses 2 '"x"' "$PP" top --sample x
check "--port 65536" refuses 2 'to 65535' "$PP" top --port 65536
check "--addr nowhere" refuses 2 'IPv4 or IPv6' "$PP" top --addr nowhere
check "--addr with 33 bits" refuses 2 'address or prefix' "$PP" top \
	--addr 10.0.0.0/33
check "--sample and --budget" refuses 2 'not both' "$PP" top --sample 2 \
	--budget 3
check "--fine in sampling bursts" refuses 2 'needs --sample' "$PP" top --fine
check "--stages in sampling bursts" refuses 2 'needs --sample' "$PP" top \
	--stages all
check "an unknown group of stages" refuses 2 'did you mean forward' "$PP" top \
	--sample 1 --stages bridge,forwards
check "an empty group of stages" refuses 2 'no group' "$PP" top --sample 1 \
	--stages bridge,
check "--stage in sampling bursts" refuses 2 'needs --sample' "$PP" top \
	--stage ip_rcv
check "no name of a function" refuses 2 'no name of a function' "$PP" top \
	--sample 1 --stage ip_rcv,1x
check "a function twice" refuses 2 'there twice' "$PP" top --sample 1 \
	--stage ip_rcv,ip_rcv
check "seven functions" refuses 2 'at most 6' "$PP" top --sample 1 \
	--stage a,b,c,d,e,f,g
check "--nat without connection tracking" refuses 2 'needs --stages netfilter' \
	"$PP" top --sample 1 --stages bridge --nat --port 80
check "--nat without a filter" refuses 2 'is for --port, --addr' "$PP" top \
	--sample 1 --stages netfilter --nat
check "--dir up" refuses 2 'rx or tx' "$PP" top --dir up
check "--dev with an unknown interface" refuses 1 'no interface' "$PP" top --dev none
check "--arm both" refuses 2 'stock .* or treated' "$PP" top --arm both
check "--arm of UDP" refuses 2 'not both' "$PP" top --arm stock --udp
check "--cgroup with an unknown path" refuses 1 'no cgroup' "$PP" top --cgroup none
check "--cgroup with a path that is no cgroup" refuses 2 'no cgroup v2' "$PP" top --cgroup /tmp
check "--cgroup of UDP in sampling bursts" refuses 2 'needs --sample' "$PP" top \
	--udp --cgroup /tmp
check "record without a file" refuses 2 'add -o FILE' "$PP" record
check "no root" refuses 3 'needs root' nobody "$PP" top --once

# Steps: an output directory that does not exist.
# Expected: refused before the command runs.
case_unwritable() {
	refuses 1 'cannot write .*No such file' "$PP" record -o no/such/file \
		-- touch ran || return
	is "$(ls ran 2>/dev/null)" ""
}
check "unwritable output is found before recording" case_unwritable

# Steps: a device as output, as root.
# Expected: refused before the command runs, and the device is still one.
case_device() {
	mknod device c 1 3 || return
	refuses 1 'it is a device' "$PP" record -o device -- touch ran || return
	is "$(ls ran 2>/dev/null)" "" && [ -c device ]
}
check "no output replaces a device" case_device

# Steps: a name with an escape sequence.
# Expected: no control character reaches the terminal.
case_control() {
	"$PP" report $'a\e[31mb\x9bc' 2>stderr
	is "$?" 1 && is "$(tr -d '\n[:print:]' <stderr | wc -c)" 0
}
check "control characters are not passed on" case_control

# Steps: hide the kernel's type information.
# Expected: status 3, the file named, the old output untouched.
case_no_btf() {
	echo precious >out.json
	mount -t tmpfs none /sys/kernel/btf || return
	refuses 3 '/sys/kernel/btf/vmlinux' "$PP" record -o out.json -- true
	local rc=$?
	refuses 3 '/sys/kernel/btf/vmlinux' "$PP" list || rc=1
	umount /sys/kernel/btf
	is "$(cat out.json)" precious && return $rc
}
check "a kernel without type information" case_no_btf

# Steps: a command that does not exist.
# Expected: 127, and a valid profile all the same.
case_not_found() {
	record -o nf.json -- /no/such/command 2>stderr
	is "$?" 127 && grep -q 'cannot run /no/such/command' stderr &&
		"$PP" report nf.json
}
check "a command that does not exist" case_not_found

# Steps: a command that fails.
# Expected: status 1, the command's status said, a valid profile.
case_failed() {
	record -o failed.json -- false 2>stderr
	is "$?" 1 && grep -q 'false ended with status 1' stderr &&
		"$PP" report failed.json
}
check "a failing command" case_failed

# Steps: write the profile to a full disk that holds an older one.
# Expected: failure, and the older file as it was.
case_disk_full() {
	mkdir full && mount -t tmpfs -o size=16k none full || return
	defer "umount $TMP/full"
	echo precious >full/out.json
	record -o full/out.json -- true 2>stderr
	is "$?" 1 && grep -q 'cannot write full/out.json: No space' stderr &&
		is "$(cat full/out.json)" precious && is "$(ls full)" out.json
}
check "a full disk keeps the old profile" case_disk_full

check "a full stdout" refuses 1 'cannot write the output' \
	bash -c "'$PP' list >/dev/full"
