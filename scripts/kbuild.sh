# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Shared by scripts/debug-kernel and scripts/tree-kernel: builds a kernel
# outside its source tree, configured by allnoconfig and a fragment.  Sourced.
# The caller defines the function say, and may set NICE for a lower priority.

# kbuild SOURCE BUILD WORD...: executes make; call it in a subshell
kbuild() {
	local source=$1 build=$2

	shift 2
	# The job server of a calling make is not reachable through these scripts.
	exec env -u MAKEFLAGS -u MFLAGS nice -n "${NICE:-0}" make -C "$source" \
		O="$build" "$@" 9>&- </dev/null
}

# kbuild_configure SOURCE BUILD FRAGMENT LOG
kbuild_configure() {
	mkdir -p "$2"
	(kbuild "$1" "$2" KCONFIG_ALLCONFIG="$3" allnoconfig) >"$4" 2>&1
}

# kbuild_lost BUILD: lines of a fragment on stdin that Kconfig dropped
kbuild_lost() {
	grep '^CONFIG_' | grep -v -x -F -f "$1/.config" || true
}

# kbuild_make SOURCE BUILD LOG TARGET...: builds, and prints its progress each
# minute.  Returns the status of make.
kbuild_make() {
	local log=$3 begun=$SECONDS next=60 make

	(kbuild "$1" "$2" -j"$(nproc)" "${@:4}") >>"$log" 2>&1 &
	make=$!
	# shellcheck disable=SC2064 # expand it now
	trap "kill $make 2>/dev/null || true" EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	while kill -0 "$make" 2>/dev/null; do
		sleep 0.5
		if [ $((SECONDS - begun)) -ge $next ]; then
			say "$((next / 60)) min, $(grep -c '^  CC' "$log") files compiled"
			next=$((next + 60))
		fi
	done
	trap - EXIT INT TERM
	wait "$make"
}

# kbuild_errors LOG: the error messages of a failed build
kbuild_errors() {
	grep -E -A 5 'error:|Error ' "$1" | tail -n 20
}
