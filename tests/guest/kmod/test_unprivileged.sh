#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What a user without privileges can do to the host by way of the module: add
# no cost to connections of others, not keep it loaded, not take memory outside
# of their memory cgroup, not make others wait for a lock or for rmmod, and not
# walk all connections of a namespace that they do not own.
. "$(dirname "$0")/../../lib.sh"
plan 8

TRACING=/sys/kernel/tracing
insmod "$MODULE" || exit
# Before, the congestion control was part of the module.
[ ! -e "$CC_MODULE" ] || insmod "$CC_MODULE" || exit
defer "rmmod mssfrac_cc"
unload() { ! grep -q '^mssfrac ' /proc/modules || rmmod mssfrac; }
defer unload
ip netns add b
defer "ip netns del b"
ip -n b link set lo up

# user COMMAND...: as a user with a user and network namespace of their own.  The
# second is made once the first has a root, as container programs do: its files
# belong to that root then.
as_user=(setpriv --reuid 65534 --clear-groups unshare --user --map-root-user
	unshare --net --)
user() { "${as_user[@]}" "$@"; }
# traced FILTER COMMAND...: the calls that the filter's functions get meanwhile
traced() {
	echo "$1" >$TRACING/set_ftrace_filter &&
		echo function >$TRACING/current_tracer &&
		echo >$TRACING/trace || return
	shift
	"$@" >/dev/null
	grep -v '^#' $TRACING/trace
	echo nop >$TRACING/current_tracer
	echo >$TRACING/set_ftrace_filter
}

# Steps: set rx_mss_est in a namespace of one's own; transfer in another.
# Expectation: no probe is called per segment.
estimate() {
	user sysctl -w net.mssfrac.rx_mss_est=1 || return
	traced ':mod:mssfrac' tcpload bulk --from b --to b --address 127.0.0.1 \
		--warmup-ms 0 --measure-ms 200 >"$TMP/calls"
	sed -n 's/^.*: \(probe_[a-z_]*\) .*/\1/p' "$TMP/calls" | sort |
		uniq -c >"$TMP/probes"
	cat "$TMP/probes"
	[ -s "$TMP/probes" ] && ! awk '$1 > 50' "$TMP/probes" | grep .
}
check "rx_mss_est adds no call per segment to other namespaces" estimate

# Steps: select the congestion control, as a user of the host and as the owner
# of a namespace.  Expectation: the former is refused, and with either the
# module can be unloaded.
select_cc='import socket, sys
s = socket.socket()
try:
    s.setsockopt(socket.IPPROTO_TCP, 13, b"mssfrac")
except OSError as e:
    print(e)
print("ready", flush=True)
sys.stdin.read()'
hold() {
	local status
	coproc "$@" /usr/bin/python3 -c "$select_cc"
	local reader=${COPROC[0]} writer=${COPROC[1]} line=
	until [ "$line" = ready ]; do
		read -r line <&"$reader" || return
		echo "$line"
	done
	rmmod mssfrac
	status=$?
	eval "exec $writer>&-"
	wait
	[ "$status" -ne 0 ] || insmod "$MODULE" || return
	return "$status"
}
check "a user of the host cannot keep the module loaded" \
	hold setpriv --reuid 65534 --clear-groups
check "the owner of a namespace cannot keep the module loaded" hold user

# Steps: 4000 connections of a memory cgroup: without the module, with it, and
# with a policy on.  Expectation: the cgroup is charged for the states of its
# sockets, 128 bytes each, and 256 if a policy acts on them (the accepted ends get
# a cgroup later and are not charged).  The kernel sums its counts every 2 s
# (FLUSH_TIME), or earlier once 64 pages per CPU have changed.
mkdir "$TMP/cgroup"
mount -t cgroup2 none "$TMP/cgroup" && defer "umount $TMP/cgroup"
# charged: bytes of kernel memory that 4000 connections cost a new cgroup
charged() {
	local group=$TMP/cgroup/charged
	mkdir "$group" || return
	sh -c 'echo $$ >"$1/cgroup.procs" && exec /usr/bin/python3 -c "$2" "$1"' \
		- "$group" '
import ctypes, os, resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (16384, 16384))
assert not ctypes.CDLL(None).setns(os.open("/run/netns/b", 0), 0x40000000)
def slab():
    with open(sys.argv[1] + "/memory.stat") as stat:
        return sum(int(n) for k, n in map(str.split, stat)
                   if k.startswith("slab_"))
server = socket.create_server(("127.0.0.1", 7000), backlog=1024)
before = slab()
kept = []
for _ in range(4000):
    kept.append(socket.create_connection(("127.0.0.1", 7000)))
    kept.append(server.accept()[0])
time.sleep(3)  # until the kernel has summed them
print(slab() - before)'
	rmdir "$group"
}
memory() {
	local with without policy
	echo +memory >"$TMP/cgroup/cgroup.subtree_control" || return
	# The first of all makes caches, which stay.
	charged >/dev/null && with=$(charged) || return
	ip netns exec b sysctl -qw net.mssfrac.tx_frac=64 || return
	policy=$(charged) || return
	rmmod mssfrac
	without=$(charged) || return
	insmod "$MODULE" || return
	echo "without the module $without bytes, with it $with, with a policy $policy"
	within $((with - without)) 350000 680000 &&
		within $((policy - without)) 860000 1200000
}
within() { [ "$1" -ge "$2" ] && [ "$1" -le "$3" ]; }
charges="a memory cgroup is charged, for connections and for their policy"
if grep -q memory "$TMP/cgroup/cgroup.controllers"; then
	check "$charges" memory
else
	skip "$charges" "this kernel has no memory cgroups (CONFIG_MEMCG)"
fi

# Steps: read the counters while no connection ends.  Expectation: no lock is
# taken, so nobody waits for the reader however many connections there are.
lockless() {
	traced '_raw_spin_lock_bh mssfrac_counters_sum' ip netns exec b \
		cat /proc/net/mssfrac >"$TMP/calls"
	grep -c 'mssfrac_counters_sum <-' "$TMP/calls" &&
		! grep -m 1 -E '_raw_spin_lock_bh <-(mssfrac_counters_sum|add_shard)' \
			"$TMP/calls"
}
check "reading the counters takes no lock" lockless

# Steps: read the counters as a user of the host, as the owner of a network
# namespace, and as root.  Expectation: the user is refused, because each read
# walks all connections of the namespace.
readers() {
	setpriv --reuid 65534 --clear-groups cat /proc/net/mssfrac && return 1
	user grep -c . /proc/net/mssfrac && grep -c . /proc/net/mssfrac
}
check "only root and the owner of a namespace read its counters" readers

# Steps: a container reads the counters, or writes a setting, and the page of its
# memory that the kernel then needs never comes (userfaultfd; a container would
# use FUSE); rmmod; two namespaces begin, one ends.  Expectation: rmmod waits for
# the container, and no other namespace does.
page='import ctypes, fcntl, mmap, os, struct, sys
libc = ctypes.CDLL(None)
faults = libc.syscall(323, 0)  # userfaultfd()
fcntl.ioctl(faults, 0xc018aa3f, struct.pack("3Q", 0xaa, 0, 0))  # UFFDIO_API
memory = mmap.mmap(-1, 4096)
page = ctypes.addressof(ctypes.c_char.from_buffer(memory))
fcntl.ioctl(faults, 0xc020aa00,  # UFFDIO_REGISTER
            struct.pack("4Q", page, 4096, 1, 0))
call, path = sys.argv[1:]
file = os.open(path, os.O_RDONLY if call == "read" else os.O_WRONLY)
getattr(libc, call)(file, ctypes.c_void_p(page), 2)'
blocked() {
	local reader waits status=0
	"${as_user[@]}" /usr/bin/python3 -c "$page" "$@" & # its own process
	reader=$!
	if wait_for 30 grep -q userfault /proc/$reader/wchan; then
		rmmod mssfrac &
		waits=$!
		wait_for 30 grep -q '^mssfrac .*Unloading' /proc/modules || status=1
		sleep 1 # until rmmod has come to the files
		timeout 20 ip netns add late && timeout 20 ip netns add later &&
			timeout 20 ip netns del late || status=1
		kill -0 $waits || status=1
	else
		status=1
	fi
	kill -KILL $reader
	wait $reader 2>/dev/null
	wait $waits && ip netns del later && insmod "$MODULE" &&
		return $status
}
reading="only rmmod waits for a reader of the counters that is stuck"
writing="only rmmod waits for a writer of a setting that is stuck"
if [ -e /proc/sys/vm/unprivileged_userfaultfd ]; then
	sysctl -qw vm.unprivileged_userfaultfd=1
	check "$reading" blocked read /proc/net/mssfrac
	check "$writing" blocked write /proc/sys/net/mssfrac/tx_frac
else
	without="this kernel has no userfaultfd (CONFIG_USERFAULTFD)"
	skip "$reading" "$without"
	skip "$writing" "$without"
fi
