# SPDX-License-Identifier: GPL-2.0-only
"""One experiment for each change; a change that mssab's verdict keeps is applied
and confirmed, any other is left undone."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import units
from .errors import UsageError
from .switchback import CHANGED, NOW, SLACK, Protocol, Switchback
from .transaction import Change, TransactionManager

#: % of bytes of connections older than their block above which the effect of a
#: setting on new connections is hardly visible.
CARRIED = 50
#: Noise, % of the metric, above which nothing is tried.
COARSEST = 50
KEEP_TIMEOUT = 60   # seconds between apply and confirm, at most


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
    lines.append(f"verdict: {result['verdict']}"
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
    """A session: one directory of experiments, the first of which starts with A/A."""

    manager: TransactionManager
    protocol: Protocol
    directory: Path
    tell: Callable[[str], None]
    count: int = 0

    def begin(self) -> None:
        """Make the directory; fail before anything is measured."""
        if self.directory.name == "-":
            raise UsageError("-o -: results are a folder; --json prints the summary")
        if self.directory.exists() and any(self.directory.iterdir()):
            raise UsageError(f"{self.directory} holds results; choose another "
                             "folder with -o")
        self.directory.mkdir(parents=True, exist_ok=True)

    def one(self, changes: Sequence[Change]) -> Outcome:
        """Run one experiment; keep or leave the change."""
        changes = [replace(c, expected=c.setting.read()) for c in changes]
        title = ", ".join(f"{c.setting.name} {' '.join((c.expected or '').split())}"
                          f" -> {c.new}" for c in changes)
        self.tell(title)
        # A refused value must show before anything is measured.
        with self.manager.trial(changes, SLACK):
            pass
        switchback = Switchback(self.manager, changes, self.protocol)
        result = self._run(switchback, title, aa=not self.count)
        seen = _resolved(result)
        if seen:
            self.tell(f"    A/A: noise hides effects below {seen:.3g} %; only "
                      "larger effects are looked for")
            self.protocol = switchback.protocol = replace(self.protocol,
                                                          effect=seen)
            result = self._run(switchback, title, aa=False)
        number = 0
        if result["keep"]:
            number = self.manager.apply(changes, KEEP_TIMEOUT).number
            self.manager.confirm()
        carried = switchback.carried
        outcome = Outcome(changes, self._folder, result,
                          sum(carried) / max(1, len(carried)), number)
        for line in told(outcome):
            self.tell(f"    {line}")
        return outcome

    @property
    def _folder(self) -> Path:
        return self.directory / f"{self.count}"

    def _run(self, switchback: Switchback, title: str,
             aa: bool) -> dict[str, Any]:
        self.count += 1
        return switchback.run(self._folder, title, aa)

    def each(self, changes: Sequence[Change]) -> list[Outcome]:
        """Try one after the other, on top of those kept.  If none is kept, try all
        together: some settings only work together."""
        outcomes = []
        for change in changes:
            outcomes.append(self.one([change]))
            if outcomes[-1].aa_stopped:
                return outcomes
        if len(changes) > 1 and not any(o.number for o in outcomes):
            outcomes.append(self.one(changes))
        return outcomes
