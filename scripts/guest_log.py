# SPDX-License-Identifier: GPL-2.0-only
"""Which lines of a guest's kernel log report a fault.  Reads the log that
scripts/guest keeps; decides nothing else about the guest."""
import re

SPLAT = re.compile(
    r"\bBUG\b|WARNING:|Oops|general protection|Kernel panic|Call Trace:"
    r"|refcount_t:|stack-protector|soft lockup|hard LOCKUP"
    r"|INFO: task .* blocked|rcu: INFO|unregister_netdevice: waiting"
    r"|possible recursive locking|possible circular locking"
    r"|suspicious RCU usage|memory leak|UBSAN:|KASAN:|DEBUG_LOCKS_WARN")
# Lines that match SPLAT although the code under test is not the cause.
#  - emulated CPUs on a loaded host miss the clock watchdog's interval
#  - virtme-ng's init logs the programs that this system lacks
#  - the debug kernel logs that its leak detector started
HARMLESS = re.compile(r"clocksource:|\] virtme-ng-init: |memory leak detector init")
# Tests make allocations fail on the debug kernel, which then logs a stack trace.
DEBUG = "-mssfrac-debug"
NO_MEMORY = re.compile(r"vmalloc error|page allocation failure")


def without_accepted(lines, accept):
    """The lines of a kernel log, without those that match @accept and the whole
    reports ("cut here" to "end trace") that hold such a line."""
    kept, report = [], None
    for line in lines:
        if "[ cut here ]" in line:
            report = []
        (kept if report is None else report).append(line)
        if report is not None and "end trace" in line:
            if not any(accept.search(one) for one in report):
                kept += report
            report = None
    return [line for line in kept + (report or []) if not accept.search(line)]


def splats(share, accept=None):
    """Lines of the kernel log that report a fault; None if there is no log."""
    try:
        log = (share / "dmesg").read_text(errors="replace")
    except OSError:
        return None
    if "Linux version" not in log:
        return None
    found, spared = [], False
    lines = log.splitlines()
    if accept:
        lines = without_accepted(lines, accept)
    for line in lines:
        if DEBUG in log and NO_MEMORY.search(line):
            spared = True
        elif spared and "Call Trace:" in line:
            spared = False
        elif SPLAT.search(line) and not HARMLESS.search(line):
            found.append(line)
    return found


def excerpt(share, bad):
    """The kernel log from the first of the @bad lines on, and the later ones."""
    lines = (share / "dmesg").read_text(errors="replace").splitlines()
    first = lines.index(bad[0])
    shown = lines[first:first + 60]
    return shown + [line for line in bad if line not in shown][:20]
