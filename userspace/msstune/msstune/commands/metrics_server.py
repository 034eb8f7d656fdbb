# SPDX-License-Identifier: GPL-2.0-only
"""A small HTTP server for metrics, with a bound on workers and on the time of a
request, so that clients which send nothing cost neither threads nor memory.
"""
from __future__ import annotations

import http.server
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

WORKERS = 8
LIMIT = 5.0     # seconds from accept to the end of an answer

#: Accept header to body and content type.
Render = Callable[[str], tuple[bytes, str]]


class Handler(http.server.BaseHTTPRequestHandler):
    """GET /metrics, one request for each connection."""

    server: Server
    server_version = "msstune"
    sys_version = ""
    timeout = LIMIT     # of a single read or write

    def do_GET(self) -> None:
        if self.path.partition("?")[0] not in ("/", "/metrics"):
            self.send_error(404)
            return
        body, content_type = self.server.render(self.headers.get("Accept", ""))
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing for each request."""


class Server(http.server.HTTPServer):
    """A new connection has priority over the oldest one when all workers are busy:
    a real request takes milliseconds."""

    request_queue_size = 64
    allow_reuse_address = True

    def __init__(self, address: str, port: int, render: Render) -> None:
        if ":" in address:
            self.address_family = socket.AF_INET6
        super().__init__((address, port), Handler)
        self.render = render
        self._free = threading.Semaphore(WORKERS)
        self._lock = threading.Lock()
        self._active: dict[socket.socket, float] = {}   # by age, oldest first

    def server_bind(self) -> None:
        """Without the look-up of our own name, which may take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        name, self.server_port = self.socket.getsockname()[:2]
        self.server_name = str(name)

    def process_request(self, request: Any, client_address: Any) -> None:
        while not self._free.acquire(timeout=0.1):
            self._end(oldest=True)
        with self._lock:
            self._active[request] = time.monotonic()
        threading.Thread(target=self._work, args=(request, client_address),
                         daemon=True).start()

    def _work(self, request: socket.socket, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except OSError:
            pass    # the client left, or was too slow
        finally:
            with self._lock:
                del self._active[request]
            self.shutdown_request(request)
            self._free.release()

    def service_actions(self) -> None:
        self._end()

    def _end(self, oldest: bool = False) -> None:
        """Shut down connections that are over their time, or the oldest one."""
        now = time.monotonic()
        with self._lock:
            for request, begun in list(self._active.items()):
                if oldest or now - begun > LIMIT:
                    try:
                        request.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass    # closed already
                oldest = False
