# SPDX-License-Identifier: GPL-2.0-only
"""One experiment for each change.  A change is applied and confirmed if mssab's
decision is to keep it; any other is left undone."""
from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from .. import output_file, units
from ..settings import settings
from .error_budget import LEAST, Budget, pairs_for
from ..errors import TuneError, UsageError
from .switchback import CHANGED, NOW, SLACK, Protocol, Switchback
from .transaction import Change, TransactionManager

#: % of bytes of connections older than their block above which the effect of a
#: setting on new connections is hardly visible.
CARRIED = 50
#: Noise, % of the metric, above which nothing is tried.
COARSEST = 50
KEEP_TIMEOUT = 60   # seconds between apply and confirm, at most
SESSION = "session.json"
#: The share of connections that the module treats.
SHARE = "net.mssfrac.ab_percent"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one experiment."""

    changes: Sequence[Change]
    folder: Path
    result: dict[str, Any]      # mssab's
    carried: float              # mean over the blocks, %
    number: int = 0             # of the confirmed change; 0: not kept

    @property
    def name(self) -> str:
        return ", ".join(c.setting.name for c in self.changes)

    @property
    def aa_stopped(self) -> bool:
        return bool(self.result.get("aa", {}).get("stopped"))

    @property
    def harmed(self) -> bool:
        """Whether harm is shown, which is more than that safety is not."""
        return bool(self.result["decision"] == "reject")

    @property
    def guardrails(self) -> dict[str, str]:
        """safe, harmed or not shown, by guardrail."""
        return {name: str(one["safe"]) for name, one in self.result["metrics"].items()
                if "safe" in one}

    def document(self) -> dict[str, Any]:
        metrics = self.result["metrics"]
        return {"settings": [{"setting": c.setting.name, "old": c.expected or "",
                              "new": c.new} for c in self.changes],
                "verdict": self.result["verdict"], "why": self.result["why"],
                "kept": bool(self.number), "change": self.number,
                "metrics": {name: {key: one[key] for key in (
                    "verdict", "effect", "low", "high", "level", "scale", "unit",
                    "arms")} for name, one in metrics.items()},
                "primary": self.result["primary"],
                "decision": self.result["decision"],
                "guardrails": self.guardrails,
                "notes": self.result["notes"], "carried_percent": self.carried,
                "results": str(self.folder)}


def figure(value: float, unit: str) -> str:
    """One value of an mssab metric, with its unit."""
    if unit == "bit/s":
        return units.bits(value)
    return units.duration(value / 1e6) if unit == "us" else f"{value:.4g}"


def effect(metric: dict[str, Any]) -> str:
    """Both means, and the difference with its interval, if known."""
    text = " -> ".join(figure(metric["arms"][arm].get("mean", 0), metric["unit"])
                       for arm in (NOW, CHANGED))
    found = [metric[key] for key in ("effect", "low", "high")]
    if None in found:
        return text
    unit = "%" if metric["scale"] == "log" else metric["unit"]
    point, low, high = (f"{value + 0.0:+.4g}" for value in found)  # no -0
    return (f"{text}, {point} {unit} ({100 - 100 * metric['level']:.4g} % interval "
            f"{low} .. {high})")


def told(outcome: Outcome) -> list[str]:
    """The outcome, in lines."""
    result = outcome.result
    lines = [f"{name}: {metric['verdict']}, {effect(metric)}"
             for name, metric in result["metrics"].items()]
    lines.append(f"verdict: {result['verdict']}, decision: {result['decision']}"
                 + (f": {result['why']}" if result["why"] else ""))
    lines += [f"note: {note}" for note in result["notes"]]
    if not outcome.number and outcome.carried > CARRIED:
        lines.append(f"note: {outcome.carried:.0f} % of the bytes belong to "
                     "connections older than their block, which keep their "
                     "buffers and options; use --load COMMAND to make new ones")
    lines.append(f"kept as change {outcome.number}: msstune rollback "
                 f"{outcome.number} undoes it" if outcome.number else
                 "not kept: all settings are as before")
    return lines


def _resolved(result: dict[str, Any]) -> float:
    """The smallest effect that can be detected, %, where A/A stopped because noise
    exceeds the effect of interest, but not COARSEST; else 0."""
    metric = result.get("aa", {}).get("metrics", {}).get(result["primary"][0], {})
    width = float(metric.get("half_width_expected") or 0)
    noisy = result.get("aa", {}).get("pairs_needed", 0)
    return 1.1 * abs(width) if noisy and abs(width) <= COARSEST else 0.0


@dataclass
class Verifier:
    """A session: one directory of experiments, the first of which starts with A/A.
    session.json there has what is needed to resume it."""

    manager: TransactionManager
    protocol: Protocol
    directory: Path
    tell: Callable[[str], None]
    canary: int = 0             # % of connections that get a change first; 0: none
    resume: bool = False
    count: int = 0              # experiments run
    steps: list[dict[str, Any]] = field(default_factory=list)
    step: int = 0

    def __post_init__(self) -> None:
        self.pairs = self.protocol.pairs    # asked for

    def begin(self, changes: Sequence[Change] = ()) -> None:
        """Make the directory, or read the session that it holds; fail before anything
        is measured."""
        if self.directory.name == "-":
            raise UsageError("-o -: results are a folder; --json prints the summary")
        if self.canary and not all(_of_module(c) for c in changes):
            raise UsageError("--canary: only settings net.mssfrac.* have arms; "
                             "others act on all connections")
        self._about = {"settings": [[c.setting.name, c.new] for c in changes],
                       "protocol": asdict(self.protocol), "canary": self.canary}
        file = self.directory / SESSION
        if self.resume:
            try:
                stored = json.loads(file.read_text("utf-8"))
                self.steps = stored["steps"]
                about = stored["about"]
            except (OSError, ValueError, LookupError, TypeError) as error:
                raise UsageError(f"{file}: no session to resume") from error
            if about != self._about:
                raise UsageError(f"{self.directory}: the session has other settings or "
                                 "options; --resume needs the same command line")
            return
        if self.directory.exists() and any(self.directory.iterdir()):
            raise UsageError(f"{self.directory} holds results; go on with --resume, or "
                             "choose another folder with -o")
        self.directory.mkdir(parents=True, exist_ok=True)
        self._store()

    def _store(self) -> None:
        output_file.store(self.directory / SESSION, json.dumps(
            {"format": "msstune-session", "version": 1, "about": self._about,
             "steps": self.steps}))

    def one(self, changes: Sequence[Change], keep: bool = True) -> Outcome:
        """Run one experiment; keep or leave the change.  @keep: whether it may be
        kept."""
        at, self.step = self.step, self.step + 1
        resumed = at < len(self.steps)
        if not resumed:
            self.steps.append({"old": [c.setting.read() for c in changes],
                               "count": self.count,
                               "effect": self.protocol.effect})
            self._store()
        step = self.steps[at]
        changes = [replace(c, expected=old) for c, old in
                   zip(changes, step["old"], strict=True)]
        title = ", ".join(f"{c.setting.name} {' '.join((c.expected or '').split())}"
                          f" -> {c.new}" for c in changes)
        self.tell(title)
        self.count = step["count"]
        self.protocol = replace(self.protocol, effect=step["effect"])
        before = self._kept_before(changes) if resumed else 0
        switchback = Switchback(self.manager, changes, self.protocol)
        if not before and "number" not in step:
            switchback.undisturbed()
            # A refused value must show before anything is measured.
            with self.manager.trial(changes, SLACK):
                pass
        result = self._run(switchback, title, not self.count, resumed)
        seen = _resolved(result)
        if seen:
            self.tell(f"    A/A: noise hides effects below {seen:.3g} %; only "
                      "larger effects are looked for")
            self.protocol = switchback.protocol = replace(self.protocol,
                                                          effect=seen)
            result = self._run(switchback, title, False, resumed)
        number = step.get("number", 0)
        if "number" not in step:
            if keep and result["keep"]:
                number = before or self.manager.apply(changes, KEEP_TIMEOUT).number
                if not before:
                    self.manager.confirm()
            step["number"] = number
            self._store()
        elif number and number != before:
            raise TuneError(f"change {number}, kept before, is no longer in force")
        carried = switchback.carried
        outcome = Outcome(changes, self._folder, result,
                          sum(carried) / max(1, len(carried)), number)
        for line in told(outcome):
            self.tell(f"    {line}")
        return outcome

    def _kept_before(self, changes: Sequence[Change]) -> int:
        """The number of the confirmed change with just these values in force."""
        wanted = [(c.setting.name, c.new) for c in changes]
        for transaction in reversed(self.manager.transactions()):
            if transaction.state == "confirmed" \
                    and [(e.name, e.new) for e in transaction.entries] == wanted \
                    and all(self.manager.drift(e) == "in force"
                            for e in transaction.entries):
                return transaction.number
        return 0

    @property
    def _folder(self) -> Path:
        return self.directory / f"{self.count}"

    def _run(self, switchback: Switchback, title: str, aa: bool,
             resume: bool) -> dict[str, Any]:
        self.count += 1
        return switchback.run(self._folder, title, aa, resume)

    def staged(self, changes: Sequence[Change]) -> Outcome:
        """With a canary, try the change on a share of connections first."""
        if not self.canary:
            return self.one(changes)
        share = Change(*settings.parse(f"{SHARE}={self.canary}", self.manager.root))
        self.tell(f"canary: {self.canary} % of connections")
        canary = self.one([*changes, share], keep=False)
        if canary.harmed or canary.aa_stopped:
            self.tell("the canary ends it: not tried on all connections")
            return canary
        return self.one(changes)

    def each(self, changes: Sequence[Change], number: int = 0) -> list[Outcome]:
        """Try one after the other, on top of those kept.  If none is kept, try all
        together: some settings only work together.  @number: of auto's round, whose
        experiments share its error budget; 0: each has one of its own."""
        outcomes: list[Outcome] = []
        together = len(changes) > 1
        budget = Budget.of_round(number, len(changes) + together) if number else None

        def trial(some: Sequence[Change]) -> bool:
            """Whether to go on."""
            if budget and budget.level < LEAST:
                self.tell("    no error budget is left: not tried")
                return False
            if budget:
                self.protocol = replace(self.protocol, alpha=budget.level, pairs=max(
                    self.pairs, pairs_for(budget.level)))
            outcomes.append(self.staged(some))
            if budget:
                budget.spend(bool(outcomes[-1].number))
            return not outcomes[-1].aa_stopped
        for change in changes:
            if not trial([change]):
                return outcomes
        if together and not any(o.number for o in outcomes):
            trial(changes)
        return outcomes


def _of_module(change: Change) -> bool:
    """Whether the module applies the setting by arm."""
    name = change.setting.name
    return name.startswith("sysctl:net.mssfrac.") and not name.endswith(
        (".ab_percent", ".ab_seed"))
