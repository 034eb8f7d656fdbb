#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# pathprof's filters by what a socket belongs to (--cgroup, --arm) and by the
# device that sends (--dev), against tcp_info and the module's own counters.
# The cases are in owners.py.
# long: records several transfers, with the module loaded and unloaded
. "$(dirname "$0")/../../lib.sh"
plan 9

stage_pathprof || exit
strip --strip-debug -o "$TMP/mssfrac.ko" "$MODULE" || exit
CGROUPS=$TMP/cgroup
mkdir "$CGROUPS" && mount -t cgroup2 none "$CGROUPS" || exit
defer "umount '$CGROUPS'"
mkdir -p "$CGROUPS/app/inner" "$CGROUPS/other" || exit
defer "rmdir '$CGROUPS'/app/inner '$CGROUPS'/app '$CGROUPS'/other"
pair a b 1500
refused=$("$PP" record -o "$TMP/x.json" --arm treated 2>&1)
check "without the module there is no arm" is "$? $refused" "3 pathprof: record: --arm needs mssfrac: no net.mssfrac settings in this network namespace (No such file or directory)"
insmod "$TMP/mssfrac.ko" || exit
defer "rmmod mssfrac"

export PP TMP CGROUPS
python_cases "$TOP/tests/guest/pathprof/owners.py"
