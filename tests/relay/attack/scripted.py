"""An API server of nodes in memory: its first answers are told by the test, and nothing waits for a clock."""

import random
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from kubernetes.client.exceptions import ApiException

from relay import translate
from relay.objects import Kind, Known
from relay.watch import Patience, Source, Watch
from tests.relay.objects import Json, node
from tests.relay.recorder import Recorder
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.waiting import beside

VERSION = "7"


def line(type_: str, obj: Json) -> str:
    return orjson.dumps({"type": type_, "object": {**obj, "kind": "Node"}}).decode() + "\n"


BOOKMARK = line("BOOKMARK", {"metadata": {"resourceVersion": VERSION}})


class Stream:
    """A watch that says something, and then nothing until it is ended."""

    data = b""

    def __init__(self, text: str) -> None:
        self._said = text.encode()
        self._over = threading.Event()

    def read1(self, amt: int | None = None) -> bytes:
        assert amt
        if not self._said:
            assert self._over.wait(PATIENCE_SECONDS)
        said, self._said = self._said, b""
        return said

    def shutdown(self) -> None:
        self._over.set()

    def close(self) -> None:
        self._over.set()


@dataclass(frozen=True, slots=True)
class Answer:
    """A list."""

    data: bytes

    def read1(self, amt: int | None = None) -> bytes:
        raise AssertionError(f"a list is not read by {amt} bytes")

    def shutdown(self) -> None:
        """Shut nothing down."""

    def close(self) -> None:
        """Close nothing."""


class Pauses(threading.Event):
    """Whether a watch shall end, as an event; nobody waits for it, but how long they would have is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.seconds.append(timeout)
        return self.is_set()


@dataclass
class Scripted:
    """Nodes, and what the next lists and watches are answered with instead: an error, or a text."""

    nodes: list[Json] = field(default_factory=list)
    lists: deque[Exception | str] = field(default_factory=deque)
    watches: deque[Exception | str] = field(default_factory=deque)
    pauses: Pauses = field(default_factory=Pauses)

    def fetch(self, *, watch: bool = False, **_: Any) -> Stream | Answer:
        told = self.watches if watch else self.lists
        first = told.popleft() if told else self._usual(watch=watch)
        if isinstance(first, Exception):
            raise first
        return Stream(first) if watch else Answer(first.encode())

    def _usual(self, *, watch: bool) -> str:
        listed = {"kind": "NodeList", "metadata": {"resourceVersion": VERSION}, "items": self.nodes}
        return BOOKMARK if watch else orjson.dumps(listed).decode()

    @contextmanager
    def watching(self, first_pause: float = 0.05) -> Iterator[Recorder]:
        """Run the watch in a thread, which pauses for no time."""
        recorder = Recorder()
        source: Source[Kind, Known] = Source(Kind.HOSTS, self.fetch, translate.host, "name", "nodes")
        patience = Patience(PATIENCE_SECONDS, lambda: 0.0, first_pause)
        one = Watch(source, recorder.put, patience, random.Random(3))
        one._stopping = self.pauses
        with beside(one.run, one.stop):
            yield recorder


def refusal(code: int, message: str) -> ApiException:
    """Return what the official client raises for an answer of this code."""
    refused = ApiException(status=code, reason="")
    refused.body = orjson.dumps({"kind": "Status", "status": "Failure", "code": code, "message": message}).decode()
    return refused


def nodes(*numbers: int) -> list[Json]:
    return [node(number) for number in numbers]
