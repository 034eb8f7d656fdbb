# SPDX-License-Identifier: GPL-2.0-only
"""msstune verify: keep a change only if an experiment favours it."""
from __future__ import annotations

import argparse
import json
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from . import options
from .. import output_file, units
from ..facts import profile_costs
from ..transaction import switchback
from ..errors import UsageError
from ..transaction.request import AT_ONCE, Request, Staging, changes_of
from ..transaction.switchback import Protocol
from ..transaction.transaction import Change
from ..transaction.verify import Outcome, Verifier


def add(commands: options.Commands) -> None:
    cmd = commands.add_parser(
        "verify", help="try settings by experiment; keep those that help",
        description="Show what would be tried.  With --yes, try each setting in "
        "randomised blocks with and without it, and keep it if mssab's verdict "
        "is to keep it.")
    options.add_settings(cmd)
    options.add_permissions(cmd)
    options.add_experiments(cmd)
    options.add_staging(cmd)
    options.add_json(cmd)
    cmd.set_defaults(run=run)


def _terminate(*_: object) -> NoReturn:
    """Treat SIGTERM as Ctrl-C: leave through the with-blocks, which undo."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def verifier(request: Request, protocol: Protocol, output: Path,
             staging: Staging = AT_ONCE, changes: Sequence[Change] = ()) -> Verifier:
    """A session; whatever is missing is reported before anything is changed."""
    signal.signal(signal.SIGTERM, _terminate)
    switchback.check_programs()
    manager = request.manager()
    manager.say = lambda text: None
    protocol = replace(protocol, primary=_primary(protocol))
    session = Verifier(manager, protocol, output.resolve(), request.tell,
                       staging.canary, staging.resume)
    session.begin(changes)
    return session


def _primary(protocol: Protocol) -> str:
    """The metric that decides; a load's own is found by one run of it."""
    if not protocol.load:
        if protocol.lower:
            raise UsageError("--lower needs a --load that prints a number")
        return protocol.primary
    if profile_costs.known(protocol.primary):
        return protocol.primary
    measured = switchback.run_load(protocol.load, 1, set())
    return "value" if "value" in measured else "time"


def document(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {"format": "msstune-verify", "version": 1,
            "changes": [o.document() for o in outcomes]}


def verify(request: Request, protocol: Protocol, output: Path,
           staging: Staging, together: bool) -> int:
    """@together: one experiment with all settings, not one for each."""
    # A setting that the session kept is in force, and still part of it.
    changes = changes_of(request.settings, request.root) if staging.resume \
        else request.changes()
    request.permit(changes)
    if not changes or not request.yes:
        if request.json:
            print(json.dumps(document([])))
        if not changes:
            return 0
        if not protocol.load:
            seconds = protocol.duration(True) + protocol.duration(False) * (
                len(changes) - 1)
            request.tell(f"up to {units.duration(seconds)} of blocks")
        request.tell("nothing was changed; --yes does it")
        return 0
    session = verifier(request, protocol, output, staging, changes)
    outcomes = [session.staged(changes)] if together else session.each(changes)
    text = json.dumps(document(outcomes))
    output_file.store(session.directory / "verify.json", text)
    if request.json:
        print(text)
    else:
        kept = [o for o in outcomes if o.number]
        print(f"kept: {', '.join(o.name for o in kept) or 'nothing'}; experiments "
              f"in {output}")
    return 0


def run(args: argparse.Namespace) -> int:
    return verify(options.request(args), options.protocol(args), args.output,
                  options.staging(args), together=False)
