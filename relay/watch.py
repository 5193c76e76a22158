"""One watch, kept alive for ever: list, follow, list again where the thread is lost.

Reads the official client's responses raw: a watch of typed objects takes 14 times the processor time.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import structlog
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError, ReadTimeoutError

from relay.objects import JobSet, Kind, Seen, Unparseable
from relay.refusals import GONE, asked_pause, in_words, rising_pause
from relay.stream import FIRST_PAGE, Event, Lines, event_of, identity_of, is_back, next_limit, page_of
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

CONNECT_SECONDS = 10.0
LIST_SECONDS = 30.0


class Response(Protocol):
    """As urllib3.HTTPResponse, its content not read yet."""

    @property
    def data(self) -> bytes: ...

    def read1(self, amt: int | None = None) -> bytes: ...

    def shutdown(self) -> None: ...

    def close(self) -> None: ...


class FactSink(Protocol):
    """Where what is seen goes; called from the watch's own thread."""

    def listed(self, kind: Kind, seen: Sequence[Seen], version: str) -> None: ...

    def saw(self, kind: Kind, seen: Seen, version: str) -> None: ...

    def lost(self, kind: Kind, identity: str, version: str, last: JobSet | None) -> None: ...

    def bookmarked(self, kind: Kind, version: str) -> None: ...

    def ticked(self, kind: Kind) -> None:
        """Take in that the watch is at work, though nothing was heard."""

    def failed(self, kind: Kind, why: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Source:
    """What to watch, and how to read it."""

    kind: Kind
    fetch: Callable[..., Response]
    """A list call of the official client, its selectors already given."""
    read: Callable[[Mapping[str, Any]], Seen | None]
    identity: str
    """The field of the metadata that tells objects apart."""
    called: str
    """What it is for people: its plural, and its API where that is not Kubernetes' own."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds without any sign after which a watch is given up, by a clock that is never set; the first pause."""

    silence: float
    seconds: Callable[[], float]
    first_pause: float = 1.0


class WatchLost(Exception):
    """The server cannot go on from where the watch was."""


class Watch:
    """Follows one source until it is stopped."""

    def __init__(self, source: Source, sink: FactSink, patience: Patience, chance: random.Random) -> None:
        self._source = source
        self._sink = sink
        self._patience = patience
        self._chance = chance
        self._stopping = threading.Event()
        self._response: Response | None = None
        self._failures = 0
        self._sign = patience.seconds()

    def stop(self) -> None:
        """End `run` soon, though it waits for the server to say something. From any thread."""
        self._stopping.set()
        response = self._response
        if response is not None:
            try:
                response.shutdown()
            except (OSError, ValueError, RuntimeError) as error:  # it ended by itself at this very moment
                _log.info(LogEvent.WATCH_CLOSED, kind=self._source.kind, error=str(error))

    def run(self) -> None:
        """List and follow; after what went wrong list again, with rising pauses until a watch gives signs again."""
        while not self._stopping.is_set():
            try:
                self._follow_from(self._list())
            except (WatchLost, ReadTimeoutError) as lost:
                self._come_to_rest(LogEvent.WATCH_RELISTED, lost)
            except (ApiException, HTTPError, OSError, ValueError) as error:
                self._come_to_rest(LogEvent.WATCH_FAILED, error)

    def _list(self) -> str:
        """Take in the whole list; give its version."""
        try:
            seen, version = self._pages(FIRST_PAGE)
        except WatchLost:  # the rest of a list that took its time: as a whole it cannot expire
            seen, version = self._pages(None)
        self._sink.listed(self._source.kind, seen, version)
        self._sign = self._patience.seconds()
        return version

    def _pages(self, limit: int | None) -> tuple[list[Seen], str]:
        """Fetch a list by pages of one version; without a limit at one go. WatchLost where the rest is gone."""
        seen: list[Seen] = []
        token: str | None = None
        while True:
            self._sink.ticked(self._source.kind)
            data = self._fetch_page(limit, token)
            page = page_of(data)
            seen += filter(None, map(self._read, page.items))
            token = page.rest
            if not token:
                return seen, page.version
            limit = limit and next_limit(limit, len(data))

    def _fetch_page(self, limit: int | None, token: str | None) -> bytes:
        wanted = {"limit": limit} if limit else {}
        place = {"_continue": token} if token else {}
        patience = (CONNECT_SECONDS, LIST_SECONDS)
        try:
            return self._source.fetch(**wanted, **place, _request_timeout=patience, _preload_content=False).data
        except ApiException as error:
            if token and error.status == GONE:
                raise WatchLost("the rest of the list expired") from error
            raise

    def _follow_from(self, version: str) -> None:
        """Watch, and watch again from there when the server ends it, as it does every few minutes."""
        while not self._stopping.is_set():
            before = version
            for event in self._events(version):
                if is_back(event.version, version):
                    raise WatchLost(f"the watch went back from {version} to {event.version}")
                self._take(event)
                version = event.version
            if version == before:
                self._rest(self._patience.first_pause)

    def _events(self, version: str) -> Iterator[Event]:
        with closing(
            self._source.fetch(
                watch=True,
                resource_version=version,
                allow_watch_bookmarks=True,
                timeout_seconds=self._chance.randint(300, 600),
                _request_timeout=(CONNECT_SECONDS, self._patience.silence),
                _preload_content=False,
            )
        ) as response:
            self._response = response
            lines = Lines()
            while not self._stopping.is_set() and (chunk := response.read1(1 << 16)):
                yield from map(event_of, lines.of(chunk))
                self._require_a_sign()
        self._require_a_sign()

    def _require_a_sign(self) -> None:
        """Give up what says something, again and again, and never an event."""
        silent = self._patience.seconds() - self._sign
        if silent > self._patience.silence:
            raise WatchLost(f"no event for {silent:.0f} s")

    def _take(self, event: Event) -> None:
        """Hand on one event."""
        kind, obj = self._source.kind, event.object
        if event.type == "ERROR":
            if obj.get("code") == GONE:
                raise WatchLost(obj.get("message"))
            raise ApiException(status=obj.get("code"), reason=obj.get("message"))
        self._sign, self._failures = self._patience.seconds(), 0
        if event.type == "BOOKMARK":
            self._sink.bookmarked(kind, event.version)
            return
        seen = self._read(obj)
        if event.type == "DELETED" or seen is None:
            last = seen if isinstance(seen, JobSet) else None
            self._sink.lost(kind, identity_of(obj, self._source.identity), event.version, last)
        else:
            self._sink.saw(kind, seen, event.version)

    def _read(self, obj: Mapping[str, Any]) -> Seen | None:
        """Read an object; one that cannot be understood is there all the same."""
        try:
            return self._source.read(obj)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return Unparseable(self._source.kind, identity_of(obj, self._source.identity), in_words(error, ""))

    def _come_to_rest(self, what: str, error: Exception) -> None:
        """Say what went wrong, and pause: longer with each failure, and as long as the server asks."""
        if self._stopping.is_set():
            return
        self._failures += 1
        why = in_words(error, self._source.called)
        _log.warning(what, kind=self._source.kind, error=why)
        self._sink.failed(self._source.kind, why)
        self._rest(rising_pause(self._patience.first_pause, self._failures - 1), asked_pause(error))

    def _rest(self, at_most: float, at_least: float = 0.0) -> None:
        """Pause for a random time, so that many do not come back at once; less when it is time to stop."""
        self._stopping.wait(at_least + at_most * self._chance.uniform(0.5, 1))
