# SPDX-License-Identifier: GPL-2.0-only
"""verify and auto: a change is kept only if mssab's verdict favours it.  After a
kill, a disturbance or any other verdict, all settings are as before.

mssab is real; the traffic is simulated from the settings in a tree.
"""
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

import msstune_kill as kill  # noqa: E402
import msstune_root  # noqa: E402
from msstune_root import snapshot  # noqa: E402
from msstune_schema import wrong  # noqa: E402
from msstune_facts import facts  # noqa: E402
from msstune_traffic import FILES, Traffic  # noqa: E402
from msstune import cli, sockdiag  # noqa: E402
from msstune.commands import auto_page  # noqa: E402
from msstune.facts import collect, throughput  # noqa: E402
from msstune.settings import settings, sysctl as set_sysctl  # noqa: E402
from msstune.transaction import rollback_timer, switchback, verify  # noqa: E402
from msstune.transaction.transaction import Change  # noqa: E402
from msstune.errors import TuneError, UsageError  # noqa: E402
from msstune.transaction.switchback import Protocol  # noqa: E402
from msstune.transaction.verify import Verifier  # noqa: E402

TOOL = kill.TOP / "userspace/msstune/msstune.sh"
RMEM, ECN = "net.ipv4.tcp_rmem=4096 65536 1048576", "net.ipv4.tcp_ecn=1"


@pytest.fixture
def root(tmp_path):
    return msstune_root.make(tmp_path / "root", FILES)


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def fake(root, monkeypatch):
    monkeypatch.setattr(rollback_timer, "armed", kill.no_timer)
    # Blocks last milliseconds here: two stolen ticks would void a block.
    monkeypatch.setattr(switchback, "STOLEN", 0)
    found = Traffic(root)
    monkeypatch.setattr(throughput, "watch", found)
    return found


def verifier(state, root, **more):
    found = Verifier(kill.manager(state, root),
                     Protocol(pairs=8, settle=0, page=False, **more),
                     state.with_name("results"), lambda text: None)
    found.begin()
    return found


def changes(root, *texts):
    return [Change(*settings.parse(text, root)) for text in texts]


# --- Kept, or not -----------------------------------------------------------

def test_improved_is_kept(fake, root, state):
    fake.effects["tcp_rmem"] = {"bytes_per_s": 5}
    before = snapshot(root)
    session = verifier(state, root)
    one, = session.each(changes(root, RMEM))
    assert one.result["verdict"] == "improved" and one.number
    assert "1048576" in (root / "proc/sys/net/ipv4/tcp_rmem").read_text()
    states = [t.state for t in session.manager.transactions(True)]
    assert states == ["ended"] * 9 + ["confirmed"]
    # A/A first, then each pair with and without.
    assert not any(fake.blocks[:16])
    pairs = list(zip(fake.blocks[16::2], fake.blocks[17::2]))
    assert len(pairs) == 8 and all(a != b for a, b in pairs)
    assert len({bool(a) for a, _ in pairs}) == 2, "the order was not drawn"
    session.manager.rollback(one.number)
    assert snapshot(root) == before


@pytest.mark.parametrize("effects, verdict", [
    ({}, "equivalent"), ({"bytes_per_s": 1.01}, "equivalent"),
    ({"bytes_per_s": .5}, "regressed"),
    ({"bytes_per_s": 5, "retransmits": 50}, "improved"),
    ({"bytes_per_s": 5, "rtt_us": 3}, "improved")])
def test_not_improved_is_not_kept(fake, root, state, effects, verdict):
    """In the last two, the primary metric improved and a guardrail regressed."""
    fake.effects["tcp_rmem"] = effects
    before = snapshot(root)
    one, = verifier(state, root).each(changes(root, RMEM))
    assert one.result["verdict"] == verdict and not one.number
    assert snapshot(root) == before


def test_a_guardrail_in_noise_is_not_kept(fake, root, state):
    """No harm is shown, nor that there is none."""
    fake.effects["tcp_rmem"] = {"bytes_per_s": 5}
    fake.rtt_noise = 8.0
    before = snapshot(root)
    one, = verifier(state, root).each(changes(root, RMEM))
    assert not one.number and snapshot(root) == before
    # By chance the order that was drawn matches the noise: a carry-over, undecided.
    if one.result["carry_over"]["rtt"]["found"]:
        assert one.result["verdict"] == "inconclusive"
        return
    assert one.result["verdict"] == "improved"
    assert one.guardrails == {"rtt": "not shown", "retransmits": "safe"}
    assert "guardrail not shown to be safe: rtt" in "\n".join(verify.told(one))


def test_beside_another_experiment(fake, root, state):
    """Only one mssab may use its own namespaces; verify uses none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lock:
        try:
            lock.bind("\0mssab")
        except OSError:
            pass  # a real one runs
        assert verifier(state, root).each(changes(root, RMEM))


def test_the_user_sets_margins(fake, root, state):
    fake.effects["tcp_rmem"] = {"bytes_per_s": 5, "retransmits": 50}
    one, = verifier(state, root, margins=switchback.MARGINS | {
        "retransmits": 80}).each(changes(root, RMEM))
    assert one.number


def test_each_setting_is_one_experiment(fake, root, state):
    """On top of those kept, and with A/A once."""
    fake.effects |= {"tcp_rmem": {"bytes_per_s": 2}, "tcp_ecn": {}}
    ecn, rmem = verifier(state, root).each(changes(root, ECN, RMEM))
    assert not ecn.number and rmem.number
    assert len(fake.blocks) == 16 + 16 + 16
    assert "aa" not in rmem.result


def test_all_together_where_none_helps_alone(fake, root, state, monkeypatch):
    original = fake.__call__

    def both(over, before):
        numbers = original(over, before)
        if len(fake.blocks[-1]) == 2:
            numbers["bytes_per_s"] *= 3
        return numbers
    monkeypatch.setattr(throughput, "watch", both)
    outcomes = verifier(state, root).each(changes(root, ECN, RMEM))
    assert [bool(o.number) for o in outcomes] == [False, False, True]


def test_rtt_as_primary_metric(fake, root, state):
    fake.effects["tcp_rmem"] = {"rtt_us": .5}
    one, = verifier(state, root, primary="rtt").each(changes(root, RMEM))
    assert one.number


class Recording:
    """Replaces the recorder: the work of a packet follows from the settings."""

    def __init__(self, traffic, way="rx"):
        self.traffic, self.missing, self.started, self.way = traffic, "", 0, way

    def __call__(self, budget):
        self.budget = budget
        return self

    def start(self):
        self.started += 1

    def stop(self):
        work = 1000 if self.traffic.changed() else 2000
        path = self.traffic.root / "profile"
        path.write_text(json.dumps({
            "format": "pathprof-profile", "version": 4,
            "stages": [{"id": 1, "name": "netif", "kind": "work"},
                       {"id": 2, "name": "done", "kind": "wait",
                        "times": {"p99_ns": work * 5}},
                       {"id": 3, "name": "read", "kind": "end"}],
            "paths": [{"direction": self.way, "flags": ["data"], "end": "delivered",
                       "packets": 100, "segments": 100, "bytes": 100000,
                       "stages": [1, 2, 3],
                       "stage_ns": [100 * work, 300 * work, 0],
                       "stage_probe_ns": [0, 0, 0]}]}))
        return path

    def close(self):
        pass


@pytest.mark.parametrize("name", ["stack_cost", "rx_cost", "rx.at.netif",
                                  "rx.wait.done", "rx.p99.done"])
def test_less_work_or_waiting_decides(fake, root, state, monkeypatch, name):
    recording = Recording(fake)
    monkeypatch.setattr(switchback, "Recorder", recording)
    one, = verifier(state, root, primary=name).each(changes(root, RMEM))
    assert one.number and one.result["primary"] == [name]
    assert set(one.guardrails) == {"goodput", "retransmits", "rtt"}
    assert recording.started == len(fake.blocks) == 32


def test_a_cost_of_a_profile_is_a_guardrail(fake, root, state, monkeypatch):
    monkeypatch.setattr(switchback, "Recorder", Recording(fake, "tx"))
    fake.effects["tcp_rmem"] = {"bytes_per_s": 2, "rtt_us": .9}
    margins = switchback.MARGINS | {"tx.wait.done": 5.0}
    one, = verifier(state, root, margins=margins).each(changes(root, RMEM))
    assert one.number and one.guardrails["tx.wait.done"] == "safe"


def test_a_block_needs_the_profile_it_is_judged_by(fake, root, state, monkeypatch):
    recording = Recording(fake)
    recording.missing = "needs root"
    recording.stop = lambda: None
    monkeypatch.setattr(switchback, "Recorder", recording)
    with pytest.raises(TuneError, match="stack_cost needs a profile: needs root"):
        verifier(state, root, primary="stack_cost").each(changes(root, RMEM))


def test_a_refused_value_shows_before_measuring(fake, root, state, monkeypatch):
    original = set_sysctl.Sysctl.write

    def refusing(self, text):
        if text == "1":
            raise OSError(1, "Operation not permitted")
        original(self, text)
    monkeypatch.setattr(set_sysctl.Sysctl, "write", refusing)
    with pytest.raises(TuneError, match="not permitted"):
        verifier(state, root).each(changes(root, ECN))
    assert not fake.blocks


# --- Noise ------------------------------------------------------------------

def test_noise_raises_the_smallest_effect(fake, root, state):
    fake.noise = .05
    fake.effects["tcp_rmem"] = {"bytes_per_s": 5}
    session = verifier(state, root)
    one, = session.each(changes(root, RMEM))
    assert one.number and 3 < session.protocol.effect < 50


def test_too_much_noise_ends_the_session(fake, root, state):
    fake.noise = .6
    fake.effects["tcp_rmem"] = {"bytes_per_s": 5}
    outcomes = verifier(state, root).each(changes(root, RMEM, ECN))
    assert len(outcomes) == 1 and outcomes[0].aa_stopped
    assert not any(fake.blocks), "something was changed"


# --- Others at work, and kills ----------------------------------------------

@pytest.mark.parametrize("block", [3, 20])
def test_another_writer_ends_the_experiment(fake, root, state, block):
    """Another writer changes the setting, in A/A or later: its value stays."""
    path = root / "proc/sys/net/ipv4/tcp_rmem"

    def disturb(number):
        if number >= block:
            path.write_text("1 2 3\n")
    fake.disturb = disturb
    session = verifier(state, root)
    with pytest.raises(TuneError, match="another writer"):
        session.each(changes(root, RMEM))
    assert path.read_text() == "1 2 3\n"
    assert not session.manager.pending()


def test_rollback_ends_the_experiment(fake, root, state):
    before = snapshot(root)
    session = verifier(state, root)
    other = kill.manager(state, root)
    refused = []

    def disturb(_):
        if fake.blocks[-1]:
            with pytest.raises(TuneError, match="trial") as caught:
                other.confirm()
            refused.append(caught)
            other.rollback()
    fake.disturb = disturb
    with pytest.raises(TuneError, match="another writer"):
        session.each(changes(root, RMEM))
    assert snapshot(root) == before and len(refused) == 1


def wait_until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)  # polling interval


def children_of(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("arm", ["changed", "unchanged", "between"])
def test_killed_in_a_block(root, state, tmp_path, monkeypatch, arm, number):
    """The timer undoes at once and mssab ends, also before its first block."""
    before = snapshot(root)
    mark = tmp_path / "mark"
    found = Traffic(root)

    def hang(*_):
        mark.write_text(" ".join(children_of(os.getpid())))
        time.sleep(1000)

    def disturb(_):
        if bool(found.blocks[-1]) == (arm == "changed"):
            hang()
    found.disturb = disturb
    if arm == "between":
        monkeypatch.setattr(switchback.select, "select", hang)
    monkeypatch.setattr(throughput, "watch", found)
    child = os.fork()
    if child == 0:
        sys.argv = ["msstune", "--state", str(state), "--root", str(root),
                    "verify", "--yes", "--pairs", "8", "--settle", "1ms",
                    "--no-report", "-o", str(tmp_path / "results"), RMEM]
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os._exit(cli.main())
    wait_until(lambda: mark.exists() and mark.read_text())
    if arm == "between":
        time.sleep(1)  # mssab starts, and waits for an answer
    assert (snapshot(root) != before) == (arm == "changed")
    os.kill(child, number)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 130
    wait_until(lambda: snapshot(root) == before)
    wait_until(lambda: not any(rollback_timer.system.start_time(int(pid))
                               for pid in mark.read_text().split()))
    wait_until(lambda: all(t.ended for t in
                           kill.manager(state, root).transactions()))


def test_a_trial_is_undone_at_every_boundary(state, root):
    """Kill a trial at each boundary, like apply."""
    def trial():
        with kill.manager(state, root).trial(changes(root, RMEM, ECN), 1000):
            pass
    before = snapshot(root)
    for fatal in range(1, 100):
        was_killed = kill.killed(trial, fatal)
        kill.recovering(state, root)()
        assert snapshot(root) == before, fatal
        if not was_killed:
            break
    assert fatal > 20


def test_status_shows_a_trial(state, root):
    def told():
        return subprocess.run([TOOL, "--state", state, "--root", root, "status"],
                              capture_output=True, text=True, check=False).stdout
    manager = kill.manager(state, root)
    with manager.trial(changes(root, RMEM), 1000) as trial:
        assert "a trial of msstune verify" in told()
    assert not rollback_timer.alive(trial.timer)
    assert told() == "nothing is applied\n"


# --- The load of the user ---------------------------------------------------

def test_a_load_prints_a_number_or_is_timed():
    seen = switchback.run_load("echo it was $MSSAB_SEED", 42, set())
    assert seen["value"] == 42 and "time" not in seen
    timed = switchback.run_load("sleep 0.3", 1, set())
    assert .3 <= timed["time"] < 3 and "value" not in timed
    with pytest.raises(TuneError, match="false: status 1"):
        switchback.run_load("false", 1, set())


def test_a_load_decides(root, state, monkeypatch):
    monkeypatch.setattr(rollback_timer, "armed", kill.no_timer)
    monkeypatch.setattr(throughput, "STEP", .01)
    load = f"cut -f 3 {root}/proc/sys/net/ipv4/tcp_rmem | awk '{{ print $NF }}'"
    one, = verifier(state, root, primary="value", load=load).each(
        changes(root, RMEM))
    assert one.number
    more = Verifier(kill.manager(state, root), Protocol(
        "value", True, 8, settle=0, load=load, page=False),
        state.with_name("more"), lambda text: None)
    more.begin()
    one, = more.each(changes(root, "net.ipv4.tcp_rmem=4096 65536 2097152"))
    assert one.result["verdict"] == "regressed" and not one.number


# --- What is measured -------------------------------------------------------

def test_throughput_counts_all_connections(monkeypatch):
    """On loopback both ends count; connections begin and end during the block."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1].to_bytes(2, "big")
    looks = sockdiag.looks
    monkeypatch.setattr(sockdiag, "looks", lambda: {
        cookie: look for cookie, look in looks().items()
        if port in (look.head[4:6], look.head[6:8])})
    total = 3_000_000

    def reader():
        for _ in range(3):
            with listener.accept()[0] as peer:
                while peer.recv(1 << 16):
                    pass

    def writer():
        for _ in range(3):
            with socket.create_connection(listener.getsockname()) as sock:
                for _ in range(10):
                    sock.sendall(bytes(total // 30))
                    time.sleep(.03)  # so that looks fall in between
                time.sleep(3 * throughput.STEP)  # its last look
    threads = [threading.Thread(target=t) for t in (reader, writer)]
    old = set(sockdiag.looks())
    for thread in threads:
        thread.start()
    start = time.monotonic()
    seen = throughput.watch(lambda t: not threads[1].is_alive(), old)
    elapsed = time.monotonic() - start
    for thread in threads:
        thread.join()
    moved = seen["bytes_per_s"] * elapsed
    assert 2 * total * .95 <= moved <= 2 * total * 1.2
    assert seen["carried_percent"] < 5 and seen["rtt_us"] > 1


def test_a_dump_that_misses_a_connection(monkeypatch):
    """The connection is not new when it reappears."""
    listener = socket.create_server(("127.0.0.1", 0))
    with socket.create_connection(listener.getsockname()) as sock, \
            listener.accept()[0]:
        sock.sendall(bytes(50_000))
        time.sleep(.2)  # acknowledged
        port = sock.getsockname()[1].to_bytes(2, "big")
        whole = {cookie: look for cookie, look in sockdiag.looks().items()
                 if port in (look.head[4:6], look.head[6:8])}
        dumps = iter([whole, {}, whole, {}, whole])
        monkeypatch.setattr(sockdiag, "looks", lambda: next(dumps))
        monkeypatch.setattr(throughput, "STEP", .01)
        left = iter([False] * 4 + [True])
        seen = throughput.watch(lambda elapsed: next(left), set())
    assert whole and seen["bytes_per_s"] == 0


def test_a_short_connection_has_its_own_interval(monkeypatch):
    """Its rate is over its own time, not over the interval."""
    listener = socket.create_server(("127.0.0.1", 0))
    with socket.create_connection(listener.getsockname()) as sock, \
            listener.accept()[0] as peer:
        looks, times = [{}], [0.0]
        for moment in (1.0, 3.0):
            looks.append(sockdiag.looks())
            times.append(moment)
            sock.sendall(bytes(100_000))
            peer.recv(1 << 20)
        looks.append({})
        times.append(9.0)
        name = "%s:%d" % sock.getsockname()
        flow, = [f for f in collect.flows(looks, times) if f["local"] == name]
    assert flow["seconds"] == 2.0 and flow["d_bytes_acked"] == 100_000


def test_extra_dumps_are_for_short_connections():
    """The ranges of other connections come from every second dump only."""
    listener = socket.create_server(("127.0.0.1", 0))
    with socket.create_connection(listener.getsockname()) as sock, \
            listener.accept()[0] as peer:
        name = "%s:%d" % peer.getsockname(), "%s:%d" % sock.getsockname()
        looks = [sockdiag.looks()]
        sock.sendall(bytes(1000))
        looks.append(sockdiag.looks())
        sock.sendall(bytes(1000))
        peer.recv(2000, socket.MSG_WAITALL)
        looks.append(sockdiag.looks())
    looks += [{}, {}]

    def high(every):
        flow, = [f for f in collect.flows(looks, [0.0] * 5, every)
                 if (f["local"], f["remote"]) == name]
        return flow["high_rqueue"]
    assert high(1) == 1000 and high(2) == 0
    # Only the second look and the third have it: one of them does not suffice.
    looks[0] = {}
    assert high(2) == 1000


@pytest.mark.parametrize("share, count", [(1e9, 7), (0, 4)])
def test_no_extra_dumps_where_they_are_expensive(share, count, monkeypatch):
    """The allowed cost is above, or below, that of any machine."""
    looks, taken = sockdiag.looks, []

    def counted():
        taken.append(1)
        return looks()
    monkeypatch.setattr(sockdiag, "looks", counted)
    monkeypatch.setattr(throughput, "SHARE", share)
    monkeypatch.setattr(collect, "SHORT", 0.01)
    collect.collect(0.06)
    assert len(taken) == count


# --- auto -------------------------------------------------------------------

def autos(root, state, monkeypatch, watched, *more):
    """Run msstune auto with these facts, one for each round."""
    rounds = iter(watched)
    monkeypatch.setattr(collect, "collect", lambda interval, record: next(rounds))
    results = state.with_name("auto")
    monkeypatch.setattr(sys, "argv", [
        "msstune", "--state", str(state), "--root", str(root), "auto", "--pairs",
        "8", "--settle", "1ms", "--no-report", "-o", str(results), *more])
    status = cli.main()
    path = results / "auto.json"
    document = json.loads(path.read_text()) if path.exists() else None
    assert document is None or not wrong(document), wrong(document)[:5]
    return status, document


LIMITED = {"d_bytes_acked": 0, "d_bytes_received": 10**7, "rcv_ssthresh": 49152,
           "rcvbuf": 65536, "rcv_rtt": 9000, "rqueue": 0}


def limited():
    return facts(LIMITED, sysctl=facts()["sysctl"] | {
        "net.ipv4.tcp_rmem": "4096 65536 65536"})


def test_auto_removes_a_limit(fake, root, state, monkeypatch, capsys):
    fake.effects["tcp_rmem"] = {"bytes_per_s": 3}
    status, document = autos(root, state, monkeypatch, [limited(), facts()],
                             "--yes")
    assert status == 0 and len(document["rounds"]) == 2
    assert [s["setting"] for s in document["kept"][0]] == [
        "sysctl:net.ipv4.tcp_rmem"]
    assert document["end"] == "nothing is proposed"
    assert "kept: sysctl:net.ipv4.tcp_rmem" in capsys.readouterr().out
    page = auto_page.page(document)
    assert "kept, change" in page and "tcp_rmem" in page


def test_the_page_shows_paths_before_and_after_and_how_to_undo(
        fake, root, state, monkeypatch):
    """With one round, whose change is kept, auto looks at the paths once more."""
    fake.effects["tcp_rmem"] = {"bytes_per_s": 3}
    path = {"direction": "rx", "flags": ["data"], "facts": [], "end": "delivered",
            "packets": 9, "segments": 9, "bytes": 9000}
    before, after = (some | {"paths": [path | {"stages": [
        ["netif", "work", ns], ["done", "wait", 7 * ns], ["read", "end", 0]]}]}
        for some, ns in ((limited(), 45000), (facts(), 9000)))
    _, document = autos(root, state, monkeypatch, [before, after], "--yes",
                        "--rounds", "1")
    assert [turn["costs"][-1]["ns_per_kb"] for turn in document["rounds"]] == [
        5000, 1000]
    number = document["rounds"][0]["experiments"][0]["change"]
    page = auto_page.page(document)
    assert "5,000 to 1,000 in all" in page and "35,000 to 7,000 in all" in page
    assert page.count('class="bar before"') == page.count('class="bar after"') == 2
    assert f"msstune rollback {number}</code>" in page


def test_auto_ends_where_nothing_improves(fake, root, state, monkeypatch):
    before = snapshot(root)
    status, document = autos(root, state, monkeypatch, [limited()], "--yes")
    assert status == 0 and document["end"] == "no change is an improvement"
    assert snapshot(root) == before


def test_auto_changes_nothing_where_nothing_is_wrong(fake, root, state,
                                                     monkeypatch):
    before = snapshot(root)
    status, document = autos(root, state, monkeypatch, [facts()], "--yes")
    assert status == 0 and document["kept"] == []
    assert snapshot(root) == before and not fake.blocks and not state.exists()


def test_auto_changes_nothing_without_yes(fake, root, state, monkeypatch, capsys):
    before = snapshot(root)
    status, document = autos(root, state, monkeypatch, [limited()])
    assert status == 0 and document is None and not fake.blocks
    assert "would try sysctl:net.ipv4.tcp_rmem" in capsys.readouterr().out
    assert snapshot(root) == before and not state.exists()


def test_auto_reports_after_an_error(fake, root, state, monkeypatch):
    path = root / "proc/sys/net/ipv4/tcp_rmem"
    fake.disturb = lambda number: number > 4 and path.write_text("1 2 3\n")
    status, document = autos(root, state, monkeypatch, [limited()], "--yes")
    assert status == 1 and document["end"] == "an error ended it"


def test_the_load_of_auto_must_last(fake, root, state, monkeypatch, capsys):
    """The load must still run at the end of the diagnosis."""
    monkeypatch.setattr(collect, "collect", lambda interval, record: time.sleep(.5))
    for load, status, sentence in (("sleep .1", 1, "load ended before"),
                                   ("sleep 1", 1, "load ended before")):
        monkeypatch.setattr(sys, "argv", [
            "msstune", "--state", str(state), "--root", str(root), "auto",
            "--settle", "600ms" if load == "sleep 1" else "1ms", "--load", load])
        assert cli.main() == status
        assert sentence in capsys.readouterr().err
    monkeypatch.setattr(collect, "collect", lambda interval, record: facts())
    monkeypatch.setattr(sys, "argv", [
        "msstune", "--state", str(state), "--root", str(root), "auto",
        "--settle", "1ms", "--load", "sleep .5"])
    assert cli.main() == 0


def test_the_page_escapes():
    page = auto_page.page({"end": "<end>", "rounds": [], "advice": ["<a>"]})
    assert "<end>" not in page and "<a>" not in page and "&lt;a&gt;" in page


# --- The command ------------------------------------------------------------

def call(*arguments, **more):
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True,
                          text=True, check=False, **more)


def test_dry_run(root, state, tmp_path):
    before = snapshot(root)
    for words in (("verify",), ("apply", "--verify")):
        done = call("--state", state, "--root", root, *words, RMEM, "-o",
                    tmp_path / "none")
        assert done.returncode == 0 and "--yes does it" in done.stdout
    assert snapshot(root) == before
    assert not state.exists() and not (tmp_path / "none").exists()


@pytest.mark.parametrize("words, status, sentence", [
    (("--pairs", "7"), 2, "8..1000"), (("--block", "10"), 2, "unit"),
    (("--effect", "-1"), 2, "percentage"), (("--margin", "x=1"), 2, "NAME=X"),
    (("--lower",), 2, "--lower"), (("--load", "false"), 1, "status 1"),
    (("-o", "/dev"), 2, "holds results")])
def test_bad_input(root, state, tmp_path, words, status, sentence):
    done = call("--state", state, "--root", root, "verify", "--yes", RMEM, "-o",
                tmp_path / "none", *words)
    assert done.returncode == status and sentence in done.stderr, done.stderr
    assert not state.exists()


def test_mssab_is_missing(root, state, tmp_path):
    """Reported before anything is changed."""
    done = call("--state", state, "--root", root, "verify", "--yes", RMEM, "-o",
                tmp_path / "none", env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 3 and "no mssab on PATH" in done.stderr


def test_apply_verify_is_one_change(fake, root, state, tmp_path, monkeypatch):
    fake.effects["tcp_rmem"] = {"bytes_per_s": 3}
    monkeypatch.setattr(sys, "argv", [
        "msstune", "--state", str(state), "--root", str(root), "apply",
        "--verify", "--yes", "--pairs", "8", "--settle", "1ms", "--no-report",
        "-o", str(tmp_path / "results"), RMEM, ECN])
    assert cli.main() == 0
    found = kill.manager(state, root).transactions()
    assert [e.name for e in found[-1].entries] == [
        "sysctl:net.ipv4.tcp_rmem", "sysctl:net.ipv4.tcp_ecn"]
    assert found[-1].confirmed


def test_a_folder_with_results_is_refused(state, root):
    state.with_name("results").mkdir()
    (state.with_name("results") / "1").write_text("")
    with pytest.raises(UsageError, match="holds results"):
        verifier(state, root)
