"""Static slices beside those that the provisioner buys, under the admission policy."""

from __future__ import annotations

import pytest

from tests.examples.cluster import Cluster
from tests.examples.stories import STATIC

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket, pytest.mark.timeout(180)]
POOL = "cloud.google.com/gke-nodepool"


def test_a_job_takes_a_free_static_slice_and_only_what_is_missing_is_bought(cluster: Cluster) -> None:
    own = cluster.within("beside-static")
    used: dict[str, set[str]] = {}

    def over() -> bool:
        pool_of = {node["metadata"]["name"]: node["metadata"]["labels"][POOL] for node in own.get("nodes")["items"]}
        for pod in own.get("pods")["items"]:
            node, job = pod["spec"].get("nodeName"), pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
            if node in pool_of:
                used.setdefault(job, set()).add(pool_of[node])
        return "Completed" in own.conditions(STATIC)

    own.until(over)
    (bought,) = [pool for pool in own.calls("CreateNodePool") if pool.startswith(f"tpu-{STATIC}-")]
    assert sorted(map(sorted, used.values())) == [[STATIC], [bought]]


def test_a_static_slice_stays_when_the_bought_one_goes(cluster: Cluster) -> None:
    own = cluster.within("beside-static")
    own.until_over(STATIC)
    own.until(lambda: own.pools(STATIC) == [])
    assert len(own.get("nodes", "-l", f"{POOL}={STATIC}")["items"]) == 2
    assert STATIC not in own.calls("DeleteNodePool")
