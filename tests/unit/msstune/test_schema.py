# SPDX-License-Identifier: GPL-2.0-only
"""Every command of msstune prints JSON that fits schema.json."""
import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/msstune"))

import msstune_root  # noqa: E402
from msstune_facts import facts  # noqa: E402
from msstune_schema import SCHEMA, wrong  # noqa: E402
from msstune import cli  # noqa: E402

TOOL = TOP / "userspace/msstune/msstune.sh"
RMEM = "net.ipv4.tcp_rmem=4096 65536 1048576"


@pytest.fixture
def root(tmp_path):
    return msstune_root.make(tmp_path / "root", {
        "net/ipv4/tcp_rmem": "4096\t65536\t65536\n"})


def call(root, *words, status=0):
    done = subprocess.run(
        [TOOL, "--state", root.parent / "state", "--root", root, *words],
        capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done


def fitting(root, *words, status=0):
    """The object that the command prints, which fits the schema."""
    document = json.loads(call(root, *words, status=status).stdout)
    assert not wrong(document), wrong(document)[:5]
    return document


def test_settings_are_applied_kept_exported_and_undone(root):
    assert fitting(root, "apply", "--json", RMEM)["changes"] == []
    done = fitting(root, "apply", "--json", "--yes", RMEM)["changes"][0]
    assert done["number"] == 1 and done["state"] == "waiting"
    assert fitting(root, "confirm", "--json")["changes"][0]["state"] == "confirmed"
    assert fitting(root, "apply", "--json", "--yes", RMEM)["changes"] == []
    assert fitting(root, "status", "--json")["changes"][0]["settings"]
    assert "tcp_rmem" in fitting(root, "export", "--json")["text"]
    assert fitting(root, "verify", "--json", RMEM)["changes"] == []
    undone = fitting(root, "rollback", "--json", "--all")["changes"][0]
    assert undone["settings"][0]["undone"] == "restored"
    assert fitting(root, "rollback", "--json")["changes"] == []
    assert fitting(root, "status", "--json", "--all")["changes"][0]["state"] == "ended"


def test_facts_diagnosis_and_plan(root, tmp_path):
    kept = tmp_path / "facts.json"
    call(root, "diagnose", "--no-profile", "--interval", "100ms", "--save", kept)
    assert not wrong(json.loads(kept.read_text()))
    profile = TOP / "tests/unit/test_profile/sample.json"
    call(root, "diagnose", "--interval", "100ms", "--profile", profile, "--save", kept)
    document = json.loads(kept.read_text())
    assert document["paths"] and not wrong(document), wrong(document)[:5]
    document |= facts({"d_total_retrans": 400}) | {"paths": document["paths"]}
    kept.write_text(json.dumps(document))
    assert fitting(root, "diagnose", "--json", "--facts", kept)["diagnoses"]
    assert fitting(root, "plan", "--json", "--facts", kept)["advice"]


def test_lint_and_recovery(root, tmp_path):
    (tmp_path / "a.conf").write_text("net.ipv4.tcp_sack = 0\n")
    assert fitting(root, "lint", "--json", tmp_path / "a.conf", status=1)["findings"]
    assert fitting(root, "recovery", "--json", "--table")["paths"]


def test_every_command_has_json():
    commands = next(action for action in cli.parser()._actions
                    if hasattr(action, "choices") and action.choices)
    assert not [name for name, cmd in commands.choices.items() if name != "timer"
                and "--json" not in cmd.format_help()]


@pytest.mark.parametrize("damage", [
    {"format": "other"}, {"version": 2}, {"findings": [{"level": "fatal"}]},
    {"settings": "1"}, {"settings": True}])
def test_the_schema_refuses(damage):
    good = {"format": "msstune-lint", "version": 1, "files": ["a"], "settings": 1,
            "findings": []}
    assert not wrong(good) and wrong(good | damage)
    assert wrong({key: good[key] for key in good if key != "files"})


def test_the_validator_knows_every_keyword():
    def parts(schema):
        yield schema
        for word in ("$defs", "properties"):
            for one in schema.get(word, {}).values():
                yield from parts(one)
        for word in ("oneOf", "anyOf", "prefixItems"):
            for one in schema.get(word, ()):
                yield from parts(one)
        if "items" in schema:
            yield from parts(schema["items"])
    for part in parts(SCHEMA):
        wrong(None, part)
