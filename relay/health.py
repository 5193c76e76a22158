"""Whether the relay is healthy, by what its parts say of themselves, and where Kubernetes' probes ask for it.

"readyz" and "livez" are answered with "ok", or with what is wrong. Every entry is replaced as a whole, so that parts
set theirs from any thread without a lock, and a probe never waits for one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from socketserver import StreamRequestHandler, UnixStreamServer

from relay.objects import Kind

LONGEST_QUESTION = 64
PROBE_SECONDS = 1.0
"""How long a connection may take to ask; others wait meanwhile."""

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


class Probes(UnixStreamServer):
    """Listens at an abstract Unix socket; `run` answers until `stop`. The constructor raises OSError if it is taken.

    Such a socket is no file, and belongs to the pod's network namespace: only the pod's own containers can connect.
    """

    def __init__(self, name: str, answers: Mapping[str, Faults]) -> None:
        self.answers = answers
        super().__init__(f"\0{name}", _Handler)

    def run(self) -> None:
        self.serve_forever(poll_interval=0.5)

    def stop(self) -> None:
        """End `run`, and close the socket. Must be called from another thread than `run`."""
        self.shutdown()
        self.server_close()


class _Handler(StreamRequestHandler):
    """Reads the name of a probe, one line, and answers with lines of text."""

    server: Probes
    timeout = PROBE_SECONDS

    def handle(self) -> None:
        with suppress(OSError):
            asked = self.rfile.readline(LONGEST_QUESTION).decode(errors="replace").strip()
            faults = self.server.answers.get(asked)
            lines = [f'there is no probe "{asked}"'] if faults is None else faults()
            self.wfile.write("".join(f"{line}\n" for line in lines or ["ok"]).encode())
