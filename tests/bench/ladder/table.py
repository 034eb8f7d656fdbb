#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The cost of a packet on each kernel of the ladder: a table, a plot, and the
metrics that moved from one kernel to the next.

Reads FOLDER/RELEASE/WORKLOAD.json (profiles with the member "load", written by
scripts/workload); writes ladder.txt, ladder.png and ladder.json into
OUTPUT.  `pathprof check` defines the metrics and what counts as a change.

usage: ladder.py FOLDER OUTPUT
"""
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import matplotlib

from workloads import WORKLOADS

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

STEP = 2.0  # %: a change of the total that the documentation explains
PART = 5.0  # %: of one kind of packet or stage


def version_key(release):
    return [int(n) for n in re.findall(r"\d+", release)[:3]]


def read(folder):
    """{release: {workload: profile}}, ordered by version and by the table of
    workloads."""
    found = {}
    for release in sorted((p for p in folder.iterdir() if p.is_dir()),
                          key=lambda p: version_key(p.name)):
        profiles = {name: json.loads((release / f"{name}.json").read_text())
                    for name in WORKLOADS
                    if (release / f"{name}.json").exists()}
        if profiles:
            found[release.name] = profiles
    return found


def packets(profile):
    return sum(path["packets"] for path in profile["paths"])


def by_stage(profile):
    """{(direction, stage): instructions per packet of the profile}, work only,
    in the order in which packets pass them."""
    stages = {s["id"]: s for s in profile["stages"]}
    sums = {}
    for path in profile["paths"]:
        for number, ns in zip(path["stages"], path["stage_ns"]):
            if stages[number]["kind"] == "work":
                key = (path["direction"], stages[number]["name"])
                sums[key] = sums.get(key, 0) + ns
    order = {s["name"]: s["order"] for s in stages.values()}
    total = packets(profile)
    return {key: sums[key] / total
            for key in sorted(sums, key=lambda k: (k[0], order[k[1]]))
            if sums[key]}


def profiled(profile):
    """Work of all paths, per packet of the profile."""
    return sum(path["work_ns"] for path in profile["paths"]) / packets(profile)


def unprofiled(profile, workload):
    """Instructions per packet of the run without pathprof; None where the
    load waits: its time is not its work."""
    if workload.waits:
        return None
    return profile["load"]["ns"] / profile["load"]["packets"]


def moved(folder, older, newer, name):
    """Metrics of one workload that moved by more than PART from one release
    to the next: (metric, before, after, change in %)."""
    done = subprocess.run(
        ["build/bin/pathprof", "check", "--json", "--raw", "--tolerance",
         str(PART), folder / older / f"{name}.json",
         folder / newer / f"{name}.json"],
        capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"ladder: {done.stderr}")
    return [(f["name"], f["base"], f["new"], 100 * f["change"])
            for f in json.loads(done.stdout)["figures"]
            if f["moved"] and f["kind"] == "cost"
            and not f["name"].endswith(".byte")]


def change(before, after):
    return "" if before is None else f"{100 * (after / before - 1):+.1f}"


def table(ladder, figure):
    """A row for each release, a column for each workload, and the change
    from the row above in %."""
    lines = [f"{'':<26}" + "".join(f"{name:>18}" for name in WORKLOADS)]
    last = {}
    for release, profiles in ladder.items():
        line = f"{release:<26}"
        for name, workload in WORKLOADS.items():
            value = (figure(profiles[name], workload)
                     if name in profiles else None)
            if value is None:
                line += f"{'-':>18}"
                continue
            line += f"{value:>11,.0f} {change(last.get(name), value):>6}"
            last[name] = value
        lines.append(line.rstrip())
    return "\n".join(lines)


def steps(ladder, folder):
    """What moved between neighbours where the total moved by STEP."""
    lines = []
    releases = list(ladder)
    for older, newer in zip(releases, releases[1:]):
        for name in WORKLOADS:
            if name not in ladder[older] or name not in ladder[newer]:
                continue
            before, after = (profiled(ladder[r][name]) for r in (older, newer))
            if abs(after / before - 1) * 100 < STEP:
                continue
            lines.append(f"{older} -> {newer}, {name}: {before:,.0f} -> "
                         f"{after:,.0f} ({change(before, after)} %)")
            lines += [f"    {figure:<22} {was:>10,.0f} -> {now:>10,.0f} "
                      f"{percent:+7.1f} %"
                      for figure, was, now, percent
                      in moved(folder, older, newer, name)]
    return "\n".join(lines) or "none"


def text(ladder, folder):
    first = next(iter(next(iter(ladder.values())).values()))
    return "\n".join([
        "Instructions per packet, and the change from the kernel above in %",
        f"pathprof {first['tool']['version']}, deterministic guest, "
        "--sample 1",
        "",
        "Unprofiled: all that the guest executed, over packets of the device",
        table(ladder, unprofiled),
        "",
        "Profiled: work of all paths, pathprof's own included, over packets",
        "(super-packets of GSO and GRO) that it followed",
        table(ladder, lambda profile, _: profiled(profile)),
        "",
        f"Steps of {STEP:g} % and more, and what moved by {PART:g} % and more "
        "in them",
        steps(ladder, folder), ""])


def plot(ladder, output):
    """A panel for each workload, a bar for each kernel, a part of it for each
    stage: blue is received, orange is sent."""
    figure, panels = plt.subplots(2, 4, figsize=(17, 9), sharex=True)
    keys = {}
    for profiles in ladder.values():
        for profile in profiles.values():
            keys.update(dict.fromkeys(by_stage(profile)))
    tones = {}
    for direction, colours in (("rx", plt.cm.Blues), ("tx", plt.cm.Oranges)):
        mine = [key for key in keys if key[0] == direction]
        for n, key in enumerate(mine):
            tones[key] = colours(0.25 + 0.7 * n / max(len(mine) - 1, 1))
    series = [".".join(r.split(".")[:2]) for r in ladder]
    for panel, (name, workload) in zip(panels.flat, WORKLOADS.items()):
        for x, profiles in enumerate(ladder.values()):
            if name not in profiles:
                continue
            top = 0
            for key, value in by_stage(profiles[name]).items():
                panel.bar(x, value, bottom=top, color=tones[key], width=0.8,
                          edgecolor="white", linewidth=0.3)
                top += value
        panel.set_title(f"{name}\n" + textwrap.fill(workload.about, 45),
                        fontsize=8)
        panel.set_xticks(range(len(series)), series)
        panel.tick_params(labelsize=8)
    for panel in panels[:, 0]:
        panel.set_ylabel("instructions per followed packet")
    figure.legend([plt.Rectangle((0, 0), 1, 1, color=tones[key])
                   for key in tones], [" ".join(key) for key in tones],
                  loc="center right", fontsize=8, frameon=False)
    figure.suptitle("Where a packet's instructions go, kernel by kernel")
    figure.tight_layout(rect=(0, 0, 0.92, 0.98))
    figure.savefig(output / "ladder.png", dpi=80)


def main():
    folder, output = map(Path, sys.argv[1:3])
    ladder = read(folder)
    if len(ladder) < 2:
        sys.exit(f"ladder: {folder} has fewer than two kernels")
    output.mkdir(parents=True, exist_ok=True)
    said = text(ladder, folder)
    print(said, end="")
    (output / "ladder.txt").write_text(said)
    (output / "ladder.json").write_text(json.dumps({
        "format": "pathprof-ladder", "version": 1,
        "kernels": {release: {name: {
            "started": profile["started"],
            "tool": profile["tool"]["version"],
            "packets": packets(profile),
            "load": profile["load"],
            "stages": {" ".join(key): round(value, 1)
                       for key, value in by_stage(profile).items()}}
            for name, profile in profiles.items()}
            for release, profiles in ladder.items()}}, indent=1) + "\n")
    plot(ladder, output)


if __name__ == "__main__":
    main()
