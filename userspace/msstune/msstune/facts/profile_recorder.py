# SPDX-License-Identifier: GPL-2.0-only
"""Records a profile with pathprof while facts are collected, in sampling bursts that
stay within a budget of CPU time.  The host is not changed: pathprof attaches probes
and removes them."""
from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

#: % of the CPU time that sampling may take.  The first burst begins at once, and is
#: half a percent of 2 s of one CPU: where there is no other, a second one would be.
BUDGET, BUDGET_ONE_CPU = 0.4, 0.25
#: Seconds until the probes are attached, and until they are gone.
PATIENCE = 120
#: The other facts are of this network namespace, so the paths are, too.
NAMESPACE = "/proc/self/ns/net"


class Recorder:
    """One recording.  Only root can make it, with pathprof on PATH; "missing" has
    the reason if there is none."""

    def __init__(self, budget: float | None = None) -> None:
        self.missing = ""
        if budget is None:
            budget = BUDGET if (os.cpu_count() or 1) > 1 else BUDGET_ONE_CPU
        self._budget = budget
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="msstune-")
        self._said = Path(self._folder.name, "said")
        self._output = Path(self._folder.name, "profile")

    def start(self) -> None:
        """Returns when the probes are attached."""
        tool = shutil.which("pathprof")
        if not tool or os.geteuid():
            self.missing = "needs root" if tool else "no pathprof on PATH"
            return
        if not shutil.which("setpriv"):
            self.missing = "no setpriv on PATH"
            return
        ready, theirs = os.pipe()
        with open(self._said, "w", encoding="utf-8") as said:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "INT", tool, "record", "--budget",
                 str(self._budget), "--netns", NAMESPACE, "--ready-fd", str(theirs),
                 "-o", str(self._output)],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                pass_fds=[theirs])
        os.close(theirs)
        try:
            if not select.select([ready], [], [], PATIENCE)[0]:
                self.missing = f"pathprof was not ready after {PATIENCE} s"
            elif not os.read(ready, 1):
                self._process.wait()
                self.missing = self._why()
        finally:
            os.close(ready)

    def _why(self) -> str:
        said = self._said.read_text("utf-8", "replace").strip().splitlines()
        return said[-1] if said else "pathprof record failed"

    @property
    def pid(self) -> int:
        """Of pathprof; 0: it does not run."""
        return self._process.pid if self._process else 0

    def stop(self) -> Path | None:
        """The profile.  Waits until the probes are gone, whatever happens."""
        process = self._process
        if process:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()      # the kernel then removes them
                self.missing = self.missing or f"pathprof did not end in {PATIENCE} s"
            if process.wait() and not self.missing:
                self.missing = self._why()
        return self._output if process and not self.missing else None

    def close(self) -> None:
        if self._process and self._process.poll() is None:
            self.stop()
        self._folder.cleanup()
