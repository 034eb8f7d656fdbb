# SPDX-License-Identifier: GPL-2.0-only
"""report.html: one page that needs no other file, made from a results
directory."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jinja2

from .. import verdict
from ..errors import MssabError, UsageError
from ..run import journal
from ..statistics import analysis, outcomes
from . import plots, result_text

#: Colour of the headline, by decision or verdict of an A/A run.
_COLOURS = {
    verdict.KEEP: "--improved", verdict.REJECT: "--regressed",
    verdict.NO_GAIN: "--equivalent", verdict.UNDECIDED: "--inconclusive",
} | {word: f"--{word}" for word in verdict.ALL}
TEMPLATES = Path(__file__).parent


def read(directory: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Manifest and result."""
    manifest = journal.read_manifest(directory)
    try:
        result = json.loads((directory / journal.RESULT).read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{directory}: no {journal.RESULT} yet: the "
                         "experiment has not ended; mssab run --resume "
                         "continues it") from error
    except ValueError as error:
        raise MssabError(f"{directory / journal.RESULT}: {error}") from error
    return manifest, _upgraded(result)


def _upgraded(result: dict[str, Any]) -> dict[str, Any]:
    """A result of version 1 of the format with the fields of version 2: no
    block failed, and a guardrail passed unless it regressed."""
    if result.get("version") == analysis.VERSION:
        return result
    for name in result["guardrails"]:
        if one := result["metrics"].get(name):
            one["safe"] = verdict.safety(one["verdict"], 1.0, 0.0)
    none = {"failed": 0, "of": 0, "reasons": {}, "at_most_percent": 100.0}
    return result | {
        "decision": verdict.KEEP if result["keep"] else verdict.decision(
            result["verdict"],
            bool(result_text.unsafe(result, verdict.HARMED)), True),
        "carry_over": {}, "failures": {
            "arms": {arm: dict(none) for arm in result["arms"]}, "in_aa": 0,
            "p": 1.0, "more": False, "harm": False}}


def page(manifest: dict[str, Any], result: dict[str, Any],
         records: list[dict[str, Any]]) -> str:
    """The page of a result."""
    counted = outcomes.pairs(records, outcomes.AB) \
        or outcomes.pairs(records, outcomes.AA)
    metrics = result["metrics"] or result.get("aa", {}).get("metrics", {})
    drawn = []
    for name, metric in metrics.items():
        sides = analysis.sides(counted, name)
        if not counted:
            continue
        drawn.append({
            "name": name,
            "series": plots.series(name, metric["unit"], records,
                                   result["arms"]),
            "arms": plots.distributions(name, metric["unit"], sides,
                                        list(metric["arms"]))})
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True)
    environment.filters |= {"number": result_text.number, "signed": result_text.signed}
    manifest = {"environment": {}} | manifest   # version 1 has none
    return environment.get_template("report.html").render(
        manifest=manifest, result=result, colour=_COLOURS[
            result["verdict"] if result["only_aa"] else result["decision"]],
        metrics=metrics, drawn=drawn,
        effects=plots.effects(result | {"metrics": metrics}),
        blocks=len(records), text=result_text,
        refused=[r for r in records if r["void"]],
        failed=[r for r in records if outcomes.failed(r)])


def write(directory: Path) -> Path:
    """Make the page of a results directory."""
    manifest, result = read(directory)
    path = directory / journal.REPORT
    journal.write_whole(path, page(manifest, result,
                                   journal.read_samples(directory)))
    return path
