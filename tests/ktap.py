# SPDX-License-Identifier: GPL-2.0-only
"""Parse and judge KTAP output: pure functions over text.  A test passes only
if it planned its cases, reported each of them ok and exited with the matching
status.  Everything else is a failure, with one sentence that gives the reason."""
import re
from dataclasses import dataclass

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
EXIT_SKIP = 4  # of kselftest

PLAN = re.compile(r"1\.\.(\d+)\s*(?:# SKIP\s*(.*))?$")
# An expected failure (XFAIL) is reported ok, with the reason behind it.
RESULT = re.compile(r"(not )?ok (\d+)(?: -)?\s*(.*?)\s*(?:# XFAIL.*)?"
                    r"(?:# SKIP\s*(.*))?$")
BEGIN = re.compile(r"# begin (\S+)$")
END = re.compile(r"# end (\S+) status=(\d+) seconds=(\d+)(?: left=(.*))?$")


@dataclass
class Case:
    name: str
    outcome: str
    reason: str = ""


@dataclass
class Section:
    """Output of one script inside a guest; status is None if it never ended."""
    output: str
    status: int | None = None
    seconds: int = 0
    left: str = ""


def judge(output: str, status: int | None) -> list[Case]:
    """The cases of one test.  A fault of the whole test becomes a failed case."""
    plan = None
    why_none = ""
    cases: list[Case] = []

    def wrong(reason: str) -> None:
        cases.append(Case("(whole test)", FAILED, reason))

    for line in output.splitlines():
        if found := PLAN.match(line):
            if plan is not None:
                wrong("two plans")
            plan, why_none = int(found[1]), found[2] or ""
        elif found := RESULT.match(line):
            name = found[3] or f"case {found[2]}"
            if int(found[2]) != sum(c.name != "(whole test)"
                                    for c in cases) + 1:
                wrong(f"case {found[2]} is out of order")
            if found[1]:
                cases.append(Case(name, FAILED))
            elif found[4] is not None:
                cases.append(Case(name, SKIPPED, found[4]))
            else:
                cases.append(Case(name, PASSED))
        elif line.startswith("Bail out!"):
            wrong(line)

    reported = sum(c.name != "(whole test)" for c in cases)
    bad = any(c.outcome == FAILED for c in cases)
    if status is None:
        wrong("did not end")
    elif status == 124:
        wrong("ran into its time limit")
    elif status == EXIT_SKIP and not any(c.outcome == PASSED for c in cases):
        if plan in (0, None) and not cases:
            reason = why_none or last_remark(output)
            if reason:
                return [Case("(whole test)", SKIPPED, reason)]
            wrong("skipped without a reason")
            return cases
    elif status not in (0, 1):
        wrong(f"unexpected exit status {status}")
    elif status == 1 and not bad:
        wrong("exit status 1 although no case failed")
    elif status == 0 and bad:
        wrong("exit status 0 although a case failed")
    if plan is None:
        wrong("no plan")
    elif plan != reported:
        wrong(f"planned {plan} cases, reported {reported}")
    elif plan == 0:
        wrong("planned no case")
    for case in cases:
        if case.outcome == SKIPPED and not case.reason:
            case.outcome, case.reason = FAILED, "skipped without a reason"
    return cases


def last_remark(output: str) -> str:
    """The last '# SKIP reason' or other comment line of a skipped test."""
    remarks = re.findall(r"^# (?:SKIP:?\s*)?(.+)$", output, re.MULTILINE)
    return remarks[-1] if remarks else ""


def sections(output: str) -> dict[str, Section]:
    """Split the output of tests/in-guest by script."""
    found: dict[str, Section] = {}
    current = None
    for line in output.splitlines(keepends=True):
        if mark := BEGIN.match(line.rstrip("\n")):
            current = found.setdefault(mark[1], Section(""))
        elif mark := END.match(line.rstrip("\n")):
            if current is not None and found.get(mark[1]) is current:
                current.status = int(mark[2])
                current.seconds = int(mark[3])
                current.left = mark[4] or ""
            current = None
        elif current is not None:
            current.output += line
    return found


def judge_guest(output: str, status: int, expected: list[str]) \
        -> dict[str, list[Case]]:
    """Verdict on one guest: every expected script, then the guest itself.

    status is the exit status of scripts/guest.  The driver inside the guest
    always exits with 0, so any other status is a fault of the guest."""
    found = sections(output)
    verdict = {}
    for name in expected:
        section = found.get(name)
        if section is None:
            verdict[name] = [Case("(whole test)", FAILED, "did not run")]
            continue
        verdict[name] = judge(section.output, section.status)
        if section.left:
            verdict[name].append(Case("(whole test)", FAILED,
                                      f"left behind: {section.left}"))
    if status == 0:
        verdict["kernel"] = [Case("clean kernel log", PASSED)]
    else:
        reason = {1: "the kernel log has a splat",
                  124: "the guest hung",
                  125: "the guest crashed"}.get(status, f"exit status {status}")
        verdict["kernel"] = [Case("clean kernel log", FAILED, reason)]
    return verdict
