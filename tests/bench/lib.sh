# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# What the run scripts of all benchmarks share: arguments, prerequisites, the
# guest.  Sourced.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
bench=$(basename "$(dirname "$(realpath "$0")")")
kernel=
results=$PWD/build/results

die() {
	echo "bench-$bench: $1" >&2
	exit "${2:-1}"
}

# begin SYNOPSIS MOST ARGUMENT...: the first argument is the kernel, and there
# are at most MOST; sets kernel, release and module.
begin() {
	local usage="usage: tests/bench/$bench/run $1" most=$2
	shift 2
	case ${1:-} in
	-h | --help)
		echo "$usage"
		exit 0
		;;
	esac
	if [ $# -lt 1 ] || [ $# -gt "$most" ]; then
		echo "$usage" >&2
		exit 2
	fi
	kernel=$1
	release=$(scripts/guest --kernel "$kernel" --release) || exit
	# shellcheck disable=SC2034 # for the script that sources this
	module=build/kmod/$release/mssfrac.ko
	mkdir -p "$results"
}

# need FILE...: build products that the benchmark runs.
need() {
	local file
	for file; do
		[ -e "$file" ] ||
			die "$file is not built; run make bench-$bench${kernel:+ KERNEL=$kernel}" 3
	done
}

# guest [OPTION...] COMMAND...: in the deterministic guest, where results do
# not depend on the host's speed.
guest() {
	local options=()
	while [[ $1 == --* ]]; do
		options+=("$1" "$2")
		shift 2
	done
	scripts/guest --kernel "$kernel" --mode deterministic --timeout 3000 \
		--rwdir "$results" "${options[@]}" -- "$@"
}
