"""What versions of JobSet's controller do each in their way, as docs/jobsets.md says of them."""

from __future__ import annotations

import pytest

from tests.cluster.asking import LIVE, done, path
from tests.cluster.builders import EXCLUSIVE, POOL
from tests.cluster.places import SOON, Place, condition
from tests.cluster.servers import EARLIER, REAL, Cluster
from tpu_standins.testing.waiting import until

pytestmark = [*LIVE, pytest.mark.parametrize("cluster", [EARLIER, REAL], indirect=True)]

NODE_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
NAMESPACED_JOB = "alpha.jobset.sigs.k8s.io/namespaced-job"


@pytest.fixture
def place(cluster: Cluster) -> Place:
    return Place(cluster, cluster.namespace())


def test_exclusive_placement_by_node_selector_lets_all_pods_of_a_job_run(place: Place) -> None:
    """With v0.10.1 and v0.12.0. Versions after 0.12 are said to delete all but the leader: none is released yet."""
    place.add_pool("a")
    for number in range(2):
        label = {"metadata": {"labels": {NAMESPACED_JOB: f"{place.name}_train-slice-0"}}}
        done(place.cluster.api.patch(path("nodes", name=f"{place.name}-a-{number}"), label))
    jobset = place.jobset(1, place.job_spec(run=SOON))
    jobset["metadata"]["annotations"] = {EXCLUSIVE: POOL, NODE_SELECTOR: "true"}
    place.create("jobsets", jobset)
    place.await_end("Completed")


def test_a_job_whose_leader_is_retried_gets_no_other_pods(place: Place) -> None:
    """With v0.10.1 and v0.12.0: the webhook refuses followers as long as the leader that failed is there, too."""
    place.add_pool("a", hosts=3)
    place.create("jobsets", place.jobset(1, place.job_spec(backoffLimit=6)))
    place.await_phases("Running", "Running")
    for pod in place.items("pods"):
        status = path("pods", place.name, pod["metadata"]["name"], "status")
        done(place.cluster.api.patch(status, {"status": {"phase": "Failed"}}))
    until(lambda: place.phases() == ["Failed", "Failed", "Running"], "another leader")
    (leader,) = [each for each in place.items("pods") if each["status"]["phase"] == "Running"]
    bound_at = condition(leader, "PodScheduled")["lastTransitionTime"]
    until(
        lambda: any(each > bound_at for each in refused_at(place)), "a follower that is refused beside a bound leader"
    )
    assert place.phases() == ["Failed", "Failed", "Running"]


def refused_at(place: Place) -> list[str]:
    """Return when the creation of followers was refused last."""
    text = "follower pod node selector for topology domain not found"
    return [each["lastTimestamp"] for each in place.items("events") if text in each["message"]]
