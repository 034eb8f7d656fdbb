# SPDX-License-Identifier: GPL-2.0-only
"""report.html: one page that needs no other file, made from a results
directory."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jinja2

from . import analysis, journal, plots, result_text
from .errors import MssabError, UsageError

TEMPLATES = Path(__file__).with_name("templates")


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
    return manifest, result


def page(manifest: dict[str, Any], result: dict[str, Any],
         records: list[dict[str, Any]]) -> str:
    """The page of a result."""
    counted = analysis.pairs(records, analysis.AB) \
        or analysis.pairs(records, analysis.AA)
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
    return environment.get_template("report.html").render(
        manifest=manifest, result=result, metrics=metrics, drawn=drawn,
        effects=plots.effects(result | {"metrics": metrics}),
        blocks=len(records), text=result_text,
        refused=[r for r in records if r["void"]])


def write(directory: Path) -> Path:
    """Make the page of a results directory."""
    manifest, result = read(directory)
    path = directory / journal.REPORT
    journal.write_whole(path, page(manifest, result,
                                   journal.read_samples(directory)))
    return path
