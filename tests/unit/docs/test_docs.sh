#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The pages agree with the code: names, ranges and defaults of settings,
# counters, tracepoints, keys and options, in both directions.  Then one
# violation of each check is planted in a copy of the tree, and the check must
# object.
# shellcheck disable=SC2317 # checks are called by name
set -u

top=$(cd "$(dirname "$0")/../../.." && pwd)
tree=$top
tmp=$(mktemp -d)
"$top/tests/unit/kmod/kernel-headers" "$tmp/headers"
trap 'rm -rf "$tmp"' EXIT
n=0
bad=0

# doc PAGE: where that page is; page names are unique.
doc() {
	local found
	for found in "$tree"/Documentation/{,*/}"$1"; do
		[ -e "$found" ] && echo "$found" && return
	done
	echo "$tree/Documentation/$1"
}

# section TITLE: that section of the page on stdin.
section() {
	awk -v title="$1" '/^=+$/ && last != "" { on = last == title }
		on { print }
		{ last = $0 }'
}

# rows: the first lines of the body rows of every headed table on stdin.
rows() { awk '/^=+ +=/ { borders++; next } borders % 3 == 2 && /^[^ ]/'; }

# same CODE PAGE: what only one of two lists has.
same() {
	diff <(sort <<<"$1") <(sort <<<"$2") |
		sed -n 's/^</only in the code:/p; s/^>/only in the page:/p'
	[ "$1" ] && [ "$2" ] || echo "nothing to compare"
}

# --- What the code says, what the page says ---------------------------------

# name low..high default of each setting, as the compiler sees the table
settings_rows() {
	printf '%s\n' '#include "settings.h"' \
		'#define X(name, type, low, high, value, unit, text) row name low..high value' \
		'MSSFRAC_SETTINGS(X)' |
		gcc -E -P -I"$tree/kmod" -I"$tmp/headers" - 2>&1 |
		grep -o 'row [a-z_]* [0-9]* *\.\. *[0-9]* [0-9]*' |
		sed 's/^row //; s/ *\.\. */../'
}

check_settings() {
	same "$(settings_rows)" "$(section SETTINGS <"$(doc mssfrac.4.rst)" | rows |
		awk '{ print $1, $2, $3 }')"
}

check_counters() {
	same "$(sed -n 's/^\t[A-Z]*(\([a-z_]*\)).*/\1/p' "$tree/kmod/counters.h")" \
		"$(section COUNTERS <"$(doc mssfrac.4.rst)" | rows | cut -d' ' -f1)"
}

# number word, by the enum and the tracepoint's table of words
whys() {
	local number=0 name
	sed -n '/^enum mssfrac_tx_why/,/^}/s/^\t\(MSSFRAC_WHY_[A-Z_]*\).*/\1/p' \
		"$tree/kmod/tx.h" |
		while read -r name; do
			echo "$number $(sed -n "s/.*{ $name, \"\(.*\)\" }.*/\1/p" \
				"$tree/kmod/trace.h")"
			number=$((number + 1))
		done
}

check_whys() {
	same "$(whys)" "$(section TRACEPOINTS <"$(doc mssfrac.4.rst)" | rows |
		awk '/^[0-9]/ { print $1, $2 }')"
}

check_fields() {
	same "$(sed -n '/^#define/d; s/.*__field(\(u[0-9]*\), \(.*\))/\2 \1/p
		s/.*__array(\(u8\), \(.*\), \(16\))/\2 \1[\3]/p' \
		"$tree/kmod/trace.h")" \
		"$(section TRACEPOINTS <"$(doc mssfrac.4.rst)" | rows |
			awk '/^[a-z]/ { print $1, $2 }')"
}

# name number, of each constant of the sender's policy
check_constants() {
	same "$(sed -E -n 's/^#define ([A-Z_]+)\s+\(?([0-9]+).*/\1 \2/p' \
		"$tree/kmod/tx.c"
	sed -E -n 's/^#define (MSSFRAC_WORTH)\s+([0-9]+).*/\1 \2/p' \
		"$tree/kmod/window.h")" \
		"$(sed -E 's,^(\S+)_MIN/MAX +([0-9]+)\, ([0-9]+).*,\1_MIN \2\n\1_MAX \3,;t
			s,^([A-Z_]+) +(1/)?([0-9]+).*,\1 \3,' \
			"$(doc sender-states.rst)" | grep -E '^[A-Z]+(_[A-Z]+)+ [0-9]+$')"
}

# columns: the body rows of every headed table on stdin, first lines only,
# trimmed cells separated by "|".
columns() {
	awk '/^=+ +=/ { borders++; n = 0; at = 1
			while (match(substr($0, at), /^=+ */)) {
				start[++n] = at; at += RLENGTH; size[n] = RLENGTH }
			next }
		borders % 3 == 2 && /^[^ ]/ {
			for (i = 1; i <= n; i++) {
				cell = substr($0, start[i], i < n ? size[i] : 999)
				gsub(/^ +| +$/, "", cell)
				printf "%s%s", cell, i < n ? "|" : "\n" } }'
}

# plain: numbers for the powers that ranges are written with.
plain() { sed 's/2^24/16777216/; s/2^30/1073741824/; s/2^32-1/4294967295/'; }

# keys TABLE FORMAT: a line for each key of a table in Python.
keys() {
	PYTHONPATH=$tree/userspace/mssab PYTHONDONTWRITEBYTECODE=1 \
		/usr/bin/python3 -c "
from mssab.experiment import cell, experiment, module
for name, key in $1.items():
    kind, limits, unit = key.type_name, key.limits or '-', key.unit or '-'
    default = str(key.default).lower() if key.type_name == 'boolean' else \
        f'{key.default:g}' if key.type_name == 'number' else \
        str(list(key.default)) if key.type_name == 'list' else key.default
    or_unset = default if key.default or kind == 'boolean' else 'unset'
    print(f\"$2\")" 2>&1
}

page_cells() { section "$1" <"$(doc mssab-grid.5.rst)"; }

check_arms() {
	same "$(keys module.SETTINGS '{name} {limits}')" \
		"$(page_cells ARMS | columns | awk -F'|' '{ print $1, $2 }')"
}

# key, type, unit, range and default of a cell
check_cells() {
	same "$(keys cell.KEYS '{name} {kind} {unit} {limits} {or_unset}')" \
		"$(page_cells CELLS | columns | plain | awk -F'|' '
			{ match($5, /\*\*[^*]*\*\*/)
			default_ = substr($5, RSTART + 2, RLENGTH - 4)
			print $1, $2, $3 ? $3 : "-", $4 ~ /\.\./ ? $4 : "-", default_ }')"
}

# Every load, link and qdisc that a cell can have is on its page.
check_choices() {
	keys cell.KEYS "{' '.join(key.choices)}" | tr ' ' '\n' | grep . |
		while read -r word; do
			page_cells CELLS | grep -q -w -e "$word" || echo "no $word in CELLS"
		done
}

# key, type, range and default of [design]
check_design() {
	same "$(keys experiment.DESIGN '{name} {kind} {limits} {default}')" \
		"$(section DESIGN <"$(doc mssab-experiment.5.rst)" | columns | plain |
			awk -F'|' '!/^(primary|guardrails|pairs)\|/ {
				print $1, $2, $3 ? $3 : "-", $4 }')"
}

check_metrics() {
	same "$(sed -E -n 's/^    "([a-z0-9_]+)": \(Metric\(.*/\1/p' \
		"$tree/userspace/mssab/mssab/experiment/metrics.py")" \
		"$(section METRICS <"$(doc mssab-experiment.5.rst)" | rows |
			cut -d' ' -f1)"
}

long_options() { grep -o -E -- '--[a-z-]+' | sort -u; }

check_guest() {
	same "$({
		sed -n '/add_argument(/p' "$tree/scripts/guest"
		echo --help
	} | long_options)" \
		"$(section Options <"$(doc guest.rst)" | rows | cut -c 1-19 |
			long_options)"
}

check_mssab() {
	same "$({
		sed -n '/add_argument(/p' "$tree/userspace/mssab/mssab/cli.py"
		echo --help
	} | long_options)" \
		"$(section OPTIONS <"$(doc mssab.1.rst)" | grep ^- | long_options)"
}

check_msstune() {
	same "$({
		grep -h -o 'add_argument("[^)]*' \
			"$tree"/userspace/msstune/msstune/{cli.py,commands/*.py}
		echo --help --version
	} | long_options)" \
		"$(section OPTIONS <"$(doc msstune.1.rst)" | grep ^- | long_options)"
}

check_tcpload() {
	same "$(cat "$tree"/userspace/tcpload/*.[ch] |
		sed -n 's/^\t{ "\([a-z-]*\)", .*/--\1/p' | sort -u)" \
		"$(grep '^--[a-z]' "$(doc tcpload.1.rst)" | cut -c 1-16 | long_options)"
}

# Each page is valid, and the index names it.
check_pages() {
	local page name
	for page in "$tree"/Documentation/{,*/}*.rst; do
		name=${page#"$tree/Documentation/"}
		rst2pseudoxml --halt=5 --report=2 "$page" 2>&1 >/dev/null |
			sed "s,^$tree/,,"
		[ "$name" = index.rst ] || grep -q -F ": $name" "$(doc index.rst)" ||
			echo "index.rst does not name $name"
	done
	sed -n 's/^\.\. _.*: \(.*\.rst\)$/\1/p' "$(doc index.rst)" |
		while read -r name; do
			[ -f "$(doc "$name")" ] || echo "index.rst: no page $name"
		done
}

# Pages that code or pages name exist, the section number being optional.
check_references() {
	local name
	grep -r -h -o -E 'Documentation/[a-z/-]+(\.[1-9])?\.rst' \
		"$tree"/{kmod,bpf,userspace,scripts} | sort -u |
		while read -r name; do
			compgen -G "$tree/${name%.rst}*.rst" >/dev/null ||
				echo "no page $name"
		done
}

# The pages' examples of mssab arm, and SipHash against its authors' vector.
check_arm() {
	same "$(cat "$tree"/Documentation/reference/{mssab.1,mssfrac.4}.rst |
		sed -n '/^  \$ mssab arm /{n;s/^  //p}'
	echo a129ca6149be45e5)" \
		"$(export PYTHONPATH=$tree/userspace/mssab PYTHONDONTWRITEBYTECODE=1
	cat "$tree"/Documentation/reference/{mssab.1,mssfrac.4}.rst |
		sed -n "s/^  \\$ mssab arm //; T; s/'//g; p" |
		while read -r -a arguments; do
			/usr/bin/python3 -m mssab arm "${arguments[@]}" 2>&1
		done
	/usr/bin/python3 -c "from mssab.experiment.arm import siphash24
k0, k1 = 0x0706050403020100, 0x0f0e0d0c0b0a0908
print(f'{siphash24(bytes(range(15)), k0, k1):x}')" 2>&1)"
}

# --- Verdicts ---------------------------------------------------------------

# verdict NAME FINDINGS: ok if there are none.
verdict() {
	n=$((n + 1))
	if [ -z "$2" ]; then
		echo "ok $n $1"
	else
		printf '%s\n' "$2" | sed 's/^/# /'
		echo "not ok $n $1"
		bad=1
	fi
}

# inject CHECK FILE SED: the check objects while FILE is changed like that.
inject() {
	local keep=$tmp/keep found=""
	tree=$tmp/tree
	cp "$tree/$2" "$keep"
	sed -i -E "$3" "$tree/$2"
	if cmp -s "$keep" "$tree/$2"; then
		found="the violation was not planted"
	elif [ -z "$("check_$1")" ]; then
		found="check_$1 does not object"
	fi
	cp "$keep" "$tree/$2"
	verdict "$1: objects to $3 in $2" "$found"
}

mkdir "$tmp/tree"
cp -r "$top"/{VERSION,kmod,bpf,scripts,userspace,Documentation} "$tmp/tree"

module=Documentation/reference/mssfrac.4.rst
cells=Documentation/reference/mssab-grid.5.rst
cell=userspace/mssab/mssab/experiment/cell.py
experiment=userspace/mssab/mssab/experiment/experiment.py

echo "KTAP version 1"
echo "1..48"
for check in settings counters whys fields constants arms cells \
	choices design metrics guest mssab msstune tcpload pages \
	references arm; do
	tree=$top
	verdict "pages and code agree: $check" "$("check_$check")"
done
inject settings kmod/settings.h 's/(seg_max.*) 32/\1 33/'
inject settings kmod/window.h 's/(MSSFRAC_MAX_FRAC\t)64/\163/'
inject settings kmod/settings.h 's/ab_seed/ab_key/'
inject settings "$module" 's/^tx_frac /tx_part /'
inject counters kmod/counters.h 's/POLICY\(tx_sized\)/POLICY(tx_held)/'
inject counters "$module" 's/^rx_raised /rx_grown  /'
inject whys kmod/trace.h 's/"stall"/"stalled"/'
inject whys kmod/tx.h '/^\tMSSFRAC_WHY_SIZED,/d'
inject fields kmod/trace.h 's/u32, space/u64, space/'
inject constants kmod/window.h 's/(MSSFRAC_WORTH\t+)24/\125/'
inject arms userspace/mssab/mssab/experiment/module.py 's/Key\(32, 2,/Key(32, 3,/'
inject cells "$cells" 's/2\^24/2^23/'
inject cells "$cell" 's/repeat: int = _key\(1,/repeat: int = _key(2,/'
inject cells "$cell" 's/repeat: int/times: int/'
inject cells "$cell" 's/unit="segments"/unit="bytes"/'
inject choices "$cell" 's/"nuttcp-udp", "netpipe"/"nuttcp-udp", "netpip"/'
inject design "$experiment" 's/attempts: int = _key\(5, 1/attempts: int = _key(5, 2/'
inject design "$experiment" 's/stolen_percent: float = _key\(2/stolen_percent: float = _key(3/'
inject design Documentation/reference/mssab-experiment.5.rst 's/^stolen_percent /stolen_per_mil /'
inject metrics userspace/mssab/mssab/experiment/metrics.py 's/"softirqs": \(Metric/"interrupts": (Metric/'
inject guest scripts/guest 's/"--seed"/"--chance"/'
inject mssab userspace/mssab/mssab/cli.py 's/"--only"/"--just"/'
inject msstune userspace/msstune/msstune/commands/lint.py 's/"--memory"/"--ram"/'
inject tcpload userspace/tcpload/bulk.c 's/"zerocopy"/"no-copy"/'
inject pages Documentation/index.rst '/^\.\. _guest:/d'
inject pages Documentation/index.rst '/: results.grid.rst/d'
inject references scripts/load '$a# see Documentation/nothing.rst'
inject arm userspace/mssab/mssab/experiment/arm.py 's/0x736f6d65/0x736f6d66/'
inject arm userspace/mssab/mssab/experiment/arm.py 's/bytes\(4\)/bytes(2)/'
inject arm Documentation/reference/mssab.1.rst 's/^  treated 64/  stock 64/'
inject fields "$module" 's/^saddr     u8\[16\]/saddr     u64   /'
exit $bad
