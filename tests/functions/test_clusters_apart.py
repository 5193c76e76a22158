"""Clusters on the Pub/Sub emulator, served by the functions' own processes: trouble of one delays no other.

`flooded` has settings that cannot be read, and a flood of requests, each of which raises. `broken` has no such settings
either, and ticks. `slow` is on a Compute Engine that never answers. The others are on the local GKE.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from google.cloud import firestore

from infra.local import messaging
from infra.local.addresses import Addresses, port_of
from infra.local.functions import function
from tests.builders import NOW, a_job, a_record, self_managed, settings
from tests.functions.test_killed_between_remember_and_act import ROOT, local_gke
from tests.patience import patient_adapters
from tpu_slices.adapters.firestore import FirestoreStore
from tpu_slices.adapters.pubsub import PubSubPublisher, connect_publisher, publish
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.records.heartbeats import RelayHeartbeat, RoundTrip
from tpu_slices.ports.store import Change
from tpu_slices.wire.cluster_settings import encode_settings
from tpu_slices.wire.messages import Message
from tpu_slices.wire.topics import Topic
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.ports import free_ports
from tpu_standins.prerequisites import Tools
from tpu_standins.processes import Processes
from tpu_standins.testing.waiting import until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.real]

FLOODED, BROKEN, SLOW = ClusterId("flooded"), ClusterId("broken"), ClusterId("slow")
OTHERS = [ClusterId(name) for name in ("first", "second", "third")]
FLOOD = 3_000
UNREADABLE = {"path": "nowhere"}
FUNCTIONS = ("reconcile", "sweep")


def on_gke(addresses: Addresses) -> Addresses:
    """Return the addresses as those of a stack whose own cluster is one of GKE."""
    return replace(addresses, compute="")


class Site:
    """Some clusters on record, their topics, and the functions behind them."""

    def __init__(self, addresses: Addresses) -> None:
        self.addresses = addresses
        self.database = firestore.Client(project=addresses.project)
        self.store = FirestoreStore(self.database)
        self._client = connect_publisher(PATIENCE_SECONDS)
        self.publisher = PubSubPublisher(self._client, addresses.project, PATIENCE_SECONDS)
        gke = on_gke(addresses).cluster_path
        known = {name: dict(encode_settings(settings(cluster=name, path=gke))) for name in OTHERS}
        known[SLOW] = dict(encode_settings(self_managed(cluster=SLOW, path=addresses.cluster_path)))
        for cluster, document in {**known, FLOODED: UNREADABLE, BROKEN: UNREADABLE}.items():
            self.database.collection("clusters").document(cluster).set(document)
            messaging.create(messaging.read().of_cluster(cluster), addresses)

    def asks(self, cluster: ClusterId) -> None:
        """Request an echo of reconcile, and a sweep, of which the cluster's heartbeat will tell."""
        beat = RelayHeartbeat.of(cluster)
        trip = RoundTrip(asked_at=NOW, answered_at=NOW, received_at=NOW)
        self.store.commit(Change(self.store.heartbeat(cluster), replace(beat, round_trip=trip)))
        self.publisher.request_echo(cluster, NOW)
        self.ticks(cluster)

    def ticks(self, cluster: ClusterId) -> None:
        topic = self.addresses.topic_path(Topic.TICKS.of(cluster))
        publish(self._client, topic, [Message(b"{}", {})], PATIENCE_SECONDS)

    def reconciled(self, cluster: ClusterId) -> bool:
        stored = self.store.heartbeat(cluster)
        trip = stored.value.round_trip if stored else None
        return trip is not None and trip.reconciled_at is not None

    def swept(self, cluster: ClusterId) -> bool:
        stored = self.store.heartbeat(cluster)
        return stored is not None and stored.value.next_inventory_check_at is not None

    def floods(self, cluster: ClusterId) -> None:
        self.publisher.request_reconcile(
            cluster, [a_record(job=a_job(cluster=cluster, job_index=each)).maker for each in range(FLOOD)]
        )

    @property
    def rejected(self) -> int:
        """Return how many messages of the flood were handled."""
        [[found]] = self.database.collection("rejected").count().get()  # type: ignore[no-untyped-call]
        return int(found.value)

    def log(self, part: str) -> str:
        return (self.addresses.folder / "logs" / f"function-{part}.log").read_text(errors="replace")


@pytest.fixture
def addresses(pubsub_emulator: str, firestore_emulator: str, project_id: str, tmp_path: Path) -> Addresses:
    gke, buttons, compute, *ports = free_ports(6)
    return Addresses(
        project=project_id,
        location="us-central2",
        cluster_id=OTHERS[0],
        pubsub=pubsub_emulator,
        firestore=firestore_emulator,
        gke=f"127.0.0.1:{gke}",
        compute=f"127.0.0.1:{compute}",
        buttons=f"http://127.0.0.1:{buttons}",
        proxy_port=0,
        proxy_buttons="unused",
        functions={name: f"http://127.0.0.1:{port}" for name, port in zip((*FUNCTIONS, "receive"), ports, strict=True)},
        folder=tmp_path,
    )


@pytest.fixture
def site(addresses: Addresses, tools: Tools, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    for name, value in addresses.environment().items():
        monkeypatch.setenv(name, value)
    with (
        patient_adapters(),
        socket.create_server(("127.0.0.1", port_of(addresses.compute))),
        Processes(setpriv=tools.setpriv, logs=addresses.folder / "logs", environment=os.environ) as processes,
    ):
        made = Site(addresses)
        functions = (function(each, ROOT, addresses) for each in FUNCTIONS)
        processes.wait_until_ready(*processes.start(local_gke(on_gke(addresses)), *functions))
        yield made


def test_trouble_of_a_cluster_delays_no_other(site: Site) -> None:
    site.floods(FLOODED)
    for cluster in (BROKEN, SLOW):
        site.ticks(cluster)
    for cluster in OTHERS:
        site.asks(cluster)
    until(lambda: all(map(site.reconciled, OTHERS)), "reconcile of the others")
    during = site.rejected
    until(lambda: all(map(site.swept, OTHERS)), "the sweeps of the others")
    assert during < FLOOD / 2, "they did not wait for the flood"
    assert not site.swept(SLOW)
    until(lambda: f'"cluster": "{BROKEN}"' in site.log("sweep"), "the broken cluster to be told of")
    until(lambda: site.rejected == FLOOD, lambda: f"the end of the flood; {site.rejected}")
