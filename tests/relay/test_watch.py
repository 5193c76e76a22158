"""One watch against the local API server, whose buttons imitate failures of networks and servers."""

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from relay import cluster, watch
from relay.connection import connect
from relay.objects import Kind, Known, Unparseable
from relay.watch import Patience, Source, Watch
from tests.local.served import Served, connected, serving
from tests.relay.objects import Json, node
from tests.relay.recorder import Recorder
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.testing.waiting import beside, until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


SOON = 5.0
"""Seconds of silence after which a watch is given up: rarely before it was silenced, which changes nothing."""


@dataclass
class Watched:
    served: Served
    source: Source[Kind, Known]
    core: Any
    recorder: Recorder = field(default_factory=Recorder)

    def create(self, *numbers: int) -> None:
        for number in numbers:
            made: Json = node(number)
            del made["metadata"]["resourceVersion"], made["metadata"]["uid"]
            self.core.create_node(client.V1Node.model_validate(made))

    def delete(self, number: int) -> None:
        self.core.delete_node(name(number))

    @contextmanager
    def watching(self, silence: float = PATIENCE_SECONDS, first_pause: float = 0.2) -> Iterator[Recorder]:
        """Run the watch in a thread."""
        one = Watch(self.source, self.recorder.put, Patience(silence, time.monotonic, first_pause), random.Random(3))
        with beside(one.run, one.stop):
            yield self.recorder


@contextmanager
def observing(served: Served) -> Iterator[Watched]:
    with connected(served) as api:
        source = next(source for source in cluster.sources(api) if source.kind is Kind.HOSTS)
        yield Watched(served, source, client.CoreV1Api(api))


@pytest.fixture
def watched(api_server: Served) -> Iterator[Watched]:
    with observing(api_server) as one:
        yield one
        api_server.proxy.clear()
        one.core.delete_collection_node()


def name(number: int) -> str:
    return str(node(number)["metadata"]["name"])


def names(*numbers: int) -> list[str]:
    return sorted(name(number) for number in numbers)


def test_a_list_is_read_page_by_page(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "FIRST_PAGE", 2)
    watched.create(0, 1, 2, 3, 4)
    with watched.watching() as recorder:
        recorder.until(lambda: bool(recorder.lists))
    assert recorder.lists[0] == names(0, 1, 2, 3, 4)


def test_objects_created_and_deleted_after_the_list_are_seen(watched: Watched) -> None:
    watched.create(0)
    with watched.watching() as recorder:
        recorder.until(lambda: bool(recorder.lists))
        watched.create(1)
        recorder.until(lambda: sorted(recorder.present) == names(0, 1))
        watched.delete(0)
        recorder.until(lambda: sorted(recorder.present) == names(1))
    assert recorder.lists == [names(0)]


def test_an_object_that_loses_our_label_is_lost(watched: Watched) -> None:
    watched.create(0, 1)
    with watched.watching() as recorder:
        recorder.until(lambda: len(recorder.present) == 2)
        watched.core.patch_node(name(0), {"metadata": {"labels": {"google.com/tpu-slice-id": None}}})
        recorder.until(lambda: sorted(recorder.present) == names(1))


def test_bookmarks_are_signs_of_life(watched: Watched) -> None:
    with watched.watching() as recorder:
        recorder.until(lambda: recorder.signs >= 3)


def test_a_watch_that_the_server_ends_is_resumed_where_it_was(watched: Watched) -> None:
    watched.create(0)
    with watched.watching() as recorder:
        recorder.until(lambda: recorder.signs >= 1)
        until(lambda: watched.served.press("close-watches") == {"watches": 1}, "a watch to close")
        watched.create(1)
        recorder.until(lambda: sorted(recorder.present) == names(0, 1))
    assert len(recorder.lists) == 1


def test_a_watch_that_falls_silent_is_closed_and_relisted(watched: Watched) -> None:
    watched.create(0, 1)
    with watched.watching(silence=SOON) as recorder:
        recorder.until(lambda: recorder.signs >= 1)
        until(lambda: watched.served.press("silence-watches") == {"watches": 1}, "a watch to silence")
        watched.delete(0)
        recorder.until(lambda: len(recorder.lists) >= 2 and sorted(recorder.present) == names(1))
    assert recorder.lists[0] == names(0, 1)


def test_expired_history_leads_to_a_new_list(tmp_path: Path) -> None:
    known = ("--bookmark-seconds", "0.2", "--window", "2")
    with serving(tmp_path, *known) as served, observing(served) as watched:
        watched.create(0, 1)
        with watched.watching() as recorder:
            recorder.until(lambda: recorder.signs >= 1)
            watched.served.press("silence-watches")
            watched.delete(0)
            watched.create(2, 3, 4)
            watched.served.press("close-watches")
            recorder.until(lambda: len(recorder.lists) == 2)
        assert recorder.lists[1] == names(1, 2, 3, 4)


def test_a_watch_survives_a_server_that_returns_with_other_certificates_and_tokens(tmp_path: Path) -> None:
    with (
        serving(tmp_path) as served,
        connected(served) as api,
        connect({"KUBECONFIG": str(served.direct)}) as own,
    ):
        source = next(source for source in cluster.sources(own) if source.kind is Kind.HOSTS)
        one = Watched(served, source, client.CoreV1Api(api))
        one.create(0)
        with one.watching() as recorder:
            recorder.until(lambda: len(recorder.lists) == 1)
            served.processes.end(served.server)
            with serving(tmp_path, port=served.port):
                recorder.until(lambda: len(recorder.lists) >= 2 and recorder.lists[-1] == [])


def test_a_watch_can_be_stopped_while_the_server_is_silent(watched: Watched) -> None:
    with watched.watching() as recorder:
        recorder.until(lambda: recorder.signs >= 1)
        watched.served.press("silence-watches")


def test_an_unparseable_object_is_kept_all_the_same(watched: Watched) -> None:
    watched.create(0, 1)
    read_before = watched.source.read

    def read(obj: Mapping[str, Any]) -> Known | None:
        if obj["metadata"]["name"] == name(0):
            raise KeyError("status")
        return read_before(obj)

    watched.source = replace(watched.source, read=read)
    with watched.watching() as recorder:
        recorder.until(lambda: bool(recorder.lists))
    assert recorder.lists == [names(0, 1)]
    assert recorder.present[name(0)] == Unparseable(Kind.HOSTS, name(0), "KeyError: 'status'")
