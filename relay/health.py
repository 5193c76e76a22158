"""Whether the relay is healthy, by what its parts say of themselves, and Kubernetes' probes that ask for it over HTTP.

/readyz and /livez are answered with 200, or with 503 and what is wrong. Every entry is replaced as a whole, so
that parts set theirs from any thread without a lock, and a probe never waits for one.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from relay.objects import Kind

PROBES_AT_ONCE = 16
"""The most connections that are served; probes need one at a time."""
PROBE_SECONDS = 5.0
"""The timeout for a request to be read and answered."""

Faults = Callable[[], Sequence[str]]
"""Returns what is wrong, one line each; nothing if all is well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long each condition may last before a probe fails."""

    silence: timedelta = timedelta(seconds=90)
    """A watch without a sign of life."""
    publishing: timedelta = timedelta(minutes=2)
    """Facts that Pub/Sub does not accept."""
    tick: timedelta = timedelta(minutes=10)
    """A thread without a tick: more than all timeouts of one round of its loop together."""


class Health:
    """Records signs of life and failures; `now` is a monotonic clock."""

    def __init__(self, now: Callable[[], datetime], limits: Limits = Limits()) -> None:
        self._now = now
        self._limits = limits
        self._ticks: dict[str, datetime] = {}
        self._signs: dict[Kind, datetime] = {}
        self._failures: dict[Kind, str] = {}
        self._unpublished: tuple[datetime, str] | None = None

    def ticked(self, part: str) -> None:
        """Record that the loop of a thread runs."""
        self._ticks[part] = self._now()

    def bookmarked(self, kind: Kind) -> None:
        """Record a sign of life of a watch whose list is in place."""
        self._signs[kind] = self._now()
        self._failures.pop(kind, None)
        self.ticked(kind)

    def failed(self, kind: Kind, why: str) -> None:
        """Record that a list or a watch failed."""
        self._failures[kind] = why
        self.ticked(kind)

    def published(self) -> None:
        self._unpublished = None

    def not_published(self, why: str) -> None:
        """Record that facts could not be published; the time counts from the first failure in a row."""
        since, _ = self._unpublished or (self._now(), why)
        self._unpublished = (since, why)

    def unready(self) -> list[str]:
        """Return, one line each, what keeps the relay from publishing the state of the cluster."""
        now = self._now()
        lines = [line for kind in Kind if (line := self._of_watch(kind, now))]
        if self._unpublished is not None and now - self._unpublished[0] > self._limits.publishing:
            since, why = self._unpublished
            lines.append(f"publishing: has failed for {_seconds(now - since)}: {why}")
        return lines

    def hung(self) -> list[str]:
        """Return, one line each, the threads whose loops do not run any more."""
        now, ticks = self._now(), dict(self._ticks)
        return [
            f"{part}: no tick for {_seconds(now - ticked)}"
            for part, ticked in sorted(ticks.items())
            if now - ticked > self._limits.tick
        ]

    def _of_watch(self, kind: Kind, now: datetime) -> str | None:
        sign, failure = self._signs.get(kind), self._failures.get(kind)
        detail = f": {failure}" if failure else ""
        if sign is None:
            return f"{kind}: no list yet{detail}"
        if now - sign > self._limits.silence:
            return f"{kind}: no sign of life for {_seconds(now - sign)}{detail}"
        return None


def _seconds(time: timedelta) -> str:
    return f"{time.total_seconds():.0f} s"


class Probes(ThreadingHTTPServer):
    """Listens on `address`; `run` answers until `stop`. The constructor raises OSError if the address is taken."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], answers: Mapping[str, Faults]) -> None:
        self.answers = answers
        self._room = threading.BoundedSemaphore(PROBES_AT_ONCE)
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
    timeout = PROBE_SECONDS

    def setup(self) -> None:
        super().setup()
        self._end = threading.Timer(PROBE_SECONDS, self._close_connection)
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
