# SPDX-License-Identifier: GPL-2.0-only
"""Faults that only the paths of packets show, and a setting cures: msstune auto, as
root runs it, finds and removes each.  (GRO that is off is none of them in a guest: it
costs there what it saves.)  Prints "ok NAME" or "not ok NAME" for each
case, and remarks.

usage: auto_paths.py list|run
"""
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import path_faults  # noqa: E402
import wide_faults as wide  # noqa: E402
from faults import put, sh, tell  # noqa: E402
from mssab.netns import inside  # noqa: E402
from msstune import throughput  # noqa: E402
from path_faults import A, B  # noqa: E402

#: Name of a case of path_faults.py: the command that shows the setting, and what it
#: says once the fault is gone.
SHOWN = {
    "checksum in software": ("ethtool -k va", "tx-checksumming: on"),
}
ARGUMENTS = ("auto --yes --pairs 8 --block 2s --settle 500ms --rounds 1 "
             "--allow-disruptive --no-report").split()


def rate(end):
    with inside(end):
        return throughput.watch(lambda t: t >= 3.0, set())["bytes_per_s"]


def run(name, topology, load, at=A, **_):
    command, wanted = SHOWN[name]
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        stack.callback(sh, "for ns in $A $B; do ip netns del $ns || true; done")
        topology()
        for end in (A, B):
            put(end, {"net.ipv4.tcp_no_metrics_save": 1})
        stack.enter_context(wide.programs(*load()))
        time.sleep(path_faults.WARM_UP)
        before = rate(at)
        said = subprocess.run(
            ["ip", "netns", "exec", at, "msstune", "--state", f"{folder}/state",
             *ARGUMENTS, "-o", f"{folder}/results"],
            capture_output=True, text=True, check=False)
        after = rate(at)
        shown = subprocess.run(["ip", "netns", "exec", at, *command.split()], text=True,
                               capture_output=True, check=True).stdout
        right = not said.returncode and wanted in shown and after > 1.1 * before
        tell(*said.stdout.splitlines(), *said.stderr.splitlines(),
             f"{name}: status {said.returncode}, {before / 1e6:.2f} MB/s, "
             f"{after / 1e6:.2f} after auto", f"{'ok' if right else 'not ok'} {name}")


def main():
    if sys.argv[1] == "list":
        return print("\n".join(SHOWN))
    for name in SHOWN:
        try:
            run(name, **path_faults.CASES[name])
        except (OSError, subprocess.CalledProcessError, ValueError) as error:
            tell(repr(error), f"not ok {name}")


if __name__ == "__main__":
    os.environ["PATH"] = f"{path_faults.TOP}/build/bin:{os.environ['PATH']}"
    main()
