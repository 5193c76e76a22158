"""JobSets in a queue of Kueue: no slice is created before Kueue admits one, and its report says what it waits for."""

from __future__ import annotations

import pytest

from infra.local.plan import REPOSITORY
from tests.examples.cluster import Cluster
from tests.examples.stories import HALL, V4, of_queue, renamed, running

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]

KUEUE = REPOSITORY / "examples" / "kueue"
FIRST = "jobset.sigs.k8s.io/jobset-name=kueue-first"


def test_a_jobset_that_is_not_admitted_creates_nothing_is_reported_and_runs_later(cluster: Cluster) -> None:
    jobsets = KUEUE / "jobsets.yaml"
    cluster.kubectl("apply", "-f", str(KUEUE / "queues.yaml"))
    cluster.create([running(jobsets)[0], running(jobsets, "1")[1]])
    waits = 'The JobSet is suspended by Kueue in queue "team-a" (see `kubectl describe workloads -n default`);'
    cluster.until(lambda: any(waits in said for said in cluster.said_of("JobSet", "kueue-second")))
    cluster.until(lambda: len(cluster.running(FIRST)) == 4)
    first, second = "tpu-kueue-first", "tpu-kueue-second"
    assert created(cluster) in ([], [first]), (
        "an example that ends may hand its slice over; nothing is made for the second"
    )
    cluster.end_pods(FIRST)
    cluster.until_over("kueue-first")
    cluster.until_over("kueue-second")
    cluster.until(lambda: not cluster.pools("kueue-first") + cluster.pools("kueue-second"))
    made = created(cluster)
    assert made in ([], [first], [second], [first, second]), "each is handed over, or one is made"


def test_what_stands_is_used_before_anything_is_bought_by_the_order_of_flavors(cluster: Cluster) -> None:
    own = cluster.within("two-flavors")
    stands, bought = (f"jobset.sigs.k8s.io/jobset-name={name}" for name in ("stands", "bought"))
    own.until(lambda: len(own.running(stands)) == 2)
    own.create([of_queue(renamed(running(V4)[0], "bought"))])
    own.until(lambda: len(own.running(bought)) == 2)
    (pool,) = own.pools("bought")
    assert sorted(map(sorted, own.pools_by_job().values())) == sorted([[HALL], [pool]])
    assert own.pools("stands") == []
    for each in (stands, bought):
        own.end_pods(each)
    own.until_over("stands")
    own.until_over("bought")
    own.until(lambda: own.pools("bought") == [])
    assert own.ready_nodes(f"cloud.google.com/gke-nodepool={HALL}") == 2


def created(cluster: Cluster) -> list[str]:
    return [pool.rsplit("-", 3)[0] for pool in cluster.calls("CreateNodePool") if "-kueue-" in pool]


def test_a_jobset_without_a_slice_can_be_explained(cluster: Cluster) -> None:
    cluster.kubectl("create", "-f", "-", text=QUEUELESS)
    cluster.until(lambda: any('in queue "nowhere"' in said for said in cluster.said_of("JobSet", "queueless")))
    report = cluster.slices("explain", "default/queueless")["report"]
    assert (report["reason"], report["requested"]) == ("NoSlicesRequested", 0)


QUEUELESS = (
    (KUEUE / "jobsets.yaml")
    .read_text()
    .partition("---")[0]
    .replace("kueue-first", "queueless")
    .replace("queue-name: team-a", "queue-name: nowhere")
)
