# SPDX-License-Identifier: GPL-2.0-only
"""A fourth set of held-out faults, by someone who knew of the rules of msstune what its
manual page says, and not their code.  Mechanisms, programs, topologies or viewpoints
differ from those of the earlier sets.  Parameters are drawn from the ranges stated
here.  A fault must show in a counter of the kernel, or in its errors: the case fails
unless that grows meanwhile.  Prints "ok NAME" or "not ok NAME" for each case, and
remarks.

usage: held_out_path_faults_4.py list|faults|healthy|all|NAME...
MSSTUNE_SEED=N in the environment: the seed of the parameters, 1 by default.
FACTS=DIR in the environment: store the facts of each case in DIR.

Do not change a rule until one of these cases passes: write new ones then.
"""
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import held_out_path_faults as held  # noqa: E402
import faults  # noqa: E402
import held_out_loads_4 as own  # noqa: E402
from faults import ADDRESS, sh  # noqa: E402
from held_out_loads import IPV6, MIDDLE, answer, ask, download, stream  # noqa: E402
from held_out_loads import upload  # noqa: E402
from held_out_loads_3 import curl, file, gateway, program, receiver  # noqa: E402
from held_out_loads_3 import sending_macvlan, switched, url, visitors  # noqa: E402
from held_out_loads_3 import web_server  # noqa: E402
from held_out_path_faults import case, six  # noqa: E402
from held_out_path_faults_3 import answered, counted, extended, healthy  # noqa: E402
from held_out_path_faults_3 import limited, long_queue, run, single  # noqa: E402
from mssab.netns import inside  # noqa: E402
from path_faults import A, B  # noqa: E402

# The command line is that of the first set.  The third one has put its cases there.
held.FAULTS.clear()
held.HEALTHY.clear()


# --- Counters of the kernel -------------------------------------------------------

def connections(end):
    return answered("ip", "netns", "exec", end, "ss", "-tinH", "state", "established")


def kept_back(end):
    """Grows if a segment's data wait for more than 50 ms on average, to be sent or to
    be acknowledged."""
    def counter():
        seen = connections(end)
        return sum(map(int, re.findall(r" busy:(\d+)ms", seen))) \
            - 50 * sum(map(int, re.findall(r" data_segs_out:(\d+)", seen)))
    return counter


def unscaled(end):
    """limited() by the peer's window, which has no scale."""
    def counter():
        if " wscale:" in connections(end):
            raise ValueError("windows have a scale")
        return limited(end, "rwnd_limited")()
    return counter


def overlimits(end, device):
    def counter():
        seen = answered("tc", "-n", end, "-s", "-j", "qdisc", "show", "dev", device)
        return sum(qdisc["overlimits"] for qdisc in json.loads(seen))
    return counter


def untracked(end):
    """Packets that the full table of connections did not take."""
    def counter():
        with inside(end):
            names, *cpus = (line.split() for line in Path(
                "/proc/thread-self/net/stat/nf_conntrack").read_text().splitlines())
        return sum(int(cpu[names.index("drop")], 16) for cpu in cpus)
    return counter


# --- Faults ---------------------------------------------------------------------

# Each waits until the other one reads.
@case("two programs that both write first")
def _(draw):
    port, count = draw.port, draw("connections", 1, 4)
    return dict(topology=switched, want=["peer-stopped", "reader-stopped"],
                servers=lambda: [receiver(port, upload(), IPV6)],
                clients=lambda: [stream(port, address=IPV6)] * count,
                warm=draw("ms", 500, 1800) / 1000,
                proof=(extended(A, "TCPWinProbe"), 1))


@case("perl prints a line in two parts over GRE")
def _(draw):
    port, rtt, count = draw.port, draw("rtt", 0, 3), draw("connections", 1, 3)
    first, second = draw("bytes first", 5, 300), draw("bytes second", 1, 500)
    return dict(topology=lambda: own.tunnelled("gre", rtt), want=["nagle"],
                servers=lambda: [receiver(port, own.answers_lines)],
                clients=lambda: [own.perl(port, first, second)] * count,
                proof=(extended(B, "DelayedACKs"), 20))


@case("a server that splices, with more to follow")
def _(draw):
    port, number, rtt = draw.port, draw("vlan", 2, 4000), draw("rtt", 1, 15)
    request, reply = draw("bytes asked", 20, 900), draw("bytes answered", 80, 1300)
    count = draw("connections", 1, 3)
    return dict(topology=lambda: gateway(number, rtt), at=B, want=["cork"],
                servers=lambda: [receiver(port, own.spliced(request, reply))],
                clients=lambda: [ask(port, request, reply)] * count,
                proof=(kept_back(B), 1000))


@case("bash reads lines")
def _(draw):
    port, length, count = draw.port, draw("bytes", 30, 200), draw("connections", 1, 2)
    return dict(topology=sending_macvlan, at=A,
                want=["tiny-reads", "application-receive"], warm=4.0,
                servers=lambda: [receiver(port, own.sends_lines(length), IPV6)],
                clients=lambda: [own.bash(port)] * count,
                proof=(limited(B, "rwnd_limited"), 900))


@case("a router that removes the scale of windows")
def _(draw):
    port, number, rtt = draw.port, draw("vlan", 2, 4000), draw("rtt", 60, 120)
    count = draw("connections", 1, 2)
    return dict(topology=lambda: gateway(number, rtt), want=["window-scaling"],
                before=lambda: own.guarded(
                    MIDDLE, "ip6", "forward", "tcp flags & syn == syn "
                    "counter name seen reset tcp option window"),
                servers=lambda: [receiver(port, address=IPV6)], warm=4.0,
                clients=lambda: [curl("-H", "Expect:", "-T", "/dev/zero",
                                      url(port, address=IPV6))] * count,
                proof=(unscaled(A), 900))


# The program asks for 4 MiB.
@case("rmem_max below the buffer of a program")
def _(draw):
    port, number, rtt = draw.port, draw("vlan", 2, 4000), draw("rtt", 40, 100)
    most, count = draw("kB", 24, 64) * 1024, draw("connections", 1, 2)
    buffer = ((own.socket.SOL_SOCKET, own.socket.SO_RCVBUF, 1 << 22),)
    return dict(topology=lambda: gateway(number, rtt), at=A,
                host={"net.core.rmem_max": most}, want=["receive-buffer-fixed"],
                servers=lambda: [receiver(port, upload())],
                clients=lambda: [download(port, options=buffer)] * count,
                proof=(limited(B, "rwnd_limited"), 900))


@case("loss of what carries a VXLAN")
def _(draw):
    port, rtt, count = draw.port, draw("rtt", 25, 60), draw("connections", 2, 3)
    lost = draw("in 1000", 10, 25) / 10
    file(1 << 34)
    return dict(topology=lambda: own.tunnelled("vxlan", rtt, back=f"loss {lost}%"),
                at=B, want=["loss"], servers=lambda: [web_server(port)], warm=4.0,
                clients=lambda: [program(
                    A, "wget", "-q", "-t", 30, "--retry-connrefused", "-O", "/dev/null",
                    url(port))] * count,
                proof=(extended(B, "TCPFastRetrans"), 8))


@case("a radio link that repeats packets")
def _(draw):
    port, number, first = draw.port, draw("vlan", 2, 4000), draw("ms", 3, 8)
    percent, more = draw("percent", 5, 15), draw("ms later", 30, 60)
    count = draw("connections", 1, 2)
    file(1 << 34)

    def before():
        own.short_packets(2)
        own.repeating(percent, first, first + more)
    return dict(topology=lambda: gateway(number), before=before, at=B,
                want=["reordering"], servers=lambda: [web_server(port)], warm=3.0,
                clients=lambda: [curl(url(port))] * count,
                proof=(extended(A, "TCPOFOQueue"), 30))


@case("messages behind the datagrams of another host")
def _(draw):
    port, number, rtt = draw.port, draw("vlan", 2, 4000), draw("rtt", 10, 30)
    kbit, lasts = draw("kbit/s", 1500, 2500), draw("ms of queue", 900, 1800)
    count, size = draw("connections", 2, 4), draw("bytes", 300, 2000)
    pause, queued = draw("ms", 100, 250) / 1000, kbit * lasts // 8
    return dict(topology=lambda: gateway(number, rtt), want=["bufferbloat"], warm=8.0,
                before=lambda: sh(
                    f"tc -n {MIDDLE} qdisc replace dev mb root tbf rate {kbit}kbit "
                    f"burst 5kb limit {2 * queued}"),
                servers=lambda: [receiver(port)],
                clients=lambda: [*[stream(port, size, pause)] * count,
                                 own.datagrams(queued, 2.0)],
                proof=(long_queue(kbit), 20))


@case("a switch that drops long frames")
def _(draw):
    port, longest = draw.port, draw("bytes", 1280, 1480)
    count = draw("connections", 1, 3)
    file(draw("kB", 50, 900) * 1024)

    def before():
        own.short_packets(1)
        own.guarded(MIDDLE, "bridge", "forward",
                    f"meta length > {longest} counter name seen drop")
    return dict(topology=switched, before=before, at=B, want=["mtu"],
                servers=lambda: [web_server(port)], warm=draw("ms", 500, 1200) / 1000,
                clients=lambda: [curl(url(port))] * count,
                proof=(counted(MIDDLE, "bridge", "guard", "seen"), 1))


@case("downloads through a shaper at ingress")
def _(draw):
    port, kbit, count = draw.port, draw("kbit/s", 1500, 5000), draw("connections", 2, 4)
    file(1 << 34)
    return dict(topology=lambda: own.shaped(kbit), at=A, want=["shaper"],
                servers=lambda: [web_server(port, IPV6)], warm=4.0,
                clients=lambda: [curl(url(port, address=IPV6))] * count,
                proof=(overlimits(A, "ifb-a"), 30))


@case("a GRE tunnel without segmentation")
def _(draw):
    port, count = draw.port, draw("connections", 2, 4)
    write = draw("kB", 32, 256) * 1024

    def topology():
        own.tunnelled("gre", segments=65535)
        sh("ip netns exec $A ethtool -K tun-a tso off gso off; "
           f"for n in ma mb; do tc -n {MIDDLE} qdisc del dev $n root; done")
    return dict(topology=topology, want=["offload-off"],
                servers=lambda: [receiver(port)],
                clients=lambda: [stream(port, write)] * count,
                proof=(single("tun-a"), 10**5))


@case("an own limit of connections")
def _(draw):
    port, delay, most = draw.port, draw("delay", 1, 20), draw("most", 2, 5)
    count, size = most + draw("more", 4, 9), draw("bytes", 50, 900)
    pause = draw("ms", 200, 600) / 1000
    return dict(topology=lambda: switched(delay), want=["own-firewall"], warm=3.0,
                before=lambda: own.guarded(
                    A, "inet", "output", f"tcp dport {port} ct state new "
                    f"ct count over {most} counter name seen drop"),
                servers=lambda: [receiver(port, own.answers_after(size, pause))],
                clients=lambda: [own.calls(port, size, 0.05, ADDRESS)] * count,
                proof=(counted(A, "inet", "guard", "seen"), 5))


# The clients are not flooding: they try again, and some get through.
@case("a router that loses SYN-ACKs")
def _(draw):
    port, number, rtt = draw.port, draw("vlan", 2, 4000), draw("rtt", 5, 40)
    percent, cookies = draw("percent", 60, 85), draw("cookies", 0, 1)
    backlog, pause = draw("backlog", 6, 16), draw("ms", 10, 25) / 1000

    def before():
        faults.put(B, {"net.ipv4.tcp_syncookies": cookies})
        own.guarded(MIDDLE, "ip", "forward", "tcp flags & (syn | ack) == syn | ack "
                    f"numgen random mod 100 < {percent} counter name seen drop")
    return dict(topology=lambda: gateway(number, rtt), before=before, at=B,
                want=["syn-queue"], servers=lambda: [own.greeter(port, backlog)],
                clients=lambda: [visitors(port, pause, f"::ffff:{ADDRESS}")], warm=4.0,
                proof=(extended(B, "TCPReqQFullDrop", "TCPReqQFullDoCookies"), 10))


@case("local ports that are reserved")
def _(draw):
    port, delay, free = draw.port, draw("delay", 1, 10), draw("free ports", 15, 50)
    first, size = draw("first", 31000, 50000), draw("bytes", 50, 2000)
    length, failed = draw("ports", 250, 2500) * 2, own.shared()

    def before():
        faults.put(A, {
            "net.ipv4.ip_local_port_range": f"{first} {first + length - 1}",
            "net.ipv4.ip_local_reserved_ports": f"{first}-{first + length - free - 1}"})
    return dict(topology=lambda: switched(delay), before=before,
                want=["ports-used-up"], warm=4.0,
                servers=lambda: [receiver(port, own.answers_after(size, 0), IPV6)],
                clients=lambda: [own.calls(port, size, 0.02, IPV6, failed=failed)],
                proof=(lambda: own.number(failed), 20))


@case("datagrams fill the table of connections")
def _(draw):
    port, number, rtt = draw.port, draw("vlan", 2, 4000), draw("rtt", 2, 20)
    most, size = draw("most", 100, 300), draw("bytes", 50, 2000)
    count = draw("clients", 2, 4)
    return dict(topology=lambda: gateway(number, rtt), at=B, want=["conntrack-full"],
                host={"net.netfilter.nf_conntrack_max": most}, warm=7.0,
                before=lambda: own.guarded(B, "inet", "input", "ct state new "
                                           "counter name seen accept"),
                servers=lambda: [receiver(port, own.answers_after(size, 0))],
                clients=lambda: [stream(port, 4000, 0.1), own.lookups(
                    3 * most, 1.0, 0.01), *[own.calls(port, size, 0.05, ADDRESS)]
                    * count],
                proof=(untracked(B), 5))


# --- Healthy loads ----------------------------------------------------------------

@healthy("typing at a terminal")
def _(draw):
    port, number, rtt = draw.port, draw("vlan", 2, 4000), draw("rtt", 10, 80)
    reply, pause = draw("bytes", 1, 60), draw("ms", 60, 200) / 1000
    return dict(topology=lambda: gateway(number, rtt),
                servers=lambda: [receiver(port, answer(1, reply))],
                clients=lambda: [ask(port, 1, reply, pause)],
                proof=(extended(A, "TCPHPHits", "TCPHPAcks", "TCPPureAcks"), 8))


@healthy("answers when there is news")
def _(draw):
    port, count, size = draw.port, draw("connections", 8, 20), draw("bytes", 80, 400)
    reply, pause = draw("bytes answered", 100, 3000), draw("ms", 400, 1500) / 1000
    return dict(topology=switched, at=B,
                servers=lambda: [receiver(
                    port, own.answers_after(size, pause, reply), IPV6)],
                clients=lambda: [own.pollers(port, count, size, reply)])


@healthy("a proxy in front of a server")
def _(draw):
    port, number, rtt = draw.port, draw("vlan", 2, 4000), draw("rtt", 1, 20)
    size, reply = draw("bytes", 80, 900), draw("bytes answered", 200, 9000)
    pause, count = draw("ms", 30, 90) / 1000, draw("clients", 2, 3)
    return dict(topology=lambda: gateway(number, rtt), at=B,
                servers=lambda: [receiver(port, own.relays(port + 1)),
                                 receiver(port + 1, answer(size, reply), "127.0.0.1")],
                clients=lambda: [ask(port, size, reply, pause)] * count)


@healthy("a firewall that keeps strangers out")
def _(draw):
    port, size, reply = draw.port, draw("bytes", 80, 900), draw("answered", 100, 5000)
    pause, often = draw("ms", 20, 60) / 1000, draw("ms of strangers", 20, 90) / 1000
    return dict(topology=switched, at=B,
                before=lambda: own.guarded(B, "inet", "input",
                                           "tcp dport 23 counter name seen drop"),
                servers=lambda: [receiver(port, answer(size, reply))],
                clients=lambda: [ask(port, size, reply, pause),
                                 visitors(23, often, IPV6)],
                proof=(counted(B, "inet", "guard", "seen"), 10))


@healthy("clients that leave early")
def _(draw):
    port, number, rtt = draw.port, draw("vlan", 2, 4000), draw("rtt", 1, 30)
    size, reply = draw("bytes", 80, 400), draw("kB answered", 60, 200) * 1024
    enough, pause = draw("kB enough", 2, 30) * 1024, draw("ms", 60, 150) / 1000
    return dict(topology=lambda: gateway(number, rtt), at=B,
                servers=lambda: [receiver(port, answer(size, reply))],
                clients=lambda: [own.leaves(port, size, enough, pause)])


@healthy("small pictures over a VXLAN")
def _(draw):
    port, rtt, size = draw.port, draw("rtt", 20, 60), draw("bytes", 5000, 12000)
    pause, count = draw("ms", 300, 800) / 1000, draw("clients", 2, 4)
    return dict(topology=lambda: own.tunnelled("vxlan", rtt), at=B,
                servers=lambda: [receiver(port, answer(150, size))],
                clients=lambda: [ask(port, 150, size, pause)] * count)


@healthy("a stream through fq")
def _(draw):
    port, write = draw.port, draw("kB", 8, 48) * 1024
    pause, count = draw("ms", 20, 60) / 1000, draw("connections", 1, 3)
    return dict(topology=six, before=lambda: sh("tc -n $A qdisc add dev va root fq"),
                servers=lambda: [receiver(port, address=IPV6)],
                clients=lambda: [stream(port, write, pause, address=IPV6)] * count)


# Its queue is about as long as the path: no round trip takes four times as long.
@healthy("a full link below GRE")
def _(draw):
    port, rtt, mbit = draw.port, draw("rtt", 30, 60), draw("mbit/s", 3, 6)
    count, longest = draw("connections", 1, 2), max(rtt * mbit // 12, 12)

    def topology():
        own.tunnelled("gre", rtt, there=f"rate {mbit}mbit limit {longest}")
    return dict(topology=topology, servers=lambda: [receiver(port)], warm=4.0,
                clients=lambda: [stream(port)] * count)


if __name__ == "__main__":
    held.main(run)
