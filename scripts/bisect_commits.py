# SPDX-License-Identifier: GPL-2.0-only
"""The commits of `bisect-step --series`: checks them out, builds and records
them, and compares two of them.  bisect_series.py decides which."""
import json
import shutil
import subprocess
from pathlib import Path

import bisect_report as report
import bisect_series as series
from bisect_recording import (EXIT_CANNOT_TELL, LATER_SEEDS, Baseline,
                              Comparison, Kernel, Stop, calls_of,
                              changed_functions, default_folder,
                              functions_run, limit_of, record, say)


def git(tree, *words):
    done = subprocess.run(["git", "-C", tree, *words], text=True, check=False,
                          capture_output=True)
    if done.returncode:
        raise Stop(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


class Series:
    """The commits of A..B in a tree, recorded one by one."""

    def __init__(self, args, scratch):
        self.args, self.scratch = args, scratch
        self.tree = Path(args.kernel).resolve()
        first, _, last = args.series.partition("..")
        if not self.tree.is_dir() or not first or not last:
            raise Stop("--series takes A..B, two commits of a source tree")
        if git(self.tree, "status", "--porcelain", "-uno"):
            raise Stop(f"{self.tree} has changes that are not committed")
        git(self.tree, "merge-base", "--is-ancestor", first, last)
        self.commits = [git(self.tree, "rev-parse", f"{first}^{{commit}}"),
                        *git(self.tree, "rev-list", "--reverse",
                             "--first-parent", f"{first}..{last}").split()]
        if len(self.commits) < 2:
            raise Stop(f"no commits in {args.series}")
        self.bounds, self.limit = {}, None
        self.base, self.again = None, set()

    def name(self, place):
        return git(self.tree, "log", "-1", "--format=%h %s", self.commits[place])

    def kernel(self, place):
        """That commit's, checked out and built, once."""
        kernel = Kernel(self.args.kernel, self.scratch / str(place),
                        self.args.config)
        images = list(kernel.scratch.glob("vmlinuz*"))
        if images:
            kernel.image = str(images[0])
            return kernel
        kernel.scratch.mkdir(exist_ok=True)
        git(self.tree, "checkout", "-q", self.commits[place])
        kernel.build()
        return kernel

    def baseline(self):
        """The kept one if it is of the first commit, else a new one."""
        workload = self.args.workload
        self.base = Baseline(default_folder(Kernel(self.args.kernel, None)),
                             workload)
        if not (self.base.profiles() and self.base.read()
                and self.base.about["commit"] == self.commits[0]):
            self.base = Baseline(self.scratch, workload)
            self.base.make(self.args, self.kernel(0), [workload])
            self.base.read()
        self.base.check(self.args, self.kernel(0))
        self.limit = limit_of(self.base)

    def recording(self, place):
        return self.scratch / str(place) / f"{self.args.workload}.json"

    def usable(self, place):
        try:
            kernel = self.kernel(place)
            record(self.args, kernel, [self.args.workload], self.args.seed,
                   "--functions", limit=self.limit)
        except Stop as stop:
            if stop.status != EXIT_CANNOT_TELL:
                raise
            say(f"{self.name(place)}: cannot tell: {stop}")
            return False
        shutil.copy(self.recording(place), self.again_file(place, 0))
        found = Comparison(self.args, self.base.profiles(),
                           self.recording(place))
        for figure in found.figures:
            self.bounds[figure["name"]] = figure["bound"]
        words = [f"{word}, {report.headline(figures)}" for word, figures in (
            ("worse", [f for f in found.figures if f["worse"]]),
            ("better", list(filter(report.improved, found.figures)))) if figures]
        say(f"{place} of {len(self.commits) - 1}, {self.name(place)}: "
            f"{'; '.join(words) or 'as the first'}")
        return bool(found.figures)

    def again_file(self, place, number):
        return self.scratch / f"{place}-{number}.json"

    def figures(self, before, after, number=0):
        """All metrics, and those of interest."""
        pair = Comparison(self.args, [self.again_file(before, number)],
                          self.again_file(after, number))
        return pair.figures, series.beyond(pair.found, self.bounds)

    def worse(self, before, after):
        return self.figures(before, after)[1]

    def confirmed(self, before, after):
        """Both kernels are recorded again with other seeds."""
        for place in (before, after):
            if place not in self.again:
                record(self.args, self.kernel(place), [self.args.workload],
                       self.args.seed + LATER_SEEDS[1], limit=self.limit)
                shutil.copy(self.recording(place), self.again_file(place, 1))
                self.again.add(place)
        names = {f["name"] for f in self.figures(before, after, 1)[1]}
        return [f for f in self.worse(before, after) if f["name"] in names]

    def ran(self, before, after):
        """Changed functions that the workload runs, most called first."""
        old, new = (self.scratch / str(place) / "functions.json"
                    for place in (before, after))
        calls = functions_run(self.scratch / str(after), self.args.workload)
        if not calls or not old.exists() or not new.exists():
            return []
        changed = changed_functions(json.loads(old.read_text()),
                                    json.loads(new.read_text()))
        ran = calls_of(changed, calls)
        return sorted(ran, key=lambda name: (-ran[name], name))

    def text(self, finding):
        before, after = finding.before, finding.after
        where = self.name(after) if finding.exact else \
            (f"between {self.name(before)} and {self.name(after)}, "
             f"{after - before} commits")
        word = "better" if self.args.better else "worse"
        first = report.headline(finding.figures, self.ran(before, after))
        return [f"{word}: {where}", f"  {first}",
                *report.table(self.figures(before, after)[0])]
