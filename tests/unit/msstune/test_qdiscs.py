# SPDX-License-Identifier: GPL-2.0-only
"""Queue disciplines whose JSON cannot be read: tc prints the options of hfsc as text
in the middle of it (iproute2 6.1)."""
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "userspace/msstune"))

from msstune import qdiscs, system  # noqa: E402
from msstune.settings import qdisc  # noqa: E402
from msstune.errors import NotSupported  # noqa: E402

TEXT = """\
qdisc noqueue 0: dev lo root refcnt 2
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc hfsc 1: dev va root refcnt 2 default 0x1
 Sent 46466 bytes 213 pkt (dropped 7, overlimits 431 requeues 2)
 backlog 9084b 6p requeues 2
qdisc pfifo 10: dev va parent 1:1 limit 1000p
 Sent 46466 bytes 213 pkt (dropped 7, overlimits 0 requeues 0)
 backlog 12Kb 6p requeues 0
qdisc clsact ffff: dev vb parent ffff:fff1
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
"""
BROKEN = '[{"kind":"hfsc","handle":"1:","options":{default 0x1 }}]'


@pytest.fixture
def tc(monkeypatch):
    """What tc prints: the JSON, and the text."""
    output = {"json": BROKEN, "text": TEXT}
    monkeypatch.setattr(system, "run", lambda *argv: output[
        "json" if "-j" in argv else "text"])
    return output


def test_text_is_read_where_the_json_is_broken(tc):
    lo, hfsc, leaf, clsact = qdiscs.show()
    assert hfsc == {
        "kind": "hfsc", "handle": "1:", "dev": "va", "root": True, "options": None,
        "bytes": 46466, "packets": 213, "drops": 7, "overlimits": 431,
        "requeues": 2, "backlog": 9084, "qlen": 6}
    assert leaf["parent"] == "1:1" and "root" not in leaf
    assert leaf["backlog"] == 12 << 10
    assert lo["handle"] == "0:" and lo["packets"] == 0
    assert clsact["parent"] == "ffff:fff1"


def test_json_comes_first(tc):
    tc["json"] = json.dumps([{"kind": "fq", "handle": "8001:", "dev": "va"}])
    assert qdiscs.show() == [{"kind": "fq", "handle": "8001:", "dev": "va"}]


def test_nothing_is_no_discipline(tc):
    tc["json"] = ""
    assert qdiscs.show("dev", "va") == []


def test_of_one_device_the_text_does_not_name_it(tc):
    tc["text"] = TEXT.replace(" dev va", "").replace(" dev lo", "")
    assert [one.get("dev") for one in qdiscs.show("dev", "va")] == [
        None, None, None, "vb"]


def test_what_cannot_be_restored_is_not_replaced(tc):
    tc["text"] = "qdisc pfifo 10: parent 1:1 limit 5p\n"
    with pytest.raises(NotSupported, match="options .* not known"):
        qdisc.Qdisc("va:1:1", Path("/")).read()
