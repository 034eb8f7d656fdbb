#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Which root a kernel needs, when one is made anew, and from which package
# sources: those of the machine, played by a stub of apt-get.  And that the
# page lists the kernels that KERNELS lists.
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/bin" "$tmp/tree/scripts" "$tmp/tree/build/roots"
cp "$top/scripts/root" "$tmp/tree/scripts/"
# shellcheck source=/dev/null
own=$(. /etc/os-release && echo "$VERSION_CODENAME")
cat >"$tmp/tree/KERNELS" <<END
# series image headers suite tested by
6.1 i h $own check
7.2 i h-7.2.*-amd64 forky-backports check-kernels
7.3 i h-7.3.*-amd64 forky check-kernels
END
cat >"$tmp/bin/apt-get" <<END
#!/bin/sh
echo "http://one/debian/ $own main"
echo "http://one/debian/ $own contrib"
echo "http://one/debian/ $own-updates main"
echo "http://two/security/ $own-security main"
echo "http://else/where/ stable main"
END
chmod +x "$tmp/bin/apt-get"
n=0
bad=0

# expect NAME STATUS OUTPUT WORDS...: what scripts/root prints for these words.
expect() {
	local name=$1 status=$2 output=$3 got said
	shift 3
	said=$(PATH=$tmp/bin:$PATH "$tmp/tree/scripts/root" "$@" 2>&1)
	got=$?
	n=$((n + 1))
	# shellcheck disable=SC2053 # a pattern
	if [ $got -eq "$status" ] && [[ $said == $output ]]; then
		echo "ok $n $name"
	else
		echo "# status $got, wanted $status; it said:"
		echo "# ${said//$'\n'/$'\n# '}"
		echo "not ok $n $name"
		bad=1
	fi
}

echo "KTAP version 1"
echo "1..13"
expect "no word" 2 "usage:*"
expect "an unknown word" 2 "usage:*" mkae
expect "a kernel of the machine's own release needs none" 0 "" of 6.1
expect "a kernel of backports needs that release's" 0 forky of 7.2
expect "all releases, once each" 0 "$(printf '%s\n' "$own" forky | sort)" all
expect "sources are the machine's servers, with the suites KERNELS names" 0 \
	"deb http://one/debian/ forky main
deb http://one/debian/ forky-backports main
deb http://one/debian/ forky-updates main
deb http://two/security/ forky-security main" sources forky
expect "a release KERNELS does not name" 2 "*no kernel of buster" make buster
expect "what is not there is not ready" 1 "" ready forky
expect "running where there is nothing" 3 "*no root at*" run forky -- true

# A root as make would have left it.
root=$tmp/tree/build/roots/forky
mkdir -p "$root$tmp/tree"
"$tmp/tree/scripts/root" recipe forky >"$root/.recipe"
expect "what is there is ready" 0 "" ready forky
rmdir "$root$tmp/tree"
expect "not in a tree that moved" 1 "" ready forky
mkdir "$root$tmp/tree"
sed -i 's/^7.3 i h-7.3/7.3 i h-7.4/' "$tmp/tree/KERNELS"
expect "not when KERNELS changed" 1 "" ready forky

listed=$(awk '/^[0-9]/ { print $1, $NF }' "$top/KERNELS")
shown=$(awk '/^[0-9.]+ +Debian .*(smoke|check)/ { print $1, $NF }' \
	"$top/Documentation/howto/kernels.rst")
n=$((n + 1))
if [ "$listed" ] && [ "$listed" = "$shown" ]; then
	echo "ok $n kernels.rst shows what KERNELS lists"
else
	diff <(echo "$listed") <(echo "$shown") | sed 's/^/# /'
	echo "not ok $n kernels.rst shows what KERNELS lists"
	bad=1
fi
exit $bad
