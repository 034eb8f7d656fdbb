# SPDX-License-Identifier: GPL-2.0-only
"""What the loads with a server print, and what is made of it; what pathprof's
profile comes to per packet.  Outputs are as the programs printed them."""
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(TOP / "userspace/mssab"), str(TOP / "tests/unit/lib")]

from processes import has_ended  # noqa: E402
from mssab import children, errors  # noqa: E402
from mssab.experiment import experiment, metrics, module  # noqa: E402
from mssab.run import loads, observer, servers, trial  # noqa: E402
from mssab.testbed import ends, host, testbed  # noqa: E402
from mssab.experiment.cell import Cell  # noqa: E402

NUTTCP = """\
megabytes=140.3046 real_sec=0.25 rate_Mbps=4703.3436 retrans=3
megabytes=130.1193 real_sec=0.25 rate_Mbps=4334.7312 retrans=0

megabytes=914.8788 real_seconds=1.51 rate_Mbps=5095.9149 tx_cpu=36 rx_cpu=37 \
retrans=5 rtt_ms=0.08
"""
NUTTCP_UDP = """\
megabytes=4.6775 real_sec=0.20 rate_Mbps=196.1107 drop=43 pkt=3375 \
data_loss=1.27407
megabytes=4.6985 real_sec=0.20 rate_Mbps=197.0783 drop=88 pkt=3435 \
data_loss=2.56186

megabytes=11.7316 real_seconds=0.50 rate_Mbps=196.8130 tx_cpu=25 rx_cpu=3 \
drop=131 pkt=8488 data_loss=1.54337
"""


def mbit(megabytes, rate):
    """Bytes, and the seconds that follow from the rate."""
    return megabytes * 2**20, megabytes * 2**20 * 8 / rate / 1e6


def test_nuttcp_without_its_warm_up():
    out = servers.parse_nuttcp(Cell(load="nuttcp", warmup_ms=250), NUTTCP)
    (whole, seconds), (first, early) = (mbit(914.8788, 5095.9149),
                                        mbit(140.3046, 4703.3436))
    assert out["bytes_per_s"] == pytest.approx(
        (whole - first) / (seconds - early))
    assert out["received"] == round(whole)
    assert out["bytes"] == round(whole - first)
    assert out["retransmits"] == 5  # of all, as the segments sent are
    out = servers.parse_nuttcp(Cell(load="nuttcp", warmup_ms=0), NUTTCP)
    assert out["bytes_per_s"] == pytest.approx(5095.9149e6 / 8)


def test_nuttcp_udp():
    out = servers.parse_nuttcp(Cell(load="nuttcp-udp", warmup_ms=200),
                               NUTTCP_UDP)
    assert out["sent_datagrams"] == 8488 - 3375
    assert out["lost_datagrams"] == 131 - 43
    assert "retransmits" not in out
    assert metrics.value("lost", out) == pytest.approx(1000 * 88 / 5113)


@pytest.mark.parametrize("text", [
    "", "nuttcp-t: v6.1.2: Error: connect\n",
    NUTTCP.splitlines()[0] + "\n",          # the warm-up, and then nothing
    "megabytes=0.0000 real_seconds=0.00 rate_Mbps=0.0000\n" * 2,
])
def test_nuttcp_without_a_report(text):
    with pytest.raises(errors.MssabError, match="nuttcp: no"):
        servers.parse_nuttcp(Cell(load="nuttcp", warmup_ms=250), text)


def test_nothing_arrived_is_a_measurement():
    line = "megabytes=0.0000 real_seconds=0.50 rate_Mbps=0.0000 drop=9 pkt=9\n"
    out = servers.parse_nuttcp(Cell(load="nuttcp-udp", warmup_ms=0), line)
    assert out["bytes_per_s"] == 0 and out["lost_datagrams"] == 9


def test_netpipe():
    out = servers.parse_netpipe("    1000 666.198830   0.00001145\n")
    assert out["message_ns"] == pytest.approx(11450, rel=1e-3)
    assert out["bytes_per_s"] == pytest.approx(1000 / 11.45e-6, rel=1e-3)
    for text in ("", "1000 fast 0.1\n", "1000\n"):
        with pytest.raises(errors.MssabError, match="NPtcp: no measurement"):
            servers.parse_netpipe(text)


def client(**more):
    """iperf3's report of a second after one that is left out: its sums count
    what was lost in both."""
    return {"intervals": [{"sum": {"bytes": 900}}, {"sum": {"bytes": 1100}}],
            "end": {"sum_sent": {"packets": 110},
                    "sum_received": {"bytes": 1000, "bits_per_second": 8000,
                                     "jitter_ms": 0.01, "packets": 110,
                                     "lost_packets": 150}}} | more


def test_iperf3():
    out = servers.parse_iperf3(Cell(), client(), client())
    assert out == {"bytes": 1000, "bytes_per_s": 1000, "received": 2000}


def test_iperf3_udp_loses_in_the_measured_time_only():
    receiver = {"end": {}, "intervals": [
        {"sum": {"bytes": 900, "packets": 95, "lost_packets": 5,
                 "omitted": True}},
        {"sum": {"bytes": 1000, "packets": 108, "lost_packets": 8,
                 "omitted": False}}]}
    cell = Cell(load="iperf3-udp", write=10)
    out = servers.parse_iperf3(cell, client(), receiver)
    assert (out["sent_datagrams"], out["lost_datagrams"]) == (108, 8)
    assert out["received"] == 1900 and out["jitter_ns"] == 10000
    # With a server elsewhere: what was sent, less what arrived.
    out = servers.parse_iperf3(cell, client(), None)
    assert (out["sent_datagrams"], out["lost_datagrams"]) == (110, 10)


@pytest.mark.parametrize("one, other", [
    ({}, client()), (client(), {}), ({"error": "unable to connect"}, None),
    (client(error="the server has terminated"), client())])
def test_iperf3_without_a_report(one, other):
    with pytest.raises(errors.MssabError, match="^iperf3: "):
        servers.parse_iperf3(Cell(), one, other)


def test_a_datagram_fills_a_packet():
    assert Cell(load="iperf3-udp", mtu=1500).datagram == 1472
    assert Cell(load="iperf3-udp", mtu=0).datagram == 1472
    assert Cell(load="iperf3-udp", mtu=9000, write=100).datagram == 100


# --- pathprof ---------------------------------------------------------------

def path(direction, packets, size, work, end="delivered"):
    return {"direction": direction, "packets": packets, "bytes": size,
            "work_ns": work, "end": end}


PROFILE = {"paths": [
    path("rx", 10, 10000, 30000),
    path("rx", 20, 0, 4000, "consumed"),            # acknowledgements
    path("rx", 5, 5000, 1000, "merged"),            # into others, by GRO
    path("rx", 2, 2000, 500, "dropped"),
    path("tx", 4, 10000, 8000, "sent"),
    path("tx", 30, 0, 6000, "sent"),
]}


def test_cost_per_packet():
    out = observer.costs(PROFILE)
    assert out["rx_ns_per_packet"] == 31500 / 12
    assert out["tx_ns_per_packet"] == 8000 / 4
    assert out["ns_per_byte"] == 49500 / 10000
    raw = {"profile": out}
    assert metrics.value("rx_cost", raw) == 31500 / 12
    assert metrics.value("tx_cost", raw) == 2000
    assert metrics.value("stack_cost", raw) == 4.95


def test_no_packet_followed_is_no_measurement():
    out = observer.costs({"paths": [path("tx", 30, 0, 6000, "sent")]})
    assert not out
    with pytest.raises(KeyError):
        metrics.value("rx_cost", {"profile": out})


PATHPROF = """#!/bin/bash
# Plays pathprof: $1 record or report.
case $1 in
report) printf '%s' '{"account": {"sampled": 9, "no_slot": 1, "map_full": 2,
    "abandoned": 0, "sock_clash": 0}, "paths": []}'; exit ;;
esac
while [ "$1" != --ready-fd ]; do shift; done
{}
trap 'exit {}' INT
eval "echo >&$2"
while :; do sleep 0.05; done
"""


def pretend(tmp_path, monkeypatch, before="", status=0):
    tool = tmp_path / "pathprof"
    tool.write_text(PATHPROF.replace("{}", before, 1)
                    .replace("{}", str(status), 1))
    tool.chmod(0o755)
    monkeypatch.setenv("PATHPROF", str(tool))


def test_recording(tmp_path, monkeypatch):
    pretend(tmp_path, monkeypatch)
    with observer.recording(1, "10.9.0.2", False) as found:
        assert not found
    assert found["lost_events"] == 3 and found["profile"] == {"sampled": 9}


def test_the_recorder_ends_if_a_script_put_mssab_into_the_background(
        tmp_path, monkeypatch):
    """The shell ignores SIGINT in such a process, and its children inherit that."""
    pretend(tmp_path, monkeypatch)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with observer.recording(1, "10.9.0.2", False) as found:
            pass
    finally:
        signal.signal(signal.SIGINT, before)
    assert found["profile"] == {"sampled": 9}


@pytest.mark.parametrize("before, status, kind, sentence", [
    ("echo needs root >&2; exit 3", 0, errors.NotSupported, "needs root"),
    ("exit 1", 0, errors.MssabError, "record: status 1"),
    ("", 1, errors.MssabError, "pathprof record"),
])
def test_recording_fails(tmp_path, monkeypatch, before, status, kind, sentence):
    pretend(tmp_path, monkeypatch, before, status)
    with pytest.raises(kind, match=sentence):
        with observer.recording(1, "10.9.0.2", False):
            pass


def test_the_recorder_ends_with_a_killed_mssab(tmp_path, monkeypatch):
    pretend(tmp_path, monkeypatch, f"echo $$ >{tmp_path}/pid")
    child = os.fork()
    if not child:
        with observer.recording(1, "10.9.0.2", False):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    pid = (tmp_path / "pid").read_text().strip()
    for _ in range(200):
        if has_ended(pid):
            return
        time.sleep(0.05)  # polling interval
    pytest.fail(f"pathprof {pid} is still there")


def test_the_recorder_ends_with_a_block_that_fails(tmp_path, monkeypatch):
    pretend(tmp_path, monkeypatch, f"echo $$ >{tmp_path}/pid")
    with pytest.raises(ZeroDivisionError):
        with observer.recording(1, "10.9.0.2", False):
            1 / 0
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


#: Starts a program, gets SIGTERM during the fork whose number is in argv, and
#: prints if that ended it.
FORKING = """
import os, signal, sys
from mssab import children
kind, wanted = sys.argv[1], int(sys.argv[2])
process, forks = os.getpid(), 0

def during():
    global forks
    forks += os.getpid() == process
    if os.getpid() == process and forks == wanted:
        os.kill(process, signal.SIGTERM)
    for _ in range(1000):
        pass

def stop(*_):
    raise KeyboardInterrupt

os.register_at_fork(after_in_parent=during)
signal.signal(signal.SIGTERM, stop)
try:
    if kind == "load":
        children.load(["true"])
    else:
        children.start(["true"], signal.SIGINT)
except KeyboardInterrupt:
    print("ended", forks, signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""


@pytest.mark.parametrize("kind, fork", [("start", 1), ("load", 1), ("load", 2)])
def test_a_signal_while_mssab_forks_ends_it(kind, fork):
    """The first fork of load() is that of the watcher."""
    ran = subprocess.run([sys.executable, "-c", FORKING, kind, str(fork)],
                         capture_output=True, text=True, timeout=60,
                         env=os.environ | {"PYTHONPATH": ":".join(sys.path)})
    assert ran.stdout.startswith("ended") and ran.stdout.endswith("set()\n"), ran
    assert "ignored" not in ran.stderr


@pytest.mark.parametrize("begin", [
    lambda argv, out: children.load(argv, stdout=out, text=True),
    lambda argv, out: children.start(argv, signal.SIGINT, stdout=out)])
def test_children_get_all_signals(begin):
    with begin(["grep", "^SigBlk", "/proc/self/status"],
               subprocess.PIPE) as process:
        assert int(process.communicate()[0].split()[1], 16) == 0


def test_interrupts_are_counted_while_the_load_runs(monkeypatch):
    """Interrupts while a device comes up do not count for packets."""
    seen = {"interrupts": 0, "softirqs": 0}

    def happens(count, result):
        def call(*_, **__):
            for key in seen:
                seen[key] += count
            return result
        return call
    for key in seen:
        monkeypatch.setattr(host, key, lambda key=key: seen[key])
    monkeypatch.setattr(trial, "_counts", lambda some: {end: dict.fromkeys(
        ("Tcp.InSegs", "Tcp.OutSegs", "Tcp.RetransSegs", "Udp.InDatagrams",
         "Udp.OutDatagrams"), seen["interrupts"]) for end in some.namespaces})
    monkeypatch.setattr(module, "loaded", lambda: False)
    monkeypatch.setattr(trial.loads, "run", happens(10, {"bytes": 1}))
    bed = testbed.Testbed()
    monkeypatch.setattr(bed, "prepare", happens(
        1000, ends.Ends(ends.SENDER, ends.RECEIVER, "10.9.0.2")))
    monkeypatch.setattr(bed, "tear_down", happens(1000, None))
    raw = trial.block(bed, experiment.Arm("a", {}, Cell(), {}, {}, {}, {}, {}), [], 1)
    assert (raw["interrupts"], raw["softirqs"], raw["packets"]) == (10, 10, 100)


@pytest.mark.parametrize("apart", [0, 1, 2])
def test_transfers_that_began_apart_are_repeated(monkeypatch, apart):
    calls = []

    def several(_cell, pairs, more, gate):
        calls.append(more)
        assert gate and more[:2] == ["--align-ms", "100"]
        return [{"bytes_per_s": 1.0, "begun_ns": 7 + (len(calls) <= apart and n == 2)}
                for n in range(len(pairs))]

    monkeypatch.setattr(loads, "several", several)
    cell = Cell(load="tcpload", streams=8)
    raw = loads.run(cell, ends.of(cell), aligned=True)
    assert raw["bytes_per_s"] == 8 and len(calls) == apart + 1


def test_transfers_that_never_begin_together(monkeypatch):
    monkeypatch.setattr(loads, "several",
                        lambda *_, **__: [{"begun_ns": 1}, {"begun_ns": 2}])
    cell = Cell(load="tcpload", streams=2)
    with pytest.raises(errors.LoadFailed, match="2 transfers did not begin together"):
        loads.run(cell, ends.of(cell), aligned=True)


def pipes():
    """Those that this process has open, with that to the watcher of its programs,
    which the first one opens."""
    children.load(["true"]).wait()
    return {link for file in os.listdir("/proc/self/fd")
            if (link := link_of(f"/proc/self/fd/{file}")).startswith("pipe:")}


def link_of(file):
    try:
        return os.readlink(file)
    except OSError:
        return ""   # that of the listing itself


@pytest.mark.parametrize("fails", [False, True])
def test_several_transfers_wait_for_the_slowest(monkeypatch, tmp_path, fails):
    """Programs that take long to start connect when the last one is ready; one that
    fails keeps nobody waiting."""
    program = tmp_path / "load"
    program.write_text("""#!/usr/bin/python3
import json, os, sys, time
port = int(sys.argv[1])
at = dict(zip(sys.argv[2::2], map(int, sys.argv[3::2])))
time.sleep(0.3 * (port - 5201))
if port == 5202 and FAILS:
    sys.exit("no")
ready = time.monotonic()
os.write(at["--ready-fd"], b"x")
os.read(at["--go-fd"], 1)
print(json.dumps({"ready": ready, "went": time.monotonic()}))
""".replace("FAILS", str(fails)))
    program.chmod(0o755)
    monkeypatch.setattr(loads, "_command",
                        lambda _cell, _ends, port: [str(program), str(port)])
    monkeypatch.setattr(loads, "_sender_ports", lambda _: {})
    cell = Cell(load="tcpload", streams=3, warmup_ms=0, measure_ms=1)
    before = pipes()
    said = loads.several(cell, [ends.of(cell)] * 3, gate=True)
    assert pipes() == before
    assert ("failed" in said[1]) == fails
    worked = [one for one in said if "failed" not in one]
    assert min(one["went"] for one in worked) >= max(one["ready"] for one in worked)


def test_a_signal_while_transfers_get_ready_leaves_none(monkeypatch):
    """Neither a program, nor a pipe."""
    started, load, before = [], children.load, pipes()

    def kept(argv, **more):
        started.append(load(argv, **more))
        return started[-1]

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(children, "load", kept)
    monkeypatch.setattr(loads, "_command",
                        lambda *_: ["sh", "-c", "exec sleep 60", "sh"])
    monkeypatch.setattr(loads.select, "select", interrupted)
    cell = Cell()
    with pytest.raises(KeyboardInterrupt):
        loads.several(cell, [ends.of(cell)] * 2, gate=True)
    assert [process.poll() is None for process in started] == [False, False]
    assert pipes() == before


def test_a_guest_whose_clock_leaps_waits_longer(monkeypatch):
    cell = Cell(load="iperf3", warmup_ms=1000, measure_ms=3000)
    monkeypatch.delenv("MSSFRAC_GUEST", raising=False)
    usual = servers.limit_s(cell)
    assert usual == 160
    monkeypatch.setenv("MSSFRAC_GUEST", "fast")
    assert servers.limit_s(cell) == usual
    monkeypatch.setenv("MSSFRAC_GUEST", "deterministic")
    assert servers.limit_s(cell) == usual + children.HOST_S
