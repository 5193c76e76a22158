"""JobSets in a queue of Kueue: no slice is created before Kueue admits one, and its report says what it waits for."""

from __future__ import annotations

import pytest

from infra.local.plan import REPOSITORY
from tests.examples.cluster import Cluster

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

KUEUE = REPOSITORY / "examples" / "kueue"


def test_a_jobset_that_is_not_admitted_creates_nothing_is_reported_and_runs_later(cluster: Cluster) -> None:
    for file in ("queues.yaml", "jobsets.yaml"):
        cluster.kubectl("apply", "-f", str(KUEUE / file))
    waits = 'The JobSet is suspended by Kueue in queue "team-a" (see `kubectl describe workloads -n default`);'
    cluster.until(lambda: any(waits in said for said in said_of(cluster, "kueue-second")))
    cluster.until(lambda: cluster.pools("kueue-first"))
    assert cluster.pools("kueue-second") == []
    cluster.until_over("kueue-first")
    cluster.until_over("kueue-second")
    cluster.until(lambda: not cluster.pools("kueue-first") + cluster.pools("kueue-second"))
    created = [pool.rsplit("-", 3)[0] for pool in cluster.calls("CreateNodePool") if "-kueue-" in pool]
    assert created == ["tpu-kueue-first", "tpu-kueue-second"]


def said_of(cluster: Cluster, jobset: str) -> list[str]:
    """Return the messages of the Events on a JobSet, the oldest first."""
    about = f"--field-selector=involvedObject.kind=JobSet,involvedObject.name={jobset}"
    return [each["message"] for each in cluster.get("events", about, "--sort-by=.lastTimestamp")["items"]]


def test_a_jobset_without_a_slice_can_be_explained(cluster: Cluster) -> None:
    cluster.kubectl("create", "-f", "-", text=QUEUELESS)
    cluster.until(lambda: any('in queue "nowhere"' in said for said in said_of(cluster, "queueless")))
    report = cluster.slices("explain", "default/queueless")["report"]
    assert (report["reason"], report["requested"]) == ("NoSlicesRequested", 0)


QUEUELESS = (
    (KUEUE / "jobsets.yaml")
    .read_text()
    .partition("---")[0]
    .replace("kueue-first", "queueless")
    .replace("queue-name: team-a", "queue-name: nowhere")
)
