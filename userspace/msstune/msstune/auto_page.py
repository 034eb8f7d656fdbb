# SPDX-License-Identifier: GPL-2.0-only
"""The report of msstune auto as one self-contained page.  Pure."""
from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from . import verify

STYLE = """body { font: 15px/1.5 sans-serif; max-width: 50em; margin: 2em auto;
padding: 0 1em } table { border-collapse: collapse } td, th { text-align: left;
vertical-align: top; padding: .2em .8em .2em 0; border-bottom: 1px solid #ccc }
.kept { color: #060 } code { font-size: 90% }"""


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


def page(document: dict[str, Any]) -> str:
    """The page for msstune auto's JSON."""
    parts = ["<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\">"
             f"<title>msstune auto</title><style>{STYLE}</style>",
             f"<h1>msstune auto</h1><p>End: {escape(document['end'])}.</p>"]
    for number, turn in enumerate(document["rounds"], 1):
        parts += [
            f"<h2>Round {number}: {escape(turn['verdict'])}</h2>",
            _table("connection or part|limit|why", [
                _row(escape(d["subject"]), escape(d["text"]), escape(d["why"]))
                for d in turn["diagnoses"]]),
            _table("setting|verdict|effect|action|experiment",
                   [_experiment(e) for e in turn["experiments"]]),
            *(f"<p>Not tried: <code>{escape(name)}</code>: {escape(why)}</p>"
              for name, why in turn["refused"].items())]
    parts += [f"<p>Advice: {escape(text)}</p>" for text in document["advice"]]
    return "\n".join(filter(None, parts)) + "\n</html>\n"
