# SPDX-License-Identifier: GPL-2.0-only
"""msstune watch: an exporter for an existing Prometheus."""
from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import diagnose as cmd_diagnose, metrics_server, options
from .. import units
from ..causes import diagnose
from ..facts import collect
from ..errors import NotSupported, TuneError


def add(commands: options.Commands) -> None:
    cmd = commands.add_parser(
        "watch", help="export metrics for Prometheus",
        description="Diagnose in rounds, and serve the results as metrics over "
        "HTTP.  Changes nothing.")
    cmd.add_argument("--interval", type=units.seconds, default=10.0,
                     metavar="TIME", help="length of a round, default 10s")
    cmd.add_argument("--profile", type=Path, metavar="FILE",
                     help="a pathprof profile, read anew in each round")
    cmd.add_argument("--listen", default="127.0.0.1", metavar="ADDRESS",
                     help="address to listen on, default 127.0.0.1")
    cmd.add_argument("--port", type=units.whole(1, 65535), default=9725,
                     metavar="N", help="TCP port, default 9725")
    cmd.add_argument("--json", action="store_true",
                     help="also print the diagnosis of each round on a line")
    cmd.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    try:
        import prometheus_client
        from prometheus_client import CollectorRegistry, exposition

        from . import openmetrics
    except ImportError as error:
        raise NotSupported("watch needs python3-prometheus-client; install it"
                           ) from error
    totals = openmetrics.Totals()
    lock = threading.Lock()
    latest: list[Any] = []

    class Collector:
        """The metrics of the last complete round."""

        def collect(self) -> Iterable[Any]:
            with lock:
                return list(latest)

    registry = CollectorRegistry()
    collector: Any = Collector()    # older versions want their own base class
    registry.register(collector)

    def render(accept: str) -> tuple[bytes, str]:
        encoder, content_type = exposition.choose_encoder(accept)
        return encoder(registry), content_type

    try:
        server = metrics_server.Server(args.listen, args.port, render)
    except OSError as error:
        raise TuneError(f"{args.listen}:{args.port}: {error.strerror}"
                        ) from error
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://{args.listen}:{args.port}/metrics", flush=True,
          file=sys.stderr if args.json else sys.stdout)
    while True:
        try:
            start = time.monotonic()
            facts = collect.collect(args.interval, profile_file=args.profile)
            totals.add(facts)
            diagnoses = diagnose.diagnose(facts)
            if args.json:
                print(json.dumps(cmd_diagnose.document(facts, diagnoses)), flush=True)
            found = list(openmetrics.metrics(facts, diagnoses, totals))
            took = time.monotonic() - start - args.interval
            found.append(prometheus_client.core.GaugeMetricFamily(
                "msstune_round_overhead_seconds", "Time a round took beyond its "
                "interval.", value=took))
            with lock:
                latest[:] = found
        except (TuneError, OSError) as error:
            # Keep serving: the next round may succeed.
            print(f"msstune: {error}", file=sys.stderr, flush=True)
            time.sleep(args.interval)
        except KeyboardInterrupt:
            return 0
