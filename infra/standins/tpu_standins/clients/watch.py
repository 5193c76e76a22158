"""One kind of objects, followed in a thread of its own: listed, watched, and listed again where a watch is lost."""

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from typing import Protocol

import orjson

from tpu_standins.clients.api import Api, Stream
from tpu_standins.clients.errors import ApiError, Unreachable, told
from tpu_standins.clients.kinds import Kind
from tpu_standins.clients.objects import Object

_log = logging.getLogger(__name__)

_SECONDS = 50
"""After which the server ends a watch in order; it is then resumed. Kubernetes' bookmark comes shortly before."""
_SILENCE_SECONDS = 70.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds
_CHUNK = 65536
_GONE = 410


class Sink(Protocol):
    """Takes what is seen of a kind; called from the watch's thread."""

    def listed(self, kind: Kind, items: list[Object], version: int) -> None: ...

    def saw(self, kind: Kind, change: str, obj: Object) -> None: ...

    def failed(self, kind: Kind, error: Exception) -> None: ...


class Watch:
    """Follows a kind from `start` until `stop`. `selection` has selectors, by their names in URLs."""

    def __init__(self, api: Api, kind: Kind, sink: Sink, selection: Mapping[str, str]) -> None:
        self._api = api
        self._kind = kind
        self._sink = sink
        self._selection = dict(selection)
        self._stopping = threading.Event()
        self._stream: Stream | None = None
        self._pause = _FIRST_PAUSE
        self._thread = threading.Thread(target=self._run, name=f"watch of {kind.plural}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End soon, even while waiting for the server: see `ended`."""
        self._stopping.set()
        stream = self._stream
        if stream is not None:
            with suppress(OSError, ValueError, RuntimeError):  # it may be ending by itself
                stream.shutdown()

    def ended(self, within: float) -> bool:
        """Wait until it has ended, at most for so many seconds; return whether it has, and needs no connection."""
        self._thread.join(within)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow()
            except Exception as error:  # noqa: BLE001 - without its watch a controller sees nothing ever after
                self._back_off(error)

    def _follow(self) -> None:
        """List, and watch from there until the watch cannot be resumed."""
        found = self._api.list(self._kind.plural, **self._selection)
        version = found["metadata"]["resourceVersion"]
        self._sink.listed(self._kind, found.get("items") or [], int(version))
        while not self._stopping.is_set():
            version = self._watch(version)

    def _watch(self, version: str) -> str:
        """Pass on events until the server ends the watch; return the version from which to resume it."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(_SECONDS),
        }
        stream = self._api.stream(self._kind.path(), query | self._selection, _SILENCE_SECONDS)
        with closing(stream):
            self._stream = stream
            if self._stopping.is_set():  # before there was a stream to shut down
                return version
            for event in _events(stream):
                if event["type"] == "ERROR":
                    raise told(event["object"])
                self._sink.saw(self._kind, event["type"], event["object"])
                version = event["object"]["metadata"]["resourceVersion"]
                self._pause = _FIRST_PAUSE
        self._stream = None
        return version

    def _back_off(self, error: Exception) -> None:
        if self._stopping.is_set():
            return
        self._sink.failed(self._kind, error)
        if isinstance(error, ApiError) and error.code == _GONE:
            _log.info("listing %s again: %s", self._kind.plural, error)
            return
        if self._pause == _FIRST_PAUSE or not isinstance(error, Unreachable):
            _log.warning("cannot follow %s: %s: %s", self._kind.plural, type(error).__name__, error)
        self._stopping.wait(self._pause)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)


def _events(stream: Stream) -> Iterator[Object]:
    begun = b""
    while chunk := stream.read1(_CHUNK):
        *lines, begun = (begun + chunk).split(b"\n")
        yield from map(orjson.loads, filter(None, lines))
