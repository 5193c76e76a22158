"""One watch, kept alive for ever: list, follow, list again where the thread is lost.

Reads the official client's responses raw: a watch of typed objects takes 14 times the processor time.
Protocol: "Efficient detection of changes" in Kubernetes' API concepts.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import orjson
import structlog
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError, ReadTimeoutError

from relay.seen import JobSet, Kind, Seen

_log = structlog.get_logger()

PAGE = 500
CONNECT_SECONDS = 10.0
LIST_SECONDS = 30.0
LONGEST_PAUSE = 30.0
GONE = 410


class Response(Protocol):
    """As urllib3.HTTPResponse, its content not read yet."""

    @property
    def data(self) -> bytes: ...

    def read1(self, amt: int | None = None) -> bytes: ...

    def shutdown(self) -> None: ...

    def close(self) -> None: ...


class Sink(Protocol):
    """Where what is seen goes; called from the watch's own thread."""

    def listed(self, kind: Kind, seen: Sequence[Seen], version: str) -> None: ...

    def saw(self, kind: Kind, seen: Seen, version: str) -> None: ...

    def lost(self, kind: Kind, identity: str, version: str, last: JobSet | None) -> None: ...

    def heard(self, kind: Kind, version: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Source:
    """What to watch, and how to read it."""

    kind: Kind
    fetch: Callable[..., Response]
    """A list call of the official client, its selectors already given."""
    read: Callable[[Mapping[str, Any]], Seen | None]
    identity: str
    """The field of the metadata that tells objects apart."""


class _Lost(Exception):
    """The server cannot go on from where the watch was."""


class Watch:
    """Follows one source until it is stopped."""

    def __init__(self, source: Source, sink: Sink, silence: float, chance: random.Random) -> None:
        self._source = source
        self._sink = sink
        self._silence = silence
        self._chance = chance
        self._stopping = threading.Event()
        self._response: Response | None = None

    def stop(self) -> None:
        """End `run` soon, though it waits for the server to say something. From any thread."""
        self._stopping.set()
        response = self._response
        if response is not None:
            try:
                response.shutdown()
            except (OSError, ValueError, RuntimeError) as error:  # it ended by itself at this very moment
                _log.info("watch-was-over", kind=self._source.kind, why=str(error))

    def run(self) -> None:
        """List and follow; errors are waited out with rising pauses."""
        failures = 0
        while not self._stopping.is_set():
            try:
                version = self._list()
                failures = 0
                self._follow_from(version)
            except (_Lost, ReadTimeoutError) as lost:
                self._note("watch-lists-again", lost)
                self._rest(1.0)
            except (ApiException, HTTPError, OSError, ValueError) as error:
                failures += 1
                self._note("watch-failed", error)
                self._rest(min(LONGEST_PAUSE, 0.5 * 2**failures))

    def _list(self) -> str:
        seen: list[Seen] = []
        token: str | None = None
        while True:
            limits = {"limit": PAGE, "_request_timeout": (CONNECT_SECONDS, LIST_SECONDS)}
            response = self._source.fetch(**limits, **({"_continue": token} if token else {}), _preload_content=False)
            page = orjson.loads(response.data)
            seen += filter(None, map(self._read, page["items"]))
            token = page["metadata"].get("continue")
            if not token:
                version: str = page["metadata"]["resourceVersion"]
                self._sink.listed(self._source.kind, seen, version)
                return version

    def _follow_from(self, version: str) -> None:
        """Watch, and watch again from there when the server ends it, as it does every few minutes."""
        while not self._stopping.is_set():
            before = version
            for event in self._events(version):
                version = self._take(event)
            if version == before:
                self._rest(1.0)

    def _events(self, version: str) -> Iterator[Mapping[str, Any]]:
        with closing(
            self._source.fetch(
                watch=True,
                resource_version=version,
                allow_watch_bookmarks=True,
                timeout_seconds=self._chance.randint(300, 600),
                _request_timeout=(CONNECT_SECONDS, self._silence),
                _preload_content=False,
            )
        ) as response:
            self._response = response
            rest = b""
            while not self._stopping.is_set() and (chunk := response.read1(1 << 16)):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from map(orjson.loads, lines)

    def _take(self, event: Mapping[str, Any]) -> str:
        """Hand on one event; give the resourceVersion to go on from."""
        kind, obj = self._source.kind, event["object"]
        if event["type"] == "ERROR":
            if obj.get("code") == GONE:
                raise _Lost(obj.get("message"))
            raise ApiException(status=obj.get("code"), reason=obj.get("message"))
        version: str = obj["metadata"]["resourceVersion"]
        if event["type"] == "BOOKMARK":
            self._sink.heard(kind, version)
            return version
        seen = self._read(obj)
        if event["type"] == "DELETED" or seen is None:
            last = seen if isinstance(seen, JobSet) else None
            self._sink.lost(kind, obj["metadata"][self._source.identity], version, last)
        else:
            self._sink.saw(kind, seen, version)
        return version

    def _read(self, obj: Mapping[str, Any]) -> Seen | None:
        try:
            return self._source.read(obj)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            name = obj.get("metadata", {}).get("name")
            _log.warning("object-not-understood", kind=self._source.kind, name=name, why=repr(error))
            return None

    def _rest(self, at_most: float) -> None:
        """Pause for a random time, so that many do not come back at once; less when it is time to stop."""
        self._stopping.wait(at_most * self._chance.uniform(0.5, 1))

    def _note(self, what: str, error: Exception) -> None:
        if not self._stopping.is_set():
            _log.warning(what, kind=self._source.kind, why=f"{type(error).__name__}: {error}")
