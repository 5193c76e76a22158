"""The local stack serves each cluster that is configured beside its own, as the build does in the cloud."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from infra.local import messaging
from infra.local.addresses import Addresses
from infra.local.clusters import connected, create_all, further
from tests.local.stack.test_messaging import addresses
from tpu_slices.app.settings import Settings
from tpu_slices.app.wiring import build_messaging
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.messaging import Messaging
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

SECOND = ClusterId("second")


class Ticked(BaseHTTPRequestHandler):
    """Takes each message, and notes by which path it came."""

    paths: ClassVar[set[str]] = set()

    def do_POST(self) -> None:
        self.paths.add(self.path)
        self.send_response(HTTPStatus.NO_CONTENT)
        self.end_headers()


@pytest.fixture
def here(
    pubsub_emulator: str, firestore_emulator: str, project_id: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Addresses]:
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", pubsub_emulator)
    with ThreadingHTTPServer(("127.0.0.1", 0), Ticked) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        made = addresses(pubsub_emulator, project_id, f"http://127.0.0.1:{server.server_port}")
        yield replace(made, firestore=firestore_emulator)
        server.shutdown()


@pytest.fixture
def deployed(here: Addresses) -> Messaging:
    return build_messaging(Settings(project=here.project, emulated=True))


def test_a_cluster_is_served_from_when_it_is_configured_until_it_is_retired(
    here: Addresses, deployed: Messaging
) -> None:
    messaging.create(messaging.read().of_cluster(here.cluster_id), here)
    with closing(connected(here)) as database, further(here, sweep_seconds=0.1):
        place = database.collection("clusters").document(SECOND)
        place.set({"path": "somewhere"})
        tick = f"/sweep/projects/{here.project}/topics/ticks-{SECOND}"
        until(lambda: tick in Ticked.paths, "a tick for the further cluster")
        assert deployed.missing(SECOND) == ()
        place.delete()
        until(lambda: len(deployed.missing(SECOND)) == 12, "the end of its topics and subscriptions")
        assert deployed.missing(ClusterId(here.cluster_id)) == ()


def test_after_an_emulator_that_lost_all_each_cluster_has_its_topics_again(
    here: Addresses, deployed: Messaging
) -> None:
    with closing(connected(here)) as database:
        database.collection("clusters").document(SECOND).set({"path": "somewhere"})
    create_all(here)
    create_all(here)
    assert deployed.missing(SECOND) == deployed.missing(ClusterId(here.cluster_id)) == ()
