# SPDX-License-Identifier: GPL-2.0-only
"""verify in stages: a canary share of connections first, and a session that is
interrupted and resumed."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

import msstune_kill as kill  # noqa: E402
import msstune_root  # noqa: E402
from msstune_root import snapshot  # noqa: E402
from msstune_traffic import FILES, Traffic  # noqa: E402
from msstune.facts import throughput  # noqa: E402
from msstune.settings import settings  # noqa: E402
from msstune.transaction import rollback_timer, switchback  # noqa: E402
from msstune.errors import TuneError, UsageError  # noqa: E402
from msstune.transaction.switchback import Protocol  # noqa: E402
from msstune.transaction.transaction import Change  # noqa: E402
from msstune.transaction.verify import Verifier  # noqa: E402

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


def changes(root, *texts):
    return [Change(*settings.parse(text, root)) for text in texts]


def session(state, root, resume=False):
    return Verifier(kill.manager(state, root), Protocol(pairs=8, settle=0, page=False),
                    state.with_name("results"), lambda text: None, resume=resume)


FRAC, MORE = "net.mssfrac.tx_frac=64", "net.mssfrac.ab_percent"


@pytest.fixture
def module(fake, root):
    """The sysctls of mssfrac.ko."""
    for name, value in (("tx_frac", "0"), ("ab_percent", "100")):
        path = root / f"proc/sys/net/mssfrac/{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value + "\n")
    return fake


def staged(state, root, text, **more):
    found = Verifier(kill.manager(state, root),
                     Protocol(pairs=8, settle=0, page=False),
                     state.with_name("results"), more.pop("tell", lambda text: None),
                     **more)
    found.begin(changes(root, text))
    return found


@pytest.mark.parametrize("factor, stages", [(3, 2), (.5, 1), (1, 2)])
def test_a_canary_comes_first(module, root, state, monkeypatch, factor, stages):
    """On a share of connections; harm there ends it."""
    fake = module
    shares = []

    def watch(over, before):
        numbers = fake(over, before)
        frac, share = ((root / "proc/sys/net/mssfrac" / name).read_text().strip()
                       for name in ("tx_frac", "ab_percent"))
        if frac != "0":
            shares.append(int(share))
            numbers["bytes_per_s"] *= factor
        return numbers
    monkeypatch.setattr(throughput, "watch", watch)
    one, = staged(state, root, FRAC, canary=10).each(changes(root, FRAC))
    assert bool(one.number) == (factor > 1)
    assert list(dict.fromkeys(shares)) == [10, 100][:stages]
    assert (root / "proc/sys/net/mssfrac/ab_percent").read_text() == "100\n"


def test_a_canary_needs_arms(fake, root, state):
    for text in (RMEM, f"{MORE}=50"):
        if text.startswith(MORE):
            msstune_root.make(root, {"net/mssfrac/ab_percent": "100\n"})
        with pytest.raises(UsageError, match="have arms"):
            staged(state, root, text, canary=10)


@pytest.mark.parametrize("block", [3, 20, 33, 40, 48])
def test_resume(fake, root, state, block):
    """Interrupted in A/A, in an experiment, and in the next one: each block is
    measured once."""
    fake.effects |= {"tcp_ecn": {}, "tcp_rmem": {"bytes_per_s": 2}}

    def disturb(number):
        if number == block:
            raise KeyboardInterrupt
    fake.disturb = disturb
    wanted = [RMEM, ECN]
    before = snapshot(root)
    found = session(state, root)
    found.begin(changes(root, *wanted))
    with pytest.raises(KeyboardInterrupt):
        found.each(changes(root, *wanted))
    kept = [t for t in found.manager.transactions() if t.state == "confirmed"]
    assert kept or snapshot(root) == before
    again = session(state, root, resume=True)
    again.begin(changes(root, *wanted))
    rmem, ecn = again.each(changes(root, *wanted))
    assert rmem.number and not ecn.number
    # 16 of A/A and 16 of each experiment; the pair that was cut is measured again.
    assert 48 <= len(fake.blocks) <= 50
    assert len([t for t in again.manager.transactions() if t.state == "confirmed"]
               ) == 1


def test_resume_needs_the_same_session(fake, root, state):
    first = session(state, root)
    first.begin()
    for changed in ({"pairs": 9}, {"effect": 7.0}):
        with pytest.raises(UsageError, match="other settings or options"):
            again = Verifier(first.manager, Protocol(**{
                "pairs": 8, "settle": 0, "page": False} | changed),
                first.directory, lambda text: None, resume=True)
            again.begin()
    with pytest.raises(UsageError, match="no session"):
        Verifier(first.manager, Protocol(), state.with_name("none"),
                 lambda text: None, resume=True).begin()


def test_resume_after_another_writer(fake, root, state):
    fake.effects["tcp_rmem"] = {"bytes_per_s": 2}
    first = session(state, root)
    first.begin()
    first.manager.rollback(first.each(changes(root, RMEM))[0].number)
    again = session(state, root, resume=True)
    again.begin()
    with pytest.raises(TuneError, match="no longer in force"):
        again.each(changes(root, RMEM))
