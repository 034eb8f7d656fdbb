# SPDX-License-Identifier: GPL-2.0-only
"""The table of pathprof's stages against its hooks, groups and manual page."""
import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
TABLE = (TOP / "bpf/stages.h").read_text(encoding="utf-8")
STAGES = [(*stage[:3], re.sub(r'["\s\\]+', " ", stage[3])) for stage in re.findall(
    r'STAGE\((\d+), \w+, "(\w+)", \w+, \d+, (\w+), \w+, '
    r'[\s\\]*((?:"[^"]+"[\s\\]*)+),', TABLE)]
HOOKS = set()
for file in (TOP / "bpf").glob("*.bpf.[ch]"):
    HOOKS |= set(re.findall(
        r"(?:FENTRY|FEXIT|TRACE|STACK_POINTER)\(\s*(\w+)"
        r"|SEC\(\"\??(?:fentry|fexit|tp_btf)/(\w+)\"\)",
        file.read_text(encoding="utf-8")))
HOOKS = {name for pair in HOOKS for name in pair if name}


def source(file):
    return (TOP / "userspace/pathprof" / file).read_text(encoding="utf-8")


def test_table_is_read_whole():
    assert len(STAGES) == TABLE.count("\nSTAGE(") > 60


def test_ids_are_unique():
    ids = [int(stage[0]) for stage in STAGES]
    assert len(set(ids)) == len(ids)
    assert max(ids) < 96


def test_every_hook_of_a_stage_is_an_entry_point():
    assert {hook for stage in STAGES for hook in stage[3].split()} <= HOOKS


def test_groups_name_entry_points():
    members = set(re.findall(r'\{ [A-Z]+, "(\w+)" \}', source("kernel/stage-groups.c")))
    assert len(members) > 30
    assert members <= HOOKS


def test_modules_name_entry_points():
    homes = set(re.findall(r'\{ "(\w+)", "\w+" \}', source("kernel/modules.c")))
    assert len(homes) > 15
    assert homes <= HOOKS


def test_manual_page_has_each_stage_of_a_group():
    page = (TOP / "Documentation/reference/pathprof.1.rst").read_text(
        encoding="utf-8")
    section = page[page.index("THE WHOLE HOST\n"):page.index("FILTERS\n")]
    for number, name, _, _ in STAGES:
        if int(number) >= 54 or int(number) in (37, 38):  # icmp
            assert f"*{name}*" in section, name
