# SPDX-License-Identifier: GPL-2.0-only
"""Turns diagnoses into proposed settings, each with old and new value, reason,
calculation, source and risk.  Pure.

A proposal answers a diagnosis or a goal that the user named; without either,
nothing is proposed.  A proposal without a new value is advice: no setting of this
host can carry it out, only the peer, the application or the hardware.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from . import flow, plan_host, plan_path
from ..settings import qdisc as set_qdisc
from ..facts.collect import Facts
from .diagnosis import Diagnosis
from .plan_values import Proposal, buffer_for, triple, whole_host

IP_SYSCTL = "docs.kernel.org/networking/ip-sysctl"
S0 = "Feng et al., SC 2003"
RMEM_START, WMEM_START = 131072, 16384
#: Bytes of unsent data below which a sender often has nothing to send.
NOTSENT_LEAST = 16384


@dataclass(frozen=True)
class Wish:
    """What the user asks for: a rate to reach, and a kind of traffic."""

    rate: float = 0.0           # bit/s; 0: not given
    goal: str = ""              # throughput, latency, capture


def propose(facts: Facts, diagnoses: list[Diagnosis],
            wish: Wish) -> list[Proposal]:
    """Proposals in the order of the diagnoses; each setting once."""
    found: dict[str, Proposal] = {}
    for diagnosis in diagnoses:
        if not diagnosis.wrong or diagnosis.weight < 5:
            continue
        for proposal in _ANSWERS.get(diagnosis.limit, _nothing)(
                diagnosis, facts, wish):
            # The same advice for another connection says nothing new.
            found.setdefault(
                proposal.setting or proposal.reason.replace(diagnosis.subject, ""),
                proposal.shown_by(diagnosis.evidence))
    for proposal in plan_host.goal(facts, wish.goal):
        found.setdefault(proposal.setting or proposal.reason, proposal)
    return [p for p in found.values() if p.new == "" or p.new != p.old]


Answer = Callable[[Diagnosis, Facts, Wish], Iterator[Proposal]]


def _nothing(_d: Diagnosis, _facts: Facts, _wish: Wish) -> Iterator[Proposal]:
    return iter(())


def _without_wish(
        answer: Callable[[Diagnosis, Facts], Iterator[Proposal]]) -> Answer:
    """The same answer whatever the user wishes."""
    return lambda d, facts, _wish: answer(d, facts)


def _bdp(d: Diagnosis, wish: Wish) -> tuple[float, str]:
    """Bytes in flight that reach the wish, or four times the present window, and the
    calculation."""
    numbers = d.numbers
    rtt = numbers.get("min_rtt_us") or numbers.get("rcv_rtt_us") or 1
    if wish.rate:
        need = wish.rate / 8 * rtt / 1e6
        return need, f"{wish.rate:.3g} bit/s x {rtt / 1e3:.3g} ms = {need:.0f} B"
    now = int(numbers.get("window") or numbers.get("snd_wnd") or numbers.get("sndbuf")
              or 0)
    return 4.0 * now, f"4 x the present {now} B (no --rate was given)"


def _receive_window(d: Diagnosis, facts: Facts, wish: Wish) -> Iterator[Proposal]:
    need, how = _bdp(d, wish)
    size, note = buffer_for(need, facts)
    if "rcv_rtt_us" not in d.numbers:
        yield Proposal("", "", "", f"at the peer ({d.subject.split(' > ')[1]}): a "
                       f"receive buffer of {size} bytes (tcp_rmem, third value)",
                       how, f"{S0}, section 3.3.1; {IP_SYSCTL}", "none here")
        return
    low, middle, high = triple(facts, "net.ipv4.tcp_rmem")
    if size > high:
        # The second value, where a buffer starts: at least the kernel's default.
        yield Proposal("sysctl:net.ipv4.tcp_rmem", f"{low} {middle} {high}",
                       f"{low} {max(middle, RMEM_START)} {size}",
                       "the window is the limit, and autotuning stops at the third "
                       "value; about half of a buffer is window", how + note,
                       f"{S0}, section 3.3.1; {IP_SYSCTL}",
                       "memory: a connection may use that much; programs that already "
                       "listen keep the old second value until restarted")
    if facts["sysctl"].get("net.ipv4.tcp_moderate_rcvbuf") == "0":
        yield Proposal("sysctl:net.ipv4.tcp_moderate_rcvbuf", "0", "1",
                       "buffers cannot grow while autotuning is off", d.why,
                       IP_SYSCTL, "low")


def _fixed_buffer(d: Diagnosis, facts: Facts, wish: Wish) -> Iterator[Proposal]:
    need, how = _bdp(d, wish)
    yield Proposal("", "", "", f"in the program of {d.subject}: leave SO_RCVBUF "
                   "and TCP_WINDOW_CLAMP alone; setting SO_RCVBUF ends autotuning", how,
                   "socket(7), tcp(7); SDSC/GIAC tuning report 2008 (iperf -w)",
                   "none")
    now = int(facts["sysctl"].get("net.core.rmem_max", "0"))
    size, note = buffer_for(need, facts)
    # Any other buffer is what the program asked for, or TCP_WINDOW_CLAMP limits it.
    if d.numbers.get("rcvbuf") != 2 * now:
        return
    if 0 < now < size // 2 and not whole_host(facts):
        yield Proposal("", "", "", "raise net.core.rmem_max in the initial network "
                       "namespace of the host, if the program keeps SO_RCVBUF", how,
                       "docs.kernel.org/admin-guide/sysctl/net",
                       "memory, for programs that ask for it")
    elif 0 < now < size // 2:
        yield Proposal("sysctl:net.core.rmem_max", str(now), str(size // 2),
                       "SO_RCVBUF is silently clamped to rmem_max, then "
                       "doubled", how + note,
                       "docs.kernel.org/admin-guide/sysctl/net",
                       "memory, for programs that ask for it")


def _send_buffer(d: Diagnosis, facts: Facts, wish: Wish) -> Iterator[Proposal]:
    if "notsent_lowat" in d.numbers:
        low = d.numbers["notsent_lowat"]
        if low and int(low) < NOTSENT_LEAST:
            yield Proposal("sysctl:net.ipv4.tcp_notsent_lowat", low, str(2**32 - 1),
                           "little unsent data may wait, so the connection runs "
                           "empty before the program writes again", d.why, IP_SYSCTL,
                           "memory, and delay behind data that is queued already")
        else:
            yield Proposal("", "", "", f"in the program of {d.subject}: set "
                           "TCP_NOTSENT_LOWAT to a round trip's data, or write as soon "
                           "as poll() permits", d.why, "tcp(7)", "none")
        return
    need, how = _bdp(d, wish)
    size, note = buffer_for(need, facts)
    low, middle, high = triple(facts, "net.ipv4.tcp_wmem")
    # Autotuning would have raised a full buffer up to the third value.
    fixed = 0 < d.numbers.get("sndbuf", 0) < high / 2
    if size > high and not fixed:
        yield Proposal("sysctl:net.ipv4.tcp_wmem", f"{low} {middle} {high}",
                       f"{low} {max(middle, WMEM_START)} {size}",
                       "unacknowledged data stays in the send buffer, which was "
                       "full", how + note,
                       f"{S0}, section 4.1; {IP_SYSCTL}",
                       "memory: a connection may use that much")
    else:
        yield Proposal("", "", "", f"in the program of {d.subject}: leave SO_SNDBUF "
                       "alone; tcp_wmem would allow more", how, "tcp(7)", "none")


def _scaling(d: Diagnosis, facts: Facts, _wish: Wish) -> Iterator[Proposal]:
    if facts["sysctl"].get("net.ipv4.tcp_window_scaling") == "0":
        yield Proposal("sysctl:net.ipv4.tcp_window_scaling", "0", "1",
                       "no window above 65535 bytes without it", d.why,
                       f"RFC 7323; {IP_SYSCTL}", "low; new connections only")
    else:
        yield Proposal("", "", "", "at the peer, or a firewall between: window "
                       "scaling was not agreed on", d.why, "RFC 7323", "none here")
    yield from _mssfrac(d, facts, d.numbers.get("snd_mss", 0),
                        d.numbers.get("snd_wnd", 0))


def _mssfrac(d: Diagnosis, facts: Facts, mss: int,
             window: int) -> Iterator[Proposal]:
    """For a window of few segments: size segments so that they fill the window."""
    now = facts["sysctl"].get("net.mssfrac.tx_frac")
    if not mss or window // mss > 32:
        return
    if now is None:
        if d.limit == "mss-granularity":
            yield Proposal("", "", "", "load mssfrac.ko, then "
                           "net.mssfrac.tx_frac=64", d.why,
                           f"{S0}, section 3.5.1; mssfrac(4)", "see mssfrac(4)")
    elif now == "0":
        yield Proposal("sysctl:net.mssfrac.tx_frac", "0", "64",
                       "full-sized segments leave a part of the window unused", d.why,
                       f"{S0}, section 3.5.1; mssfrac(4)",
                       "more and smaller packets; reverted where it delivers less")


def _granularity(d: Diagnosis, facts: Facts, wish: Wish) -> Iterator[Proposal]:
    mss, window = d.numbers.get("snd_mss", 0), d.numbers.get("snd_wnd", 0)
    yield from _mssfrac(d, facts, mss, window)
    yield from _receive_window(d, facts, wish)


def _pacing(d: Diagnosis, facts: Facts, _wish: Wish) -> Iterator[Proposal]:
    for key, normal in flow.PACING.items():
        now = facts["sysctl"].get(key, str(normal))
        if "pacing_rate" in d.numbers and int(now) < normal:
            yield Proposal(f"sysctl:{key}", now, str(normal),
                           "the kernel paces below what the congestion window allows; "
                           "the new value is the kernel's own", d.why, IP_SYSCTL,
                           "larger bursts")
    if "max_pacing_rate" in d.numbers:
        yield Proposal("", "", "", "in the program: SO_MAX_PACING_RATE is the limit; "
                       "it "
                       "was set on purpose", d.why, "socket(7)",
                       "bursts, where pacing was needed")
        return
    for name, device in facts["devices"].items():
        for qdisc in device["qdiscs"]:
            options = qdisc.get("options") or {}
            if qdisc["kind"] == "fq" and \
                    options.get("maxrate") == d.numbers.get("maxrate"):
                free = {k: v for k, v in options.items() if k != "maxrate"}
                place = f":{qdisc['parent']}" if qdisc.get("parent") else ""
                yield Proposal(f"qdisc:{name}{place}",
                               set_qdisc.spelled("fq", options),
                               set_qdisc.spelled("fq", free),
                               "its maxrate is the limit; it was set on purpose: ask "
                               "first",
                               d.why, "tc-fq(8)", "bursts, where pacing was needed")


def _sack(d: Diagnosis, facts: Facts, _wish: Wish) -> Iterator[Proposal]:
    if facts["sysctl"].get("net.ipv4.tcp_sack") == "0":
        yield Proposal("sysctl:net.ipv4.tcp_sack", "0", "1",
                       "several losses of one window are repaired in one round trip",
                       d.why, f"RFC 2018, RFC 8985; {IP_SYSCTL}",
                       "low; new connections only")
    else:
        yield Proposal("", "", "", "at the peer: net.ipv4.tcp_sack=1", d.why,
                       "RFC 2018", "none here")


def _loss(d: Diagnosis, facts: Facts, _wish: Wish) -> Iterator[Proposal]:
    now = facts["sysctl"].get("net.ipv4.tcp_congestion_control", "")
    usable = facts.get("congestion_controls", "").split()
    # A policer must be ruled out: there bbr only loses more.
    single = d.numbers.get("single_losses")
    if now != "bbr" and "bbr" in usable and single:
        yield Proposal("sysctl:net.ipv4.tcp_congestion_control", now, "bbr",
                       "cubic and reno reduce their window after losses that are not "
                       "congestion; bbr's model ignores single losses", d.why,
                       "draft-ietf-ccwg-bbr; Linux tcp_bbr.c",
                       "takes more than a fair share beside cubic")
    yield Proposal("", "", "", "find where packets are lost: link counters "
                   "(ethtool -S, -m), cable, optics", d.why,
                   "CESNET report 10/2003, sections 3 and 4", "none")


def _mtu(d: Diagnosis, facts: Facts, _wish: Wish) -> Iterator[Proposal]:
    now = facts["sysctl"].get("net.ipv4.tcp_mtu_probing")
    if now == "0":
        yield Proposal("sysctl:net.ipv4.tcp_mtu_probing", "0", "1",
                       "packets of the device's MTU are lost without an ICMP error: "
                       "probe for a size that arrives", d.why,
                       f"RFC 4821; {IP_SYSCTL}", "low")
    yield Proposal("", "", "", "use the same MTU at both ends and at every hop "
                   "between them", d.why, "SDSC/GIAC tuning report 2008", "none")


def _advice(text: str, source: str) -> Answer:
    """Advice that only a person can follow."""
    def answer(d: Diagnosis, _facts: Facts, _wish: Wish) -> Iterator[Proposal]:
        yield Proposal("", "", "", f"{d.subject}: {text}", d.why, source, "none")
    return answer


#: What no setting of this host repairs.
_ADVICE = {limit: _advice(*words) for limit, words in {
    "reader-stopped": ("find out why the process does not read (its stack: "
                       "/proc/PID/stack, gdb)", "tcp(7)"),
    "peer-stopped": ("look at the reader on that machine; no setting here helps",
                     "tcp(7)"),
    "path-down": ("repair the path; ip route get and ip neigh show the next hop",
                  "ip-route(8), ip-neighbour(8)"),
    "no-answer": ("check the service and the firewalls on the way", "tcp(7)"),
    "peer-accept-queue": ("there the program must accept faster, or listen with a "
                          "longer backlog", "listen(2)"),
    "cork": ("in the program: clear TCP_CORK (or leave MSG_MORE out) with the last "
             "write of a message", "tcp(7)"),
    "nagle": ("in the program: write a message at once (writev), or set TCP_NODELAY",
              "RFC 896, RFC 1122 4.2.3.4; tcp(7)"),
    "small-writes": ("in the program: larger writes, or TCP_CORK around several",
                     "tcp(7)"),
    "bufferbloat": ("shorten the queue where it is: fq_codel or cake there, or a "
                    "shaper here below the rate of the path",
                    "RFC 7567, RFC 8290; tc-cake(8)"),
    "shaper": ("its limit was set on purpose: ask first", "tc(8)"),
    "policer": ("pace below the rate that gets through (SO_MAX_PACING_RATE, fq "
                "maxrate), or have the bucket enlarged", "RFC 2475; Flach et al., "
                "SIGCOMM 2016"),
    "reordering": ("find the parallel paths (bonding round-robin, ECMP per packet)",
                   "RFC 8985"),
    "ack-loss": ("look for losses on the way back: the peer's uplink", "RFC 3449"),
    "own-firewall": ("look at that rule (nft -a list ruleset)", "nft(8)"),
    "link-errors": ("look at cable, optics, bonding and the switch's port; a host that "
                    "damages packets itself shows it with ethtool -K rx off tx off",
                    "ethtool(8)"),
    "cpu-quota": ("raise cpu.max, or give the program less to do",
                  "docs.kernel.org/admin-guide/cgroup-v2"),
}.items()}


def _sysctl(key: str, new: Callable[[str, Diagnosis], str], reason: str,
            source: str, risk: str) -> Answer:
    """One sysctl, from its present value."""
    def answer(d: Diagnosis, facts: Facts, _wish: Wish) -> Iterator[Proposal]:
        old = facts["sysctl"].get(key, str(d.numbers.get("max", "")))
        if old and old != new(old, d):
            yield Proposal(f"sysctl:{key}", old, new(old, d), reason, d.why, source,
                           risk)
    return answer


def _accept(d: Diagnosis, facts: Facts, _wish: Wish) -> Iterator[Proposal]:
    most = facts["sysctl"].get("net.core.somaxconn", "0")
    if int(most) and d.numbers.get("backlog") == int(most):
        yield Proposal("sysctl:net.core.somaxconn", most, str(int(most) * 4),
                       "listen() is limited to it; restart the program, if it asks "
                       "for more", d.why, f"{IP_SYSCTL}; listen(2)",
                       "connections wait longer")
    yield Proposal("", "", "", f"{d.subject}: accept faster, or pass a longer backlog "
                   "to listen()", d.why, "listen(2)", "none")


def _route(key: str, new: str) -> Answer:
    """A metric of a route."""
    def answer(d: Diagnosis, facts: Facts, _wish: Wish) -> Iterator[Proposal]:
        for route in facts.get("routes") or []:
            if key in route and d.numbers.get("dst", route["dst"]) == route["dst"]:
                old = "lock " * (key in route.get("locked", ())) + str(route[key])
                yield Proposal(f"route:{route['dst']}:{key}", old, new,
                               "the route limits it; somebody chose that: ask first",
                               d.why, "ip-route(8)", "new connections only")
                if "lock" in old:
                    yield Proposal("", "", "", "ip tcp_metrics flush: a cached metric "
                                   "keeps the locked value for an hour", d.why,
                                   "ip-tcp_metrics(8)", "what it knows of other hosts")
    return answer


_MORE: dict[str, Answer] = {
    "accept-queue": _accept,
    "syn-queue": _sysctl("net.ipv4.tcp_max_syn_backlog",
                         lambda old, _: str(int(old) * 4),
                         "half-open connections did not fit", IP_SYSCTL,
                         "memory, in a SYN flood"),
    "conntrack-full": _sysctl("net.netfilter.nf_conntrack_max",
                              lambda old, _: str(int(old) * 4),
                              "new connections are dropped while the table is full",
                              "docs.kernel.org/networking/nf_conntrack-sysctl",
                              "memory: some 300 bytes for an entry"),
    "ports-used-up": _sysctl("net.ipv4.ip_local_port_range",
                             lambda _old, _: "1024 65535",
                             "no port is left for new connections to that end",
                             IP_SYSCTL, "services above 1024 need "
                             "ip_local_reserved_ports"),
    "idle-restart": _sysctl("net.ipv4.tcp_slow_start_after_idle",
                            lambda _old, _: "0",
                            "the congestion window is kept over a pause",
                            f"RFC 2861; {IP_SYSCTL}", "a burst after each pause"),
    "stale-metrics": _sysctl("net.ipv4.tcp_no_ssthresh_metrics_save",
                             lambda _old, _: "1",
                             "an old threshold ends slow start early; also once: ip "
                             "tcp_metrics flush", IP_SYSCTL, "low"),
    # Those that ask the peer for ECN or AccECN; 2 only answers it.
    "ecn-black-hole": _sysctl("net.ipv4.tcp_ecn",
                              lambda old, _: "2" if old in ("1", "3", "4") else "0",
                              "the path drops packets of connections that use ECN",
                              f"RFC 3168; {IP_SYSCTL}", "no marks instead of losses, "
                              "on any path; new connections only"),
    "adv-win-scale": _sysctl("net.ipv4.tcp_adv_win_scale", lambda _old, _: "1",
                             "half of a buffer is window again", IP_SYSCTL,
                             "memory, where packets are small"),
    "initcwnd": _route("initcwnd", "10"), "cwnd-clamp": _route("cwnd", "none"),
    "route-window": _route("window", "none"),
}

_ANSWERS: dict[str, Answer] = {
    "receive-window": _receive_window, "receive-buffer-fixed": _fixed_buffer,
    "send-buffer": _send_buffer, "window-scaling": _scaling,
    "mss-granularity": _granularity, "pacing": _pacing, "sack-off": _sack,
    "loss": _loss, "mtu": _mtu, **_ADVICE, **_MORE,
    **{limit: _without_wish(answer)
       for limit, answer in [*plan_host.ANSWERS.items(), *plan_path.ANSWERS.items()]},
}


def document(proposals: list[Proposal]) -> dict[str, Any]:
    return {"format": "msstune-plan", "version": 1,
            "settings": [asdict(p) for p in proposals if p.setting],
            "advice": [asdict(p) for p in proposals if not p.setting]}
