"""Six clusters on the local stack: a flood of one, a broken one and one that never answers delay none of the others.

`flooded` has settings that cannot be read, and a flood of requests, each of which raises. `broken` has no such settings
either. `slow` is on a Compute Engine that never answers. `idle` and `resting` are clusters of the local GKE, as is the
stack's own, in which a JobSet comes and goes meanwhile.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.cloud import firestore

from infra.local.addresses import Addresses
from infra.local.plan import Plan
from infra.local.stack import running
from tests.builders import a_job, a_record, self_managed, settings
from tests.examples.cluster import FAST, Cluster, asked_by_a_user, seed
from tests.examples.stories import V4
from tpu_slices.adapters.pubsub import PubSubPublisher, connect_publisher
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.wire.cluster_settings import encode_settings
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.prerequisites import Tools
from tpu_standins.testing.waiting import beside, until

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.real]

FLOODED, BROKEN, SLOW = ClusterId("flooded"), ClusterId("broken"), ClusterId("slow")
OTHERS = [ClusterId(name) for name in ("idle", "resting")]
WAITING, LOOK_SECONDS = 500, 0.2
"""The fewest requests of the flood that wait at each look, and how often that is."""
UNREADABLE = {"path": "nowhere"}
PLACE = "projects/demo-project/locations/us-central2"


@pytest.fixture
def cluster(tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    assert tools.java.exists()
    known = [part for name in OTHERS for part in ("--cluster", f"{PLACE}/clusters/{name}")]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("COMPUTE_EMULATOR_HOST", f"127.0.0.1:{silent.getsockname()[1]}")
        plan = Plan(state=tmp_path, sweep_seconds=1, gke_arguments=(*FAST, *known))
        with running(plan, seed) as stack, asked_by_a_user(stack, tools) as found:
            yield found


def configured(records: firestore.Client) -> None:
    """Let the five clusters be configured beside the stack's own."""
    documents: dict[ClusterId, Any] = {
        **{name: encode_settings(settings(cluster=name, path=f"{PLACE}/clusters/{name}")) for name in OTHERS},
        SLOW: encode_settings(self_managed(cluster=SLOW, path=PLACE)),
        FLOODED: UNREADABLE,
        BROKEN: UNREADABLE,
    }
    for name, document in documents.items():
        records.collection("clusters").document(name).set({**document})


class Flood:
    """Requests of one cluster, each of which raises: there are always some that wait, until `stop` is called."""

    def __init__(self, addresses: Addresses, records: firestore.Client) -> None:
        self.published = 0
        self._publisher = PubSubPublisher(connect_publisher(PATIENCE_SECONDS), addresses.project, PATIENCE_SECONDS)
        self._records = records
        self._stopping = threading.Event()

    @property
    def waiting(self) -> int:
        """How many were not handled yet."""
        [[found]] = self._records.collection("rejected").count().get()  # type: ignore[no-untyped-call]
        return self.published - int(found.value)

    def run(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            if self.waiting < WAITING:
                numbers = range(self.published, self.published + WAITING)
                slices = [a_record(job=a_job(cluster=FLOODED, job_index=number)).maker for number in numbers]
                self._publisher.request_reconcile(FLOODED, slices)
                self.published += WAITING

    def stop(self) -> None:
        self._stopping.set()


def swept(records: firestore.Client, name: ClusterId) -> bool:
    heartbeat: dict[str, Any] = records.collection("heartbeats").document(name).get().to_dict() or {}
    return heartbeat.get("next_inventory_check_at") is not None


def told(addresses: Addresses, part: str) -> str:
    return (addresses.folder / "logs" / f"function-{part}.log").read_text(errors="replace")


def test_a_jobset_comes_and_goes_and_others_are_swept_during_a_flood_of_another_cluster(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(cluster.records)
    until(lambda: all(swept(cluster.records, name) for name in OTHERS), "the first sweeps of the others")
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", cluster.addresses.pubsub)
    flood = Flood(cluster.addresses, cluster.records)
    with beside(flood.run, flood.stop):
        until(lambda: flood.published, "the flood")
        cluster.kubectl("apply", "-f", str(V4))
        cluster.until_over("v4")
        assert flood.waiting, "it did not wait for the flood"
        until(lambda: cluster.pools("v4") == [], "its slice to go")
    assert not swept(cluster.records, SLOW)
    until(lambda: f'"cluster": "{BROKEN}"' in told(cluster.addresses, "sweep"), "the broken cluster to be told of")
    until(lambda: flood.waiting == 0, "the end of the flood")
