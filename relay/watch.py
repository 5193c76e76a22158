"""One watch, kept alive: list, follow, and list again if it cannot be resumed.

Reads the official client's raw responses: a watch of typed objects takes 14 times the processor time.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import structlog
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError, ReadTimeoutError

from relay.objects import Bookmarked, Failed, JobSet, Kind, Listed, Lost, Saw, Seen, Ticked, Unparseable, WatchEvent
from relay.refusals import GONE, asked_pause, in_words, rising_pause
from relay.stream import FIRST_PAGE, Event, Lines, event_of, identity_of, is_back, next_limit, page_of
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

CONNECT_SECONDS = 10.0
LIST_SECONDS = 30.0


class Response(Protocol):
    """As urllib3.HTTPResponse, with its content not read yet."""

    @property
    def data(self) -> bytes: ...

    def read1(self, amt: int | None = None) -> bytes: ...

    def shutdown(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Source:
    """What to watch, and how to parse it."""

    kind: Kind
    fetch: Callable[..., Response]
    """A list call of the official client, with its selectors."""
    read: Callable[[Mapping[str, Any]], Seen | None]
    identity: str
    """The field of the metadata that identifies an object."""
    called: str
    """Its name in messages: the plural, and the API if that is not Kubernetes' own."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a watch may be silent, and how long it pauses; in seconds."""

    silence: float
    """Without a sign of life, after which a watch is given up."""
    seconds: Callable[[], float]
    """A monotonic clock."""
    first_pause: float = 1.0


class WatchLost(Exception):
    """The watch cannot be resumed where it was; the list must be fetched again."""


class Watch:
    """Follows one source until it is stopped, and puts what it delivers on a queue."""

    def __init__(
        self, source: Source, put: Callable[[WatchEvent], None], patience: Patience, chance: random.Random
    ) -> None:
        self._source = source
        self._put = put
        self._patience = patience
        self._chance = chance
        self._stopping = threading.Event()
        self._response: Response | None = None
        self._failures = 0
        self._sign = patience.seconds()

    def stop(self) -> None:
        """End `run` soon, even while it waits for the server. May be called from any thread."""
        self._stopping.set()
        response = self._response
        if response is not None:
            try:
                response.shutdown()
            except (OSError, ValueError, RuntimeError) as error:  # it ended by itself at this moment
                _log.info(LogEvent.WATCH_CLOSED, kind=self._source.kind, error=str(error))

    def run(self) -> None:
        """List and follow; after a failure list again, with rising pauses until a watch shows a sign of life."""
        while not self._stopping.is_set():
            try:
                self._follow_from(self._list())
            except (WatchLost, ReadTimeoutError) as lost:
                self._back_off(LogEvent.WATCH_RELISTED, lost)
            except (ApiException, HTTPError, OSError, ValueError) as error:
                self._back_off(LogEvent.WATCH_FAILED, error)

    def _list(self) -> str:
        """Put the whole list on the queue; return its version."""
        try:
            seen, version = self._pages(FIRST_PAGE)
        except WatchLost:  # the list was fetched too slowly: in one page it cannot expire
            seen, version = self._pages(None)
        self._put(Listed(self._source.kind, seen, version))
        self._sign = self._patience.seconds()
        return version

    def _pages(self, limit: int | None) -> tuple[list[Seen], str]:
        """Return a list, fetched in pages of one version, or whole without a limit; WatchLost if the rest expired."""
        seen: list[Seen] = []
        token: str | None = None
        while True:
            self._put(Ticked(self._source.kind))
            data = self._fetch_page(limit, token)
            page = page_of(data)
            seen += filter(None, map(self._read, page.items))
            token = page.rest
            if not token:
                return seen, page.version
            limit = limit and next_limit(limit, len(data))

    def _fetch_page(self, limit: int | None, token: str | None) -> bytes:
        size = {"limit": limit} if limit else {}
        place = {"_continue": token} if token else {}
        patience = (CONNECT_SECONDS, LIST_SECONDS)
        try:
            return self._source.fetch(**size, **place, _request_timeout=patience, _preload_content=False).data
        except ApiException as error:
            if token and error.status == GONE:
                raise WatchLost("the rest of the list expired") from error
            raise

    def _follow_from(self, version: str) -> None:
        """Watch from a version on, and resume when the server ends the watch, as it does every few minutes."""
        while not self._stopping.is_set():
            before = version
            for event in self._events(version):
                if is_back(event.version, version):
                    raise WatchLost(f"the watch went back from {version} to {event.version}")
                self._pass_on(event)
                version = event.version
            if version == before:
                self._pause(self._patience.first_pause)

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
                self._require_sign_of_life()
        self._require_sign_of_life()

    def _require_sign_of_life(self) -> None:
        """Raise WatchLost if the server keeps sending something, but never an event or a bookmark."""
        silent = self._patience.seconds() - self._sign
        if silent > self._patience.silence:
            raise WatchLost(f"no event for {silent:.0f} s")

    def _pass_on(self, event: Event) -> None:
        """Put one event on the queue; raise WatchLost or ApiException for an ERROR."""
        kind, obj = self._source.kind, event.object
        if event.type == "ERROR":
            if obj.get("code") == GONE:
                raise WatchLost(obj.get("message"))
            raise ApiException(status=obj.get("code"), reason=obj.get("message"))
        self._sign, self._failures = self._patience.seconds(), 0
        if event.type == "BOOKMARK":
            self._put(Bookmarked(kind, event.version))
            return
        seen = self._read(obj)
        if event.type == "DELETED" or seen is None:
            last = seen if isinstance(seen, JobSet) else None
            self._put(Lost(kind, identity_of(obj, self._source.identity), event.version, last))
        else:
            self._put(Saw(kind, seen, event.version))

    def _read(self, obj: Mapping[str, Any]) -> Seen | None:
        """Return what the relay keeps of an object; Unparseable if it cannot be parsed, None if it is not relevant."""
        try:
            return self._source.read(obj)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return Unparseable(self._source.kind, identity_of(obj, self._source.identity), in_words(error, ""))

    def _back_off(self, event: LogEvent, error: Exception) -> None:
        """Log what went wrong, and pause: longer with each failure, and as long as the server asks."""
        if self._stopping.is_set():
            return
        self._failures += 1
        why = in_words(error, self._source.called)
        _log.warning(event, kind=self._source.kind, error=why)
        self._put(Failed(self._source.kind, why))
        self._pause(rising_pause(self._patience.first_pause, self._failures - 1), asked_pause(error))

    def _pause(self, at_most: float, at_least: float = 0.0) -> None:
        """Pause for a random time, so that many relays do not return at once; end it early on `stop`."""
        self._stopping.wait(at_least + at_most * self._chance.uniform(0.5, 1))
