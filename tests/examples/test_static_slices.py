"""Static slices beside those that the provisioner buys, under the admission policy."""

from __future__ import annotations

import pytest

from tests.examples.cluster import Cluster
from tests.examples.stories import STATIC

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]
POOL = "cloud.google.com/gke-nodepool"


def pools_by_job(cluster: Cluster) -> dict[str, set[str]]:
    """Return the node pools on which the running pods of each Job are."""
    pool_of = {each["metadata"]["name"]: each["metadata"]["labels"][POOL] for each in cluster.items("nodes")}
    pods = cluster.items("pods", fields="status.phase=Running")
    found: dict[str, set[str]] = {}
    for pod in pods:
        job = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
        found.setdefault(job, set()).add(pool_of[pod["spec"]["nodeName"]])
    return found


def test_a_job_takes_a_free_static_slice_and_only_what_is_missing_is_bought_and_released(cluster: Cluster) -> None:
    own = cluster.within("beside-static")
    own.until(lambda: len(own.running()) == 4)
    (bought,) = own.pools(STATIC)
    assert sorted(map(sorted, pools_by_job(own).values())) == [[STATIC], [bought]]

    own.kubectl("delete", "jobset", STATIC)
    own.until(lambda: own.pools(STATIC) == [])
    assert [pool for pool in own.calls("CreateNodePool") if pool.startswith(f"tpu-{STATIC}-")] == [bought]
    assert len(own.items("nodes", f"{POOL}={STATIC}")) == 2
    assert STATIC not in own.calls("DeleteNodePool")
