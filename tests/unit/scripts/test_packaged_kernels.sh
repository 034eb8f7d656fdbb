#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Which of the packages that a server offers are kernels a guest boots, in
# which order, and how one is unpacked: apt is played by stubs, and packages
# are made here.
# shellcheck disable=SC2317 # checks are called by name
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
tree=$tmp/tree
packaged=$tree/build/packaged
mkdir -p "$tmp/bin" "$tree/scripts" "$tmp/pool"
cp "$top"/scripts/{packaged-kernels,kernel-image} "$tree/scripts/"
n=0
bad=0

# package NAME VERSION DEPENDS FILE...: on offer, holding these files.
package() {
	local name=$1 version=$2 depends=$3 file
	shift 3
	mkdir -p "$tmp/make/DEBIAN"
	for file; do
		mkdir -p "$tmp/make/$(dirname "$file")"
		echo "$name" >"$tmp/make/$file"
	done
	printf '%s: %s\n' Package "$name" Version "$version" \
		Architecture amd64 Maintainer nobody Description none \
		>"$tmp/make/DEBIAN/control"
	dpkg-deb -Znone --root-owner-group -b "$tmp/make" \
		"$tmp/pool/$name.deb" >/dev/null || exit 1
	printf '%s: %s\n' Package "$name" Version "$version" \
		Depends "$depends" >>"$tmp/pool/list"
	echo >>"$tmp/pool/list"
	rm -r "$tmp/make"
}

# All in one package, as in Debian 12.
for release in 6.12.9+deb13 6.12.10+deb13 6.12.9+deb13.1 6.1.0-9 6.1.0-10; do
	package "linux-image-$release-amd64" 1 linux-base \
		"boot/vmlinuz-$release-amd64" \
		"lib/modules/$release-amd64/kernel/net/veth.ko" \
		"lib/modules/$release-amd64/kernel/sound/loud.ko"
done
# No plain images.
package linux-image-6.1.0-10-rt-amd64 1 ""
package linux-image-6.12.9+deb13-cloud-amd64 1 ""
package linux-image-6.12-amd64 1 linux-image-6.12.10+deb13-amd64
package linux-image-6.1.0-10-amd64-dbg 1 ""
# Later an image is empty and leans on others of its release.
release=7.2.12+deb13-amd64
package linux-image-$release 7.2.12-1 \
	"linux-binary-$release (= 1), linux-modules-$release (= 1)"
package linux-modules-$release 1 "" \
	usr/lib/modules/$release/kernel/net/veth.ko
package linux-binary-$release 1 "" usr/lib/modules/$release/vmlinuz
# Here that of the modules is gone,
release=7.0.13+deb13-amd64
package linux-image-$release 7.0.13-1 \
	"linux-binary-$release (= 1), linux-modules-$release (= 1)"
package linux-binary-$release 1 "" boot/vmlinuz-$release
# and here one that a guest does not need.
release=6.18.5+deb13-amd64
package linux-image-$release 6.18.5-1 "linux-base-$release (= 1)" \
	boot/vmlinuz-$release usr/lib/modules/$release/kernel/net/veth.ko

cat >"$tree/scripts/root" <<'STUB'
#!/bin/sh
[ "$1" = all ] && echo forky || echo "deb http://one/debian/ $2 main"
STUB
cat >"$tmp/bin/apt-get" <<STUB
#!/bin/bash
echo "\$*" >>"$tmp/asked"
case " \$* " in
*" update ") [ ! -e "$tmp/broken" ] || { echo "E: no route"; exit 100; } ;;
*" download "*)
	words="\$*"
	for package in \${words##* download }; do
		cp "$tmp/pool/\$package.deb" . 2>/dev/null || exit 100
	done ;;
esac
STUB
cat >"$tmp/bin/apt-cache" <<STUB
#!/bin/bash
while [ "\$1" = -o ]; do shift 2; done
# stanza NAME
stanza() {
	awk -v name="\$1" 'BEGIN { RS = ""; ORS = "\n\n" }
		index(\$0, "Package: " name "\n") == 1' "$tmp/pool/list"
}
case \$1 in
pkgnames) sed -n 's/^Package: //p' "$tmp/pool/list" ;;
show) for package in "\${@:3}"; do stanza "\$package"; done ;;
depends)
	echo "\$3"
	stanza "\$3" | sed -n 's/ ([^)]*)//g; s/^Depends: //p' | tr -d ' ' |
		tr , '\n' | while read -r one; do
		[ -e "$tmp/pool/\$one.deb" ] || one="<\$one>"
		echo "  Depends: \$one"
	done ;;
esac
STUB
chmod +x "$tmp/bin/apt-get" "$tmp/bin/apt-cache" "$tree/scripts/root"

# says NAME STATUS PATTERN WORDS...
says() {
	local name=$1 status=$2 wanted=$3 said got
	shift 3
	said=$(PATH=$tmp/bin:$PATH "$tree/scripts/packaged-kernels" "$@" 2>&1)
	got=$?
	n=$((n + 1))
	# shellcheck disable=SC2053 # a pattern
	if [ $got -eq "$status" ] && [[ $said == $wanted ]]; then
		echo "ok $n $name"
	else
		echo "# status $got, wanted $status; it said:"
		echo "# ${said//$'\n'/$'\n# '}"
		echo "not ok $n $name"
		bad=1
	fi
}

# holds NAME COMMAND...
holds() {
	local name=$1
	shift
	n=$((n + 1))
	if "$@"; then
		echo "ok $n $name"
	else
		echo "not ok $n $name"
		bad=1
	fi
}

# renewed TIMES: how often lists were asked for.
renewed() { [ "$(grep -c ' update$' "$tmp/asked")" -eq "$1" ]; }

own_sources() {
	local line
	while read -r line; do
		[[ $line = *"Dir::Etc::sourcelist=$packaged/.apt/"* ]] &&
			[[ $line = *"Dir::Etc::sourceparts=- "* ]] &&
			[[ $line = *"Dir::State=$packaged/.apt/"* ]] || return
	done <"$tmp/asked"
}

# Whole: image, modules, their index.
unpacked() {
	local folder=$packaged/$1
	[ -e "$folder/boot/vmlinuz-$1" ] &&
		[ -e "$folder/lib/modules/$1/kernel/net/veth.ko" ] &&
		[ -e "$folder/lib/modules/$1/modules.dep" ]
}

echo "KTAP version 1"
echo "1..24"
says "no word" 2 "usage:*"
says "an unknown word" 2 "*unknown command lsit*" lsit
says "an unknown option" 2 "*unknown option --log*" list --log
says "fetch without a release" 2 "*fetch needs a release*" fetch
says "plain images that boot, oldest first" 0 "6.1.0-9-amd64
6.1.0-10-amd64
6.12.9+deb13-amd64
6.12.9+deb13.1-amd64
6.12.10+deb13-amd64
6.18.5+deb13-amd64
7.2.12+deb13-amd64" list
says "the newest of each series" 0 "6.1.0-10-amd64
6.12.10+deb13-amd64
6.18.5+deb13-amd64
7.2.12+deb13-amd64" list --series
says "what has no modules is shown on request" 0 \
	"*7.0.13+deb13-amd64 *7.0.13-1 *no modules*" list --all --long
holds "three lists, one renewal" renewed 1
touch -d '25 hours ago' "$packaged/.apt/offered"
says "a day later" 0 "*" list
holds "the lists are renewed" renewed 2
says "on request, too" 0 "*" --refresh list
holds "they are renewed" renewed 3

says "an old kernel" 0 "$packaged/6.1.0-9-amd64/boot/vmlinuz-6.1.0-9-amd64" \
	fetch 6.1.0-9-amd64
holds "its image and its modules are there" unpacked 6.1.0-9-amd64
holds "what no guest needs is left out" \
	[ ! -e "$packaged/6.1.0-9-amd64/lib/modules/6.1.0-9-amd64/kernel/sound" ]
says "a new one, from three packages" 0 "$packaged/7.2.12*/boot/vmlinuz-7.2.12*" \
	fetch 7.2.12+deb13-amd64
holds "its image and its modules are there" unpacked 7.2.12+deb13-amd64
holds "apt has lists and sources of its own" own_sources
says "no modules, no guest" 3 "*the modules of 7.0.13+deb13-amd64 are*" \
	fetch 7.0.13+deb13-amd64
says "no such release" 2 "*have no image of 5.4.1-amd64*" fetch 5.4.1-amd64

rm "$tmp/pool/linux-image-6.1.0-10-amd64.deb"
says "a download fails" 1 "*fetching 6.1.0-10-amd64 failed*" \
	fetch 6.1.0-10-amd64
holds "nothing half is left where guests look" \
	[ ! -e "$packaged/6.1.0-10-amd64" ]
touch "$tmp/broken"
says "no server answers" 1 "*renewing the package lists failed*" \
	--refresh list
says "what is here needs none" 0 "$packaged/6.1.0-9-amd64/boot/*" \
	fetch 6.1.0-9-amd64
exit $bad
