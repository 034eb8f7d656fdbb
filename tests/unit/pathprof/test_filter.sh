#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# --filter refuses expressions that cannot be right where pathprof matches a
# packet: there is no direction, no link layer and no payload.
set -u

# shellcheck source=tests/unit/lib/files.sh
. "$(dirname "$0")/../lib/files.sh"

cat >main.c <<'END'
#include <stdio.h>
#include "record/pcap-filter.h"

int main(int argc, char **argv)
{
	static struct pcap_insn insns[PCAP_INSNS];
	char err[300];

	if (argc != 2 ||
	    pcap_filter__compile(argv[1], insns, err, sizeof(err)) >= 0)
		return 0;
	puts(err);
	return 1;
}
END
gcc -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -I"$TOP/bpf" \
	-I"$TOP/userspace/pathprof" -o compile main.c \
	"$TOP/userspace/pathprof/record/pcap-filter.c" -lpcap || exit

accepts() {
	local one
	for one; do
		./compile "$one" || { echo "of $one"; return 1; }
	done
}

# refuses PATTERN EXPRESSION...: each, in one line.
refuses() {
	local one
	for one in "${@:2}"; do
		./compile "$one" >said && { echo "accepted: $one"; return 1; }
		cat said
		[ "$(wc -l <said)" = 1 ] && grep -q "$1" said || return
	done
}

# The command line passes the sentence on, before it asks for rights.
command_line() {
	"$PP" top --once --filter inbound >said 2>&1
	[ "$?" = 2 ] && cat said &&
		grep -qx 'pathprof: top: --filter "inbound": .*--dir.*' said
}

if [ ! -x "$PP" ]; then
	echo "1..0 # SKIP $PP is not built"
	exit 4
fi
echo "KTAP version 1"
echo "1..6"
check "headers" accepts 'tcp port 80 and host 10.0.0.1' 'ip6' 'len > 100' \
	'ip[8] < 3' 'ip6[7] < 3' 'tcp[tcpflags] & (tcp-syn|tcp-fin) != 0' \
	'tcp[13] = 2' 'tcp [20:4] = 0' 'tcp[56:4] = 0' 'udp[4:2] > 20' \
	'udp[6:2] = 0' 'icmp[icmptype] = 8' 'ip[((ip[0] & 15) << 2) + 13] = 2' \
	'host 10.0.0.2 and not (net fd00::/8)'
check "a direction" refuses 'use --dir' inbound 'not inbound' \
	'inbound or port 80' outbound 'tcp and outbound'
check "the link layer" refuses 'link layer' 'ether[0] & 1 = 0' \
	'tcp and ether [12:2] = 0x800' 'link[0] = 1' 'wlan[0] = 1' \
	'ip[ether[0]] = 1'
check "the device" refuses 'use --dev' 'ifindex 3'
check "payload" refuses 'payload' \
	'tcp[((tcp[12:1] & 0xf0) >> 2):4] = 0x47455420' \
	'port 80 and tcp [(tcp[12] >> 2)] = 1' 'tcp[60] = 1' 'tcp[57:4] = 1' \
	'tcp[32 + 32] = 1' 'udp[8] = 1' 'udp[0x8] = 1' 'udp[6:4] = 1' \
	'udp[udp[4:2]] = 1' 'ip[130] = 1' 'ip6[127:2] = 1'
check "the command line" command_line
[ $bad -eq 0 ]
