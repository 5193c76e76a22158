"""What becomes of JobSets: from the first pending leader to the end. All stories of a server begin together."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tests.cluster.asking import LIVE, done, path
from tests.cluster.places import SOON, Place, condition
from tests.cluster.servers import EARLIER, EMBEDDED, REAL, REAL_ALONE, Cluster
from tpu_standins.testing.waiting import until

pytestmark = LIVE

ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
Stories = Mapping[str, Place]


def without_hosts(place: Place) -> None:
    place.create("jobsets", place.jobset())


def completed(place: Place) -> None:
    for pool in ("a", "b"):
        place.add_pool(pool)
    place.create("jobsets", place.jobset(job=place.job_spec(run=SOON)))


def crowded(place: Place) -> None:
    place.add_pool("a", hosts=4)
    place.create("jobsets", place.jobset())


def restarted(place: Place) -> None:
    place.add_pool("a")
    job = place.job_spec(run=SOON, fail_until=1)
    place.create("jobsets", place.jobset(1, job, failurePolicy={"maxRestarts": 1}))


def failed(place: Place) -> None:
    place.add_pool("a")
    place.create("jobsets", place.jobset(1, place.job_spec(run=SOON, fail_until=9), failurePolicy={"maxRestarts": 1}))


def without_a_policy(place: Place) -> None:
    place.add_pool("a")
    place.create("jobsets", place.jobset(1, place.job_spec(run=SOON, fail_until=9)))


def ruled(place: Place) -> None:
    place.add_pool("a")
    rules = [{"action": "FailJobSet", "onJobFailureReasons": ["BackoffLimitExceeded"]}]
    policy = {"maxRestarts": 5, "rules": rules}
    place.create("jobsets", place.jobset(1, place.job_spec(run=SOON, fail_until=9), failurePolicy=policy))


def running(place: Place) -> None:
    place.add_pool("a")
    place.create("jobsets", place.jobset(1))


def with_a_spare_pool(place: Place) -> None:
    for pool in ("a", "b"):
        place.add_pool(pool)
    place.create("jobsets", place.jobset(1, failurePolicy={"maxRestarts": 1}))


def silent(place: Place) -> None:
    """Its pods are evicted after a second, instead of five minutes."""
    for pool in ("a", "b"):
        place.add_pool(pool)
    job = place.job_spec()
    soon = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    job["template"]["spec"]["tolerations"] = [soon | {"tolerationSeconds": 1}]
    place.create("jobsets", place.jobset(1, job, failurePolicy={"maxRestarts": 1}))


def finished_soon(place: Place) -> None:
    place.add_pool("a")
    place.create("jobsets", place.jobset(1, place.job_spec(run=SOON), ttlSecondsAfterFinished=1))


BEGINNINGS: Mapping[str, Callable[[Place], None]] = {
    each.__name__: each
    for each in (
        without_hosts, completed, crowded, restarted, failed, without_a_policy, ruled, with_a_spare_pool, silent,
        finished_soon,
    )
} | {"suspended": running, "deleted": running}  # fmt: skip


@pytest.fixture(params=[REAL, EARLIER, EMBEDDED])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """Each server of this folder, and one with the JobSet that getting started installs."""
    found: Cluster = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def begun() -> dict[str, Stories]:
    return {}


@pytest.fixture
def stories(cluster: Cluster, begun: dict[str, Stories]) -> Stories:
    """Return the places of all stories on this server; they begin with the first test that asks."""
    if cluster.name not in begun:
        places = {name: Place(cluster, cluster.namespace()) for name in BEGINNINGS}
        for name, begin in BEGINNINGS.items():
            begin(places[name])
        begun[cluster.name] = places
    return begun[cluster.name]


def test_while_there_is_no_host_one_pending_leader_per_slice_is_all_there_is(stories: Stories) -> None:
    place = stories["without_hosts"]
    until(lambda: len(place.items("pods")) == 2, "the leaders")
    unschedulable = ("False", "Unschedulable")

    def waiting() -> bool:
        scheduled = [condition(each, "PodScheduled") for each in place.items("pods")]
        return [(each.get("status"), each.get("reason")) for each in scheduled] == [unschedulable] * 2

    until(waiting, "the scheduler's answer")
    labels = [each["metadata"]["labels"] for each in place.items("pods")]
    assert {each["batch.kubernetes.io/job-completion-index"] for each in labels} == {"0"}
    assert {each["job-name"] for each in labels} == {"train-slice-0", "train-slice-1"}
    assert condition(place.read(), "Completed") == {}


def test_each_slice_has_a_pool_for_itself_and_the_jobset_completes(stories: Stories) -> None:
    place = stories["completed"]
    place.await_end("Completed")
    assert condition(place.read(), "Completed")["reason"] == "AllJobsCompleted"
    [counts] = place.read()["status"]["replicatedJobsStatus"]
    assert (counts["name"], counts["succeeded"], counts["failed"], counts["active"]) == ("slice", 2, 0, 0)
    pools = [place.pools(f"train-slice-{index}") for index in range(2)]
    assert [len(each) for each in pools] == [1, 1]
    assert pools[0] | pools[1] == {"a", "b"}
    assert place.phases() == ["Succeeded"] * 4
    for job in place.items("jobs"):
        assert (condition(job, "Complete")["status"], job["status"]["succeeded"]) == ("True", 2)
        assert job["status"]["completionTime"] >= job["status"]["startTime"]


def test_a_pool_with_room_for_two_takes_one_slice_alone(stories: Stories) -> None:
    place = stories["crowded"]
    place.await_phases("Running", "Running", "Pending")
    [waiting] = [each for each in place.items("pods") if each["status"]["phase"] == "Pending"]
    until(
        lambda: condition(place.read("pods", waiting["metadata"]["name"]), "PodScheduled").get("status") == "False",
        "the scheduler's answer",
    )
    assert place.phases() == ["Pending", "Running", "Running"]


def test_a_restarted_jobset_is_its_next_attempt_and_completes(stories: Stories) -> None:
    place = stories["restarted"]
    place.await_end("Completed")
    status = place.read()["status"]
    assert (status["restarts"], status["restartsCountTowardsMax"]) == (1, 1)
    assert {each["metadata"]["labels"][ATTEMPT] for each in place.items("jobs")} == {"1"}
    assert {each["metadata"]["labels"][ATTEMPT] for each in place.items("pods")} == {"1"}


@pytest.mark.parametrize(
    ("story", "reason", "restarts"),
    [
        ("failed", "ReachedMaxRestarts", 1),
        ("without_a_policy", "FailedJobs", 0),
        ("ruled", "FailJobSetFailurePolicyAction", 0),
    ],
)
def test_a_jobset_that_may_not_restart_fails(stories: Stories, story: str, reason: str, restarts: int) -> None:
    place = stories[story]
    place.await_end("Failed")
    assert condition(place.read(), "Failed")["reason"] == reason
    assert place.read()["status"].get("restarts", 0) == restarts
    [job] = place.items("jobs")
    assert condition(job, "Failed")["reason"] == "BackoffLimitExceeded"


def test_a_suspended_jobset_has_no_pods_until_it_is_resumed(stories: Stories) -> None:
    place = stories["suspended"]
    place.await_phases("Running", "Running")
    place.change(suspend=True)
    place.await_phases()
    place.await_status("Suspended")
    assert [each["spec"]["suspend"] for each in place.items("jobs")] == [True]
    assert [each["status"].get("failed", 0) for each in place.items("jobs")] == [0]
    place.change(suspend=False)
    place.await_phases("Running", "Running")
    place.await_status("Suspended", "False")


def test_a_deleted_jobset_takes_all_that_it_owns_with_it(stories: Stories) -> None:
    place = stories["deleted"]
    place.await_phases("Running", "Running")
    done(place.cluster.api.delete(path("jobsets", place.name, "train")))
    owned = ("jobs", "pods", "services")
    until(lambda: not any(place.items(plural) for plural in owned), "the end of all")


def test_a_host_that_shuts_down_ends_its_pods_and_the_jobset_begins_anew_elsewhere(stories: Stories) -> None:
    place = stories["with_a_spare_pool"]
    place.await_phases("Running", "Running")
    [pool] = place.pools("train-slice-0")
    hosts = [f"{place.name}-{pool}-{number}" for number in range(2)]
    for host in hosts:  # or its next leader may come to the second host before that one shuts down
        done(place.cluster.api.patch(path("nodes", name=host), {"spec": {"unschedulable": True}}))
    for host in hosts:
        place.set_ready(host, "False", "node is shutting down")
    until(lambda: place.read().get("status", {}).get("restarts") == 1, "the restart")
    place.await_phases("Running", "Running")
    assert place.pools("train-slice-0") == ({"a", "b"} - {pool})


@REAL_ALONE
def test_pods_are_evicted_from_a_host_that_is_lost(stories: Stories) -> None:
    place = stories["silent"]
    place.await_phases("Running", "Running")
    [pool] = place.pools("train-slice-0")
    lost = staying(place)
    for number in range(2):
        place.set_ready(f"{place.name}-{pool}-{number}", "Unknown")
    until(lambda: not lost & staying(place), "the eviction")


def staying(place: Place) -> set[str]:
    """Return the UIDs of the pods that nobody has deleted."""
    pods = [each["metadata"] for each in place.items("pods")]
    return {each["uid"] for each in pods if "deletionTimestamp" not in each}


def test_a_finished_jobset_goes_when_its_time_is_over(stories: Stories) -> None:
    place = stories["finished_soon"]
    until(lambda: not place.items("jobsets"), "its end")
