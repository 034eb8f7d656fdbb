#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The messages of set-up and when it stops, on machines simulated by stubs on PATH.
# Nothing is installed: apt-get is a stub that only leaves a trace.
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/bin" "$tmp/tree" "$tmp/tree/scripts"
cp "$top"/scripts/{setup,root} "$tmp/tree/scripts/"
cp "$top/KERNELS" "$tmp/tree/"
n=0
bad=0

# stub NAME COMMAND: NAME on PATH runs COMMAND.
stub() {
	printf '#!/bin/bash\n%s\n' "$2" >"$tmp/bin/$1"
	chmod +x "$tmp/bin/$1"
}

# machine: a bare x86_64 machine of an ordinary user without sudo.
machine() {
	rm -f "$tmp"/bin/* "$tmp/apt"
	stub dpkg-query true
	stub apt-get "echo \"\$*\" >>$tmp/apt; exit 1"
	stub uname 'echo x86_64'
	stub id 'echo 1000'
	for tool in bash awk sed tail head sort basename dirname fold mkdir \
		flock env cat grep rm; do
		ln -sf "$(command -v $tool)" "$tmp/bin/$tool"
	done
}

# expect NAME STATUS MESSAGE WORDS...: run set-up with these words.
expect() {
	local name=$1 status=$2 message=$3 got
	shift 3
	PATH=$tmp/bin "$tmp/tree/scripts/setup" "$@" >"$tmp/out" 2>&1
	got=$?
	n=$((n + 1))
	if [ $got -eq "$status" ] && [ ! -e "$tmp/apt" ] &&
		{ [ -z "$message" ] || grep -q -e "$message" "$tmp/out"; }; then
		echo "ok $n $name"
	else
		echo "# status $got, wanted $status and '$message'"
		sed 's/^/# /' "$tmp/out"
		[ ! -e "$tmp/apt" ] || echo "# apt-get was called"
		echo "not ok $n $name"
		bad=1
	fi
}

echo "KTAP version 1"
echo "1..17"

machine
expect "no part named" 2 "usage:"
expect "an unknown part" 2 "unknown part kernel" kernel
expect "a kernel that is not listed" 2 "does not list 5.4" guest 5.4
expect "a kernel without its part" 2 "put guest before 6.1" 6.1
expect "--check names what is missing" 3 \
	"missing: gcc, .*guest kernel 6.1; run scripts/setup build guest 6.1" \
	--check build guest 6.1
expect "--check names a later kernel's root" 3 \
	"missing: .*mmdebstrap.*, root of trixie; run scripts/setup guest 7.2" \
	--check guest 7.2
expect "neither root nor sudo" 3 "needs root or sudo" build

stub sudo 'echo "sudo was asked for $3" >&2; exit 1'
expect "an ordinary user with sudo" 1 "sudo was asked for apt-get" build

machine
stub uname 'echo aarch64'
expect "another architecture" 3 "needs Debian 12 or 13 on x86_64" build
expect "another architecture, only asked what is missing" 0 "" --check build

# Other systems: the names to install, and no attempt to.
machine
system() { printf '%s\n' "$@" >"$tmp/os-release"; }
export OS_RELEASE=$tmp/os-release
system ID=fedora VERSION_ID=42
expect "Fedora: names by its package manager" 3 "dnf install gcc .*\\\\$" build
system ID=linuxmint 'ID_LIKE="ubuntu debian"'
expect "a child of Ubuntu: names by Ubuntu's" 3 "linux-tools-generic" build
system ID=arch
expect "another system: says that names are untested" 3 "names are untested" build
system ID=debian VERSION_ID=13
expect "Debian 13 is like 12" 3 "needs root or sudo" build
system ID=debian
expect "Debian testing may differ" 3 "neither 12 nor 13" build
unset OS_RELEASE

# Everything there: silent, and no server is asked.
machine
eval "$(sed -n '/^BUILD_PACKAGES=/,/"$/p' "$top/scripts/setup")"
stub dpkg-query "printf 'installed %s\\n' ${BUILD_PACKAGES//[$'\n\t']/ }"
expect "nothing missing" 0 "" build
n=$((n + 1))
if [ -s "$tmp/out" ]; then
	echo "not ok $n nothing missing, nothing said"
	bad=1
else
	echo "ok $n nothing missing, nothing said"
fi
exit $bad
