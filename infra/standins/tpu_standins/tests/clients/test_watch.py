"""A watch goes on through all that servers do: ends, errors, expired versions, and answers that are none."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from tpu_standins.clients.api import Api
from tpu_standins.clients.errors import ApiError, Unreachable
from tpu_standins.clients.kinds import KINDS, Kind
from tpu_standins.clients.memory import WentBack
from tpu_standins.clients.objects import Object
from tpu_standins.clients.watch import Watch
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.waiting import until

PODS = KINDS["pods"]


def line(change: str, version: int) -> bytes:
    return orjson.dumps({"type": change, "object": {"metadata": {"resourceVersion": str(version)}}}) + b"\n"


ERROR = orjson.dumps({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}) + b"\n"


@dataclass
class FakeStream:
    """Content that comes in these parts; an exception is raised in its place. It then ends."""

    parts: deque[bytes | Exception]
    status: int = 200

    def read1(self, _: int | None = None) -> bytes:
        part = self.parts.popleft() if self.parts else b""
        if isinstance(part, Exception):
            raise part
        return part

    def shutdown(self) -> None:
        self.parts.clear()

    def close(self) -> None:
        self.parts.clear()


@dataclass
class FakeApi:
    """Lists of rising versions, and these streams, one after the other; then streams that do not begin.

    Once it is `over` these begin, too, and have this content.
    """

    streams: deque[list[bytes | Exception] | Exception]
    lists: deque[Exception] = field(default_factory=deque)
    asked: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    begun: list[bytes | Exception] = field(default_factory=list)
    version: int = 0

    def list(self, plural: str, _: str | None = None, **query: str) -> Object:
        self.asked.append(f"list {plural} {query.get('labelSelector', '')}".strip())
        if self.lists:
            raise self.lists.popleft()
        self.version += 100
        return {"metadata": {"resourceVersion": str(self.version)}, "items": None}

    def stream(self, _: str, query: dict[str, str], __: float) -> FakeStream:
        self.asked.append(f"watch {query['resourceVersion']}")
        if not self.streams:
            self.over.wait()
            return FakeStream(deque(self.begun))
        parts = self.streams.popleft()
        if isinstance(parts, Exception):
            raise parts
        return FakeStream(deque(parts))


@dataclass
class Sink:
    """Notes what it is told; raises WentBack for a version of 1."""

    seen: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def listed(self, kind: Kind, _: list[Object], version: int) -> None:
        self.seen.append(f"{kind.plural} listed {version}")

    def saw(self, _: Kind, change: str, obj: Object) -> None:
        version = obj["metadata"]["resourceVersion"]
        if version == "1":
            raise WentBack("pods went back")
        self.seen.append(f"{change} {version}")

    def failed(self, _: Kind, error: Exception) -> None:
        self.failures.append(type(error).__name__)


@contextmanager
def watched(
    *streams: list[bytes | Exception] | Exception, lists: tuple[Exception, ...] = (), **selection: str
) -> Iterator[tuple[FakeApi, Sink]]:
    """Yield what was asked and seen when all streams are over."""
    api, sink = FakeApi(deque(streams), deque(lists)), Sink()
    watch = Watch(cast("Any", api), PODS, sink, selection)
    watch.start()
    try:
        expected = len(streams) + 1
        until(lambda: sum(each.startswith("watch") for each in api.asked) == expected, f"{expected} watches")
        yield api, sink
    finally:
        watch.stop()
        api.over.set()


def test_a_watch_that_ends_in_order_is_resumed_where_it_was() -> None:
    with watched([line("ADDED", 101), line("BOOKMARK", 107)], []) as (api, sink):
        assert api.asked == ["list pods", "watch 100", "watch 107", "watch 107"]
        assert sink.seen == ["pods listed 100", "ADDED 101", "BOOKMARK 107"]
        assert sink.failures == []


def test_a_watch_that_is_stopped_while_it_begins_ends_and_reads_nothing() -> None:
    api, sink = FakeApi(deque(), begun=[line("ADDED", 101)]), Sink()
    watch = Watch(cast("Any", api), PODS, sink, {})
    watch.start()
    until(lambda: "watch 100" in api.asked, "a watch")
    watch.stop()
    assert not watch.ended(within=0)
    api.over.set()
    assert watch.ended(within=PATIENCE_SECONDS)
    assert sink.seen == ["pods listed 100"]


def test_events_are_read_whatever_the_parts_in_which_they_come() -> None:
    both = line("ADDED", 101) + line("MODIFIED", 102)
    with watched([both[:10], both[10:90], both[90:]]) as (_, sink):
        assert sink.seen[1:] == ["ADDED 101", "MODIFIED 102"]


def test_an_expired_version_is_listed_again_at_once() -> None:
    for expired in ([ERROR], ApiError(410, "Expired", "too old")):
        with watched(cast("Any", expired)) as (api, sink):
            assert api.asked == ["list pods", "watch 100", "list pods", "watch 200"]
            assert sink.failures == ["ApiError"]


def test_after_any_failure_it_is_listed_again() -> None:
    broken: list[list[bytes | Exception] | Exception] = [
        [line("ADDED", 101), ProtocolError("cut")],
        [ReadTimeoutError(cast("Any", None), "", "silent")],
        [b"no json\n"],
        [b'{"type": "ADDED"}\n'],
        Unreachable("refused"),
        [line("ADDED", 1)],
    ]
    for parts in broken:
        with watched(parts) as (api, sink):
            assert api.asked[-2:] == ["list pods", "watch 200"]
            assert len(sink.failures) == 1


def test_a_list_that_fails_is_asked_for_again() -> None:
    with watched(lists=(Unreachable("refused"), ApiError(404, "", "no such kind"))) as (api, sink):
        assert api.asked == ["list pods"] * 3 + ["watch 100"]
        assert sink.failures == ["Unreachable", "ApiError"]


def test_only_what_is_selected_is_asked_for() -> None:
    with watched(labelSelector="a=b") as (api, _):
        assert api.asked[0] == "list pods a=b"


def test_the_fake_has_the_calls_of_the_api() -> None:
    assert all(hasattr(Api, name) for name in ("list", "stream"))
