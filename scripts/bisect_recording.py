# SPDX-License-Identifier: GPL-2.0-only
"""What the steps of bisect-step share: a kernel that is built or taken from a
package, recordings of a workload on it in a guest, baselines, and the comparison
of recordings by `pathprof check`."""
import hashlib
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import bisect_report as report

TOP = Path(__file__).resolve().parent.parent
PATHPROF = TOP / "build/bin/pathprof"
TCPLOAD = TOP / "build/bin/tcpload"
WORKLOADS = TOP / "tests/bench/ladder/workloads.py"

EXIT_GOOD, EXIT_WORSE, EXIT_CANNOT_TELL = 0, 1, 125
EXIT_STOP = 128     # ends a `git bisect run`
BASES = 5
#: From the seeds of the first recording to those of the others.
LATER_SEEDS = (0, 250, 125)
#: A change of so many times its bound may fall on either side of it.
NARROW = (0.7, 1.3)
#: The kernel's table of calls shows so many characters of a name.
NAME_SHOWN = 30
#: Replacements of instructions and trampolines of static calls: parts of the
#: functions of their file.
PART = re.compile(r"\.|__SCT__")
#: A recording may take so many times as long as the longest of the baseline,
#: which may have been made on an idle machine, and so many seconds for booting.
LIMIT_TIMES, LIMIT_BOOT = 10, 120


class Stop(Exception):
    """Ends the step with one sentence and an exit status."""

    def __init__(self, sentence, status=EXIT_STOP):
        super().__init__(sentence)
        self.status = status


def say(sentence):
    print(f"bisect-step: {sentence}", file=sys.stderr, flush=True)


def status_of(status):
    """125 is of this kernel; any other failure would affect all kernels."""
    return EXIT_CANNOT_TELL if status == EXIT_CANNOT_TELL else EXIT_STOP


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def is_packaged(name):
    """Is that a series, a release of Debian's, or the image of one?"""
    return bool(re.search(r"^\d+\.\d+|-amd64$", name)) \
        and not Path(name).is_dir()


def run(words, **options):
    """Exit status and output; what was started ends before this does."""
    with subprocess.Popen(words, text=True, **options) as child:
        try:
            output = child.communicate()[0]
        except BaseException:
            child.terminate()
            child.wait()
            raise
    return child.returncode, output


# --- Workloads of the user ---------------------------------------------------

def own_name(command):
    """A name for the workload: that of its files."""
    return "own-" + hashlib.sha256(command.encode()).hexdigest()[:8]


def own_digest(command):
    """Of the command and the files that it names, such as a script."""
    whole = hashlib.sha256(command.encode())
    try:
        words = shlex.split(command)
    except ValueError:      # the shell will report it
        words = command.split()
    for word in words:
        path = Path(word.rstrip(";&|)"))
        if path.is_file():
            whole.update(path.read_bytes())
    return whole.hexdigest()[:16]


# --- Kernels and recordings ---------------------------------------------------

class Kernel:
    """What is judged: an image, and for a tree what it was built from."""

    def __init__(self, name, scratch, config=None):
        self.name = name
        self.options = ["--config", config] if config else []
        self.tree = Path(name).resolve() if Path(name).is_dir() else None
        self.scratch = scratch
        self.image = name
        if not self.tree and Path(name).exists():
            self.image = str(Path(name).resolve())

    def build(self):
        if not self.tree:
            return
        status, output = run(
            [TOP / "scripts/tree-kernel", *self.options, "--copy",
             self.scratch, self.tree], stdout=subprocess.PIPE)
        if status:
            raise Stop(f"{self.name} was not built", status_of(status))
        self.image = output.splitlines()[-1]

    def part(self, name):
        """The text of a file that was made with the kernel, or ''."""
        path = self.scratch / name
        return path.read_text() if path.exists() else ""

    def commit(self):
        if not self.tree:
            return ""
        done = subprocess.run(["git", "-C", self.tree, "rev-parse", "HEAD"],
                              capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def in_bisection(self):
        """Is `git bisect` under way in the tree?"""
        if not self.tree:
            return False
        done = subprocess.run(["git", "-C", self.tree, "rev-parse",
                               "--git-path", "BISECT_LOG"],
                              capture_output=True, text=True, check=False)
        return not done.returncode and \
            (self.tree / done.stdout.strip()).exists()


def record(args, kernel, workloads, seed, *options, limit=None):
    """Seconds that it took; the files are in kernel.scratch."""
    words = ["-k", kernel.image, "-s", str(seed), "-d", str(kernel.scratch)]
    if limit:
        words += ["-t", str(limit)]
    if args.accept:
        words += ["--accept", args.accept]
    start = time.monotonic()
    named = [f"{name}={args.load}" if args.load and name == args.workload
             else name for name in workloads]
    status, _ = run([TOP / "scripts/workload", *words, *options, *named],
                    cwd=TOP)
    if status:
        raise Stop(f"{' '.join(workloads)} was not recorded on {kernel.name}",
                   status_of(status))
    return time.monotonic() - start


# --- The baseline -------------------------------------------------------------

def conditions(args, kernel):
    """What a recording must share with its baseline."""
    return {"workload": args.workload,
            "load": own_digest(args.load) if args.load else "",
            "kind": "packaged" if is_packaged(kernel.name) else "tree",
            "pathprof": digest(PATHPROF),
            "tcpload": digest(TCPLOAD) if TCPLOAD.exists() else "",
            "made-from": kernel.part("made-from")}


WORDS = {"workload": "another workload",
         "load": "other files of the workload", "pathprof": "another pathprof",
         "tcpload": "another tcpload",
         "made-from": "another scripts/bisect.config or compiler"}


class Baseline:
    """Five profiles of a good kernel, and a description of how they were made:
    WORKLOAD-base-N.json and WORKLOAD.baseline in a folder."""

    def __init__(self, folder, workload):
        self.folder = folder
        self.workload = workload
        self.file = folder / f"{workload}.baseline"
        self.functions = folder / f"{workload}.functions.json"

    def profiles(self):
        return sorted(self.folder.glob(f"{self.workload}-base-?.json"))

    def read(self):
        try:
            self.about = json.loads(self.file.read_text())
            return self.about["conditions"], self.about["longest_s"]
        except (OSError, ValueError, KeyError):
            return None

    def make(self, args, kernel, every):
        kernel.build()
        for old in self.folder.glob(f"{self.workload}[-.]*"):
            old.unlink()
        longest = 0
        for number in range(1, BASES + 1):
            longest = max(longest, record(args, kernel, [self.workload],
                                          500 + 10 * number))
            shutil.move(kernel.scratch / f"{self.workload}.json",
                        self.folder / f"{self.workload}-base-{number}.json")
            say(f"baseline of {self.workload}, {number} of {BASES}")
        coverage = {}
        if kernel.part("functions.json"):
            shutil.copy(kernel.scratch / "functions.json", self.functions)
            record(args, kernel, every, 1, "-r", "0", "--functions")
            coverage = {name: functions_run(kernel.scratch, name)
                        for name in every}
        about = {
            "format": "bisect-baseline", "version": 1,
            "conditions": conditions(args, kernel),
            "tree": str(kernel.tree or ""), "commit": kernel.commit(),
            "release": release_of(self.profiles()[0]),
            "config": hashlib.sha256(
                kernel.part("config").encode()).hexdigest()[:16],
            "longest_s": round(longest, 1), "functions_run": coverage}
        self.file.write_text(json.dumps(about, indent=1) + "\n")

    def check(self, args, kernel):
        """Stop if the kernel's recordings would not compare with it."""
        mine = conditions(args, kernel)
        theirs, _ = self.read()
        if mine["kind"] != theirs["kind"]:
            kind = {"tree": "built from a tree", "packaged": "packaged"}
            # A packaged kernel's configuration is larger, and costs more.
            raise Stop(f"the baseline's kernel, {self.about['release']}, is "
                       f"{kind[theirs['kind']]}, and {kernel.name} is "
                       f"{kind[mine['kind']]}: they do not compare")
        for key, words in WORDS.items():
            # Not known of an image, nor before a tree is built.
            if key == "made-from" and not (mine[key] and theirs.get(key)):
                continue
            if mine[key] != theirs.get(key, ""):
                raise Stop(f"the baseline in {self.folder} was recorded with "
                           f"{words}; record it again with --good")


def release_of(profile):
    return json.loads(profile.read_text())["kernel"]["release"]


def limit_of(base):
    """Seconds that a recording may take."""
    return round(LIMIT_TIMES * base.about["longest_s"]) + LIMIT_BOOT


def default_folder(kernel):
    if not kernel.tree:
        return TOP / "build/bisect/packaged"
    name = hashlib.sha256(str(kernel.tree).encode()).hexdigest()[:12]
    return TOP / f"build/bisect/tree-{kernel.tree.name}-{name}"


# --- Functions ----------------------------------------------------------------

def functions_run(folder, workload):
    """{function: calls} of a shortened run; {} if they were not counted."""
    path = folder / f"{workload}.functions"
    return json.loads(path.read_text()) if path.exists() else {}


def calls_of(functions, calls):
    """{function: calls} of those of the functions that ran.  One that shares
    the part of its name that the kernel shows counts as run with the other."""
    counts = {name: calls.get(name) or calls.get(name[:NAME_SHOWN], 0)
              for name in functions}
    return {name: count for name, count in counts.items() if count}


def changed_functions(old, new):
    """{name: can its calls be counted?} of the functions whose code is new or
    different."""
    changed = [(*key.split(), not code.endswith(" untraced"))
               for key, code in new.items()
               if old.get(key, "").split()[:1] != code.split()[:1]]
    files = {file for file, name, _ in changed if not PART.match(name)}
    found = {}
    for file, name, counted in sorted(changed):
        if not PART.match(name) or file not in files:
            found[name] = found.get(name, True) and counted
    return dict(sorted(found.items()))


# --- Comparison ---------------------------------------------------------------

class Comparison:
    """One recording against others, by `pathprof check`."""

    def __init__(self, args, profiles, new):
        # --raw: of two kernels of one kind pathprof itself costs the same, and
        # times as measured are steadier.
        words = [PATHPROF, "check", "--json", "--raw", "--tolerance",
                 args.tolerance]
        if args.metric:
            words += ["--metric", args.metric]
        self.status, self.text = run([*words, *profiles, new],
                                     stdout=subprocess.PIPE)
        if self.status not in (EXIT_GOOD, EXIT_WORSE, EXIT_CANNOT_TELL):
            raise Stop("pathprof check failed")     # it has printed why
        self.figures = json.loads(self.text)["figures"] if self.text else []
        of_interest = report.improved if args.better else self.is_worse
        self.found = [f for f in self.figures if of_interest(f)]
        if self.status != EXIT_CANNOT_TELL:
            self.status = EXIT_WORSE if self.found else EXIT_GOOD

    @staticmethod
    def is_worse(figure):
        return figure["worse"]

    def narrow(self, other):
        """Is what one of the two found near its bound in both?"""
        names = {f["name"] for f in self.found + other.found}
        return all(NARROW[0] < abs(f["change"]) / f["bound"] < NARROW[1]
                   for f in self.figures + other.figures if f["name"] in names)
