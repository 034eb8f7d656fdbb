# SPDX-License-Identifier: GPL-2.0-only
"""The report of msstune auto as one self-contained page.  Pure."""
from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from ..transaction import verify

STYLE = """body { font: 15px/1.5 sans-serif; max-width: 50em; margin: 2em auto;
padding: 0 1em } table { border-collapse: collapse } td, th { text-align: left;
vertical-align: top; padding: .2em .8em .2em 0; border-bottom: 1px solid #ccc }
.kept { color: #060 } code { font-size: 90% }
.bar { display: inline-block; height: .8em; background: #79a }
.after { background: #c84 }"""
BARS = 12           # stages shown
WIDEST = 24         # em, of the longest bar


def _table(head: str, rows: list[str]) -> str:
    if not rows:
        return ""
    cells = "".join(f"<th>{escape(word)}</th>" for word in head.split("|"))
    return f"<table><tr>{cells}</tr>{''.join(rows)}</table>"


def _row(*cells: str) -> str:
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _effect(experiment: dict[str, Any]) -> str:
    """The effect on the metric that decides."""
    name = str(experiment["primary"][0])
    metric = experiment["metrics"].get(name)
    return escape(f"{name} {verify.effect(metric)}" if metric
                  else str(experiment["why"]))


def _experiment(experiment: dict[str, Any]) -> str:
    settings = "<br>".join(
        f"<code>{escape(s['setting'])}</code>: {escape(' '.join(s['old'].split()))} "
        f"to {escape(s['new'])}" for s in experiment["settings"])
    folder = Path(experiment["results"]).name
    kept = f'<span class="kept">kept, change {experiment["change"]}</span>' \
        if experiment["kept"] else "undone"
    return _row(settings, escape(experiment["verdict"]), _effect(experiment), kept,
                f'<a href="{escape(folder)}/report.html">{escape(folder)}</a>')


def _bar(value: float, most: float, kind: str) -> str:
    return (f'<span class="bar {kind}" style="width: {WIDEST * value / most:.2f}em">'
            f"</span> {value:,.0f}")


def _paths(rounds: list[dict[str, Any]]) -> list[str]:
    """Work and waits by stage in the first round and in the last, as bars."""
    told = [turn for turn in rounds if turn.get("costs")]
    if not told:
        return []
    first, last = told[0]["costs"], told[-1]["costs"] if len(told) > 1 else []
    parts = ["<h2>Paths" + (", before and after" if last else "") + "</h2>"]
    for kind in ("work", "wait"):
        sums = [{(row["direction"], row["stage"]): row["ns_per_kb"] for row in rows
                 if row["kind"] == kind} for rows in (first, last)]
        keys = sorted(sums[0].keys() | sums[1].keys(),
                      key=lambda key: -float(max(one.get(key, 0) for one in sums)))[
                          :BARS]
        most = max([one.get(key, 0) for one in sums for key in keys], default=0)
        if not most:
            continue
        rows = [_row(f"{escape(way)} {escape(stage)}", "<br>".join(
            _bar(one.get((way, stage), 0), most, name)
            for one, name in zip(sums, ("before", "after")) if one))
            for way, stage in keys]
        totals = " to ".join(f"{sum(one.values()):,.0f}" for one in sums if one)
        parts += [f"<p>{kind.capitalize()}, ns per 1000 bytes: {totals} in all</p>",
                  _table("stage|" + ("before above, after below" if last else "now"),
                         rows)]
    return parts


def _evidence(evidence: dict[str, Any]) -> str:
    return escape(f"{evidence['path']}: {evidence['share']:.0%} of the "
                  f"{evidence['of']}")


def _undo(document: dict[str, Any]) -> str:
    numbers = [e["change"] for turn in document["rounds"] for e in turn["experiments"]
               if e["kept"]]
    if not numbers:
        return "<p>No setting was changed.</p>"
    commands = "<br>".join(f"<code>msstune rollback {n}</code>"
                           for n in reversed(numbers))
    return f"<p>To undo what was kept, the last change first:<br>{commands}</p>"


def page(document: dict[str, Any]) -> str:
    """The page for msstune auto's JSON."""
    parts = ["<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\">"
             f"<title>msstune auto</title><style>{STYLE}</style>",
             f"<h1>msstune auto</h1><p>End: {escape(document['end'])}.</p>",
             _undo(document), *_paths(document["rounds"])]
    for number, turn in enumerate(document["rounds"], 1):
        parts += [
            f"<h2>Round {number}: {escape(turn['verdict'])}</h2>",
            _table("connection or part|limit|why", [
                _row(escape(d["subject"]), escape(d["text"]), escape(d["why"])
                     + (f"<br>Path: {_evidence(d['evidence'])}"
                        if d.get("evidence") else ""))
                for d in turn["diagnoses"]]),
            _table("setting|verdict|effect|action|experiment",
                   [_experiment(e) for e in turn["experiments"]]),
            *(f"<p>Not tried: <code>{escape(name)}</code>: {escape(why)}</p>"
              for name, why in turn["refused"].items())]
    parts += [f"<p>Advice: {escape(text)}</p>" for text in document["advice"]]
    return "\n".join(filter(None, parts)) + "\n</html>\n"
