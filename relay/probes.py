"""Kubernetes' probes over HTTP: /readyz and /livez, answered with 200, or with 503 and what is wrong."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

AT_ONCE = 16
"""The most connections that are served; probes need one at a time."""
SECONDS = 5.0
"""The timeout for a request to be read and answered."""

Faults = Callable[[], Sequence[str]]
"""Returns what is wrong, one line each; nothing if all is well."""


class Probes(ThreadingHTTPServer):
    """Listens on `address`; `run` answers until `stop`. The constructor raises OSError if the address is taken."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], answers: Mapping[str, Faults]) -> None:
        self.answers = answers
        self._room = threading.BoundedSemaphore(AT_ONCE)
        super().__init__(address, _Handler)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def run(self) -> None:
        self.serve_forever(poll_interval=0.5)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection, or close it if there are too many: any pod in the cluster may open some."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def stop(self) -> None:
        """End `run`, and close the port. Must be called from another thread than `run`."""
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Probes
    timeout = SECONDS

    def setup(self) -> None:
        super().setup()
        self._end = threading.Timer(SECONDS, self._close_connection)
        self._end.daemon = True
        self._end.start()

    def finish(self) -> None:
        self._end.cancel()
        super().finish()

    def _close_connection(self) -> None:
        """Close a connection that takes too long, such as one that sends its request byte by byte."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_GET(self) -> None:
        faults = self.server.answers.get(self.path)
        if faults is None:
            self._answer(HTTPStatus.NOT_FOUND, ["no such probe"])
            return
        found = faults()
        self._answer(HTTPStatus.SERVICE_UNAVAILABLE if found else HTTPStatus.OK, found or ["ok"])

    def _answer(self, status: HTTPStatus, lines: Sequence[str]) -> None:
        body = "".join(f"{line}\n" for line in lines).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - http.server calls it so
        """Keep probes out of the log: they come every few seconds."""
