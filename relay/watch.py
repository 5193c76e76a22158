"""One watch, kept alive: list, follow, and list again if it cannot be resumed.

Reads the official client's raw responses: a watch of typed objects takes 14 times the processor time. The parser raises
ValueError for undocumented shapes. Protocol: "Efficient detection of changes" and "Retrieving large results sets in
chunks" in Kubernetes' API concepts.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Generic, Protocol

import orjson
import structlog
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError, ReadTimeoutError

from relay.agenda import rising_pause
from relay.connection import GONE, asked_pause, in_words
from relay.objects import Bookmarked, Delivery, Failed, K, Listed, Lost, S, Saw, Ticked, Unparseable
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()
Json = Mapping[str, Any]

FIRST_PAGE, LONGEST_PAGE = 50, 500
PAGE_BYTES = 8_000_000
"""What a page should not exceed by much: an object may take 1.5 MB, and a whole page is in memory at one time."""
LINE_BYTES = 16_000_000
"""More than any event takes: a longer line is not an event."""
GARBAGE_AFTER = (50_000, 20, 100)
"""After how many new objects Python looks for cycles among them. A page of a list decodes into 100,000, without any: by
default these are looked through more than a hundred times, which is two thirds of the time that a list takes."""
CONNECT_SECONDS = 10.0
INSTALLED_EVERY = 20.0
"""Seconds between two questions whether a kind is served by now: fewer than a watch may be silent."""
LIST_SECONDS = 30.0


class Response(Protocol):
    """As urllib3.HTTPResponse, with its content not read yet."""

    @property
    def data(self) -> bytes: ...

    def read1(self, amt: int | None = None) -> bytes: ...

    def shutdown(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Source(Generic[K, S]):
    """What to watch, and how to parse it."""

    kind: K
    fetch: Callable[..., Response]
    """A list call of the official client, with its selectors."""
    read: Callable[[Mapping[str, Any]], S | None]
    identity: str
    """The field of the metadata that identifies an object."""
    called: str
    """Its name in messages: the plural, and the API if that is not Kubernetes' own."""
    is_installed: Callable[[], bool] = lambda: True
    """Whether the API server serves it; raises what `fetch` raises."""
    told_by: Callable[[Mapping[str, Any]], Hashable] | None = None
    """What of an object makes what `read` returns: where that is as before, it is not read again. None: unknown."""


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


class Watch(Generic[K, S]):
    """Follows one source until it is stopped, and puts what it delivers on a queue."""

    def __init__(
        self, source: Source[K, S], put: Callable[[Delivery[K, S]], None], patience: Patience, chance: random.Random
    ) -> None:
        self._source = source
        self._put = put
        self._patience = patience
        self._chance = chance
        self._stopping = threading.Event()
        self._response: Response | None = None
        self._failures = 0
        self._listed = False
        self._sign = patience.seconds()
        self._told: dict[str, int | None] = {}
        """A hash of what told of each object that is relevant, by identity; None: it is read each time."""

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
                self._await_installation()
                self._follow_from(self.list_all())
            except (WatchLost, ReadTimeoutError) as lost:
                self._back_off(LogEvent.WATCH_RELISTED, lost)
            except (ApiException, HTTPError, OSError, ValueError) as error:
                self._back_off(LogEvent.WATCH_FAILED, error)

    def _await_installation(self) -> None:
        """Wait for the kind to be served. One that was listed once is not asked for: its absence is a failure.

        Until then it counts as a kind without objects.
        """
        absent = False
        while not (self._stopping.is_set() or self._listed or self._source.is_installed()):
            if not absent:
                _log.info(LogEvent.KIND_NOT_INSTALLED, kind=self._source.kind)
                absent = True
            self._put(Bookmarked(self._source.kind, ""))
            self._stopping.wait(INSTALLED_EVERY)

    def list_all(self) -> str:
        """Put the whole list on the queue; return its version."""
        self._told.clear()
        try:
            seen, version = self._pages(FIRST_PAGE)
        except WatchLost:  # the list was fetched too slowly: in one page it cannot expire
            seen, version = self._pages(None)
        self._put(Listed(self._source.kind, seen, version))
        self._listed = True
        self._sign = self._patience.seconds()
        return version

    def _pages(self, limit: int | None) -> tuple[list[S | Unparseable[K]], str]:
        """Return a list, fetched in pages of one version, or whole without a limit; WatchLost if the rest expired."""
        seen: list[S | Unparseable[K]] = []
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
            for events in self.events(version):
                version = self.pass_on(events, version)
            if version == before:
                self._pause(self._patience.first_pause)

    def events(self, version: str) -> Iterator[Iterable[Event]]:
        """Yield the events of a watch as they arrive; each is read once it is asked for."""
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
                yield map(event_of, lines.of(chunk))
                self._require_sign_of_life()
        self._require_sign_of_life()

    def _require_sign_of_life(self) -> None:
        """Raise WatchLost if the server keeps sending something, but never an event or a bookmark."""
        silent = self._patience.seconds() - self._sign
        if silent > self._patience.silence:
            raise WatchLost(f"no event for {silent:.0f} s")

    def pass_on(self, events: Iterable[Event], version: str) -> str:
        """Put events after a version on the queue, and how far they go; return that. WatchLost if they go back."""
        put = version
        for event in events:
            if is_back(event.version, version):
                raise WatchLost(f"the watch went back from {version} to {event.version}")
            version = event.version
            if (event.type != "MODIFIED" or self._tells_more(event.object)) and self._put_event(event):
                put = version
        if put != version:
            self._sign, self._failures = self._patience.seconds(), 0
            self._put(Bookmarked(self._source.kind, version))
        return version

    def _tells_more(self, obj: Json) -> bool:
        """Return whether more is to be read of an object than when it was read last."""
        known = self._told.get(identity_of(obj, self._source.identity))
        return known is None or known != self._hash(obj)

    def _hash(self, obj: Json) -> int | None:
        """Return a hash of what tells of an object; None if that is not known."""
        if self._source.told_by is None:
            return None
        try:
            return hash(self._source.told_by(obj))
        except (KeyError, TypeError, AttributeError):
            return None

    def _put_event(self, event: Event) -> bool:
        """Put one event on the queue, and return whether it says anything; an ERROR raises WatchLost or ApiException.

        An object says nothing that was not relevant before and is not now: of thousands of these nothing is kept.
        """
        kind, obj = self._source.kind, event.object
        if event.type == "ERROR":
            if obj.get("code") == GONE:
                raise WatchLost(obj.get("message"))
            raise ApiException(status=obj.get("code"), reason=obj.get("message"))
        self._sign, self._failures = self._patience.seconds(), 0
        if event.type == "BOOKMARK":
            self._put(Bookmarked(kind, event.version))
            return True
        identity = identity_of(obj, self._source.identity)
        known = identity in self._told
        seen = self._read(obj)
        if event.type != "DELETED" and seen is not None:
            self._put(Saw(kind, seen, event.version))
            return True
        self._told.pop(identity, None)
        if known:
            last = None if isinstance(seen, Unparseable) else seen
            self._put(Lost(kind, identity, event.version, last, deleted=event.type == "DELETED"))
        return known

    def _read(self, obj: Mapping[str, Any]) -> S | Unparseable[K] | None:
        """Return what the relay keeps of an object; Unparseable if it cannot be parsed, None if it is not relevant."""
        identity = identity_of(obj, self._source.identity)
        try:
            seen = self._source.read(obj)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self._told[identity] = None
            return Unparseable(self._source.kind, identity, in_words(error, ""))
        if seen is not None:
            self._told[identity] = self._hash(obj)
        return seen

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


@dataclass(frozen=True, slots=True)
class Page:
    """Some objects of a list, the version of the whole list, and the token of the next page."""

    items: Sequence[Json]
    version: str
    rest: str | None


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a watch. The object of an ERROR is a metav1.Status, which has no version."""

    type: str
    object: Json
    version: str


class Lines:
    """Splits a stream into lines; the last one may be incomplete."""

    def __init__(self) -> None:
        self._begun = b""

    def of(self, chunk: bytes) -> list[bytes]:
        """Return the lines that a chunk completes."""
        *lines, self._begun = (self._begun + chunk).split(b"\n")
        if len(self._begun) > LINE_BYTES:
            raise ValueError(f"a line of more than {LINE_BYTES} bytes is not an event of a watch")
        return lines


def page_of(data: bytes) -> Page:
    """Return the page that a List holds; null for its items means none."""
    try:
        listed = orjson.loads(data)
        metadata = listed["metadata"]
        items = listed["items"] or ()
        return Page(items, _text(metadata["resourceVersion"]), metadata.get("continue") or None)
    except (KeyError, TypeError, AttributeError) as wrong:
        raise ValueError(f"the answer is not a List: {wrong!r}") from wrong


def event_of(line: bytes) -> Event:
    try:
        event = orjson.loads(line)
        obj: dict[str, Any] = {**event["object"]}
        version = "" if event["type"] == "ERROR" else _text(obj["metadata"]["resourceVersion"])
        return Event(_text(event["type"]), obj, version)
    except (KeyError, TypeError) as wrong:
        raise ValueError(f"the line is not an event of a watch: {wrong!r}") from wrong


def identity_of(obj: Json, field: str) -> str:
    """Return the field of an object's metadata that identifies it; the API server itself writes it."""
    try:
        return _text(obj["metadata"][field])
    except (KeyError, TypeError) as wrong:
        raise ValueError(f"an object without metadata.{field}") from wrong


def is_back(version: str, before: str) -> bool:
    """Return whether a resourceVersion is older than another: versions rise in the order of changes."""
    return version.isdigit() and before.isdigit() and int(version) < int(before)


def next_limit(limit: int, took: int) -> int:
    """Return how many objects to request after a page of so many bytes: so few that the next page fits."""
    if took > PAGE_BYTES:
        return max(1, limit * PAGE_BYTES // took)
    return min(LONGEST_PAGE, limit * 2) if 2 * took <= PAGE_BYTES else limit


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value
