"""Many workloads of one shape at once, with nothing but the admission policy to keep their pods apart."""

from __future__ import annotations

import pytest

from tests.examples import alike
from tests.examples.alike import GROUPS, HOSTS, JOBS, JOBSETS, users, watched
from tests.examples.cluster import Cluster

pytestmark = [pytest.mark.emulators, pytest.mark.enable_socket]
EVERY = (*JOBSETS, *GROUPS, *JOBS)


def alone(found: dict[str, dict[str, int]]) -> dict[str, str]:
    """Return by workload on which pool its pods are; fail if two are on one pool."""
    shared = {pool: counts for pool, counts in found.items() if len(counts) > 1}
    assert shared == {}
    return {workload: pool for pool, counts in found.items() for workload in counts}


def created(cluster: Cluster) -> list[str]:
    return [pool for pool in cluster.calls("CreateNodePool") if "-alike-" in pool]


def all_run(cluster: Cluster) -> bool:
    found = users(cluster)
    alone(found)
    return sorted(map(sorted, (counts.items() for counts in found.values()))) == sorted(
        [(each, HOSTS)] for each in EVERY
    )


def test_each_is_whole_on_a_slice_of_its_own_and_the_next_gets_that_of_one_that_goes(cluster: Cluster) -> None:
    own = cluster.within("alike")
    own.until(lambda: all_run(own))
    assert len(created(own)) == len(EVERY)
    own.until(lambda: {watched(own)[pool] for pool in users(own)} == {HOSTS})
    (gone, pool), bought = (JOBSETS[0], alone(users(own))[JOBSETS[0]]), created(own)
    others = {workload: where for workload, where in alone(users(own)).items() if workload != gone}
    own.create([alike.jobset("alike-next")])
    own.until(lambda: any("chips_per_namespace" in said for said in own.said_of("JobSet", "alike-next")))
    own.kubectl("delete", "jobset", gone)

    def follows() -> bool:
        found = users(own)
        alone(found)
        return found.get(pool) == {"alike-next": HOSTS}

    own.until(follows)
    assert alone(users(own)) == {**others, "alike-next": pool}
    assert (created(own), pool in own.calls("DeleteNodePool")) == (bought, False)
    own.until(lambda: any("1 of 1 slices ready" in said for said in own.said_of("JobSet", "alike-next")))
