"""Static slices beside those that the provisioner buys, under the admission policy."""

from __future__ import annotations

import pytest

from tests.examples.cluster import Cluster
from tests.examples.stories import STATIC

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]


def test_a_job_takes_a_free_static_slice_and_only_what_is_missing_is_bought_and_released(cluster: Cluster) -> None:
    own = cluster.within("beside-static")
    own.until(lambda: len(own.running()) == 4)
    (bought,) = own.pools(STATIC)
    assert sorted(map(sorted, own.pools_by_job().values())) == [[STATIC], [bought]]

    own.kubectl("delete", "jobset", STATIC)
    own.until(lambda: own.pools(STATIC) == [])
    assert [pool for pool in own.calls("CreateNodePool") if pool.startswith(f"tpu-{STATIC}-")] == [bought]
    assert len(own.items("nodes", f"cloud.google.com/gke-nodepool={STATIC}")) == 2
    assert STATIC not in own.calls("DeleteNodePool")
