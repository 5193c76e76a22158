"""Kubernetes' probes over HTTP: /readyz and /livez, answered 200, or 503 with what is not well."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

AT_ONCE = 16
"""Connections; probes need one at a time."""
SECONDS = 5.0
"""For a request to come in, and its answer to go out."""

Faults = Callable[[], Sequence[str]]
"""What is not well, a line each; nothing: all is."""


class Probes(ThreadingHTTPServer):
    """Listens on `address`; `run` answers until `stop`. An OSError where the address is taken."""

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
        """Serve a connection, or close it where there are too many: whoever is in the cluster may open some."""
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
        """End `run`, and close the port. From another thread than the one that runs."""
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Probes
    timeout = SECONDS

    def setup(self) -> None:
        super().setup()
        self._end = threading.Timer(SECONDS, self._cut)
        self._end.daemon = True
        self._end.start()

    def finish(self) -> None:
        self._end.cancel()
        super().finish()

    def _cut(self) -> None:
        """End a connection that sends its request byte by byte."""
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
