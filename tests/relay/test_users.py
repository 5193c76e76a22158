"""Who is on hosts, by lists of their pods: a Job keeps them without its leader, and that nobody is there is proven."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from relay import translate
from relay.health import Health
from relay.hosts.occupants import HostPod
from relay.lookups.threads import VolumeLookups
from relay.lookups.users import Looks
from relay.objects import Pool, Workload, WorkloadName
from relay.translate import hosts_of
from tests.relay.closing import SLICE, Site, leader, question
from tests.relay.objects import Json, bound_pod, container, group_pod, jobset, leader_worker_set, replicated_job
from tests.relay.watched import START, a_relay, looking_up
from tpu_slices.domain.model.facts import Fact, HostsChanged
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.wire.readers import READERS

NODES = [f"{SLICE}-1-{number}" for number in range(4)]
SELECTOR = f"cloud.google.com/gke-nodepool={SLICE}-1"


@dataclass
class Api:
    """The nodes and pods that the API server has."""

    nodes: set[str] = field(default_factory=lambda: {*NODES})
    bound: list[Json] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    exactly: list[bool] = field(default_factory=list)
    workloads: list[Json] = field(default_factory=lambda: [jobset()])
    error: Exception | None = None
    pods_error: Exception | None = None
    workload_error: Exception | None = None

    def volume_claim(self, *_: str) -> Json | None:
        """Return nothing: no leader mounts a volume."""

    volume = volume_claim

    def nodes_of(self, pool: Pool) -> set[str]:
        assert hosts_of(pool) == SELECTOR
        self.listed.append(SELECTOR)
        if self.error is not None:
            raise self.error
        return self.nodes

    def chip_pods_on(self, node: str, *, exactly: bool) -> list[HostPod]:
        self.listed.append(node)
        self.exactly.append(exactly)
        if self.pods_error is not None:
            raise self.pods_error
        found = (translate.pod_on_a_host(pod) for pod in self.bound if pod["spec"]["nodeName"] == node)
        return [pod for pod in found if pod is not None]

    def workload_named(self, name: WorkloadName) -> Workload | None:
        self.listed.append(name.name)
        if self.workload_error is not None:
            raise self.workload_error
        found = (
            translate.owner_of_pods(READERS[name.kind], each) for each in self.workloads if each["kind"] == name.kind
        )
        return next((each for each in found if each.name == name), None)


class Scene:
    """A relay that closes four hosts, and the pods that the API server has on them."""

    def __init__(self) -> None:
        self.site, self.api, self.posted = Site(), Api(), list[Fact]()
        watched = self.site.watched
        look_up = looking_up(VolumeLookups(self.api, lambda: watched.now), Looks(self.api, lambda: watched.now))
        health = Health(lambda: watched.now)
        self.relay = a_relay(watched.queue, lambda: watched.now, self.posted.extend, health, look_up)

    def bind(self, pod: Json) -> None:
        """Bind a pod; its watch shows nothing of it yet."""
        self.api.bound.append(pod)

    def close(self) -> HostsChanged:
        """Ask for the hosts to be closed, and return the report of the time when all are."""
        self.relay.ask(question())
        self.site.patch()
        self.site.watched.pass_time(5)
        return self.report()

    def report(self) -> HostsChanged:
        """Return the last report."""
        self.relay.turn()
        return [fact for fact in self.posted if isinstance(fact, HostsChanged)][-1]


def test_it_is_answered_that_nobody_is_on_hosts_after_the_pods_of_each_were_listed() -> None:
    scene = Scene()
    report = scene.close()
    assert (report.answers, report.closed, report.occupants) == (1, 4, ())
    assert scene.api.listed[0] == SELECTOR
    assert sorted(scene.api.listed[1:]) == NODES


def test_a_leader_that_a_late_watch_has_not_shown_is_found_on_the_hosts_and_declines_the_question() -> None:
    scene = Scene()
    scene.bind(leader(2))
    with capture_logs() as lines:
        scene.close()
    assert [line["event"] for line in lines] == ["vacancy.uncertain"]
    assert "llama has a pod on them, of Job llama-workers-0" in lines[0]["error"]
    report = scene.report()
    assert (report.answers, [each.job for each in report.occupants]) == (1, ["llama-workers-0"])


def follower(host: int, rank: int = 1, **parts: Any) -> Json:
    labels = {"batch.kubernetes.io/job-completion-index": str(rank)}
    return bound_pod(0, f"{SLICE}-1-{host}", uid=f"follower-{rank}", labels=labels, **parts)


def test_a_job_whose_leader_was_never_seen_keeps_hosts_by_any_of_its_pods() -> None:
    scene = Scene()
    scene.bind(follower(3, rank=3))
    scene.close()
    report = scene.report()
    assert (report.answers, [each.pod_uid for each in report.occupants]) == (1, ["follower-3"])


@pytest.mark.parametrize(
    "template",
    [{"workerTemplate": {"spec": {"containers": [container(0)]}}}, {"subGroupPolicy": {"subGroupSize": 2}}],
    ids=["requests no TPU", "is not ours"],
)
def test_a_group_keeps_its_hosts_whatever_its_leader_worker_set_asks_for_now(template: dict[str, Any]) -> None:
    scene = Scene()
    scene.api.workloads.append(leader_worker_set(**template))
    scene.bind(group_pod(spec={"nodeName": NODES[1]}))
    with capture_logs() as lines:
        assert scene.close().answers is None
    assert ["serve has a pod on them" in line["error"] for line in lines] == [True]


@pytest.mark.parametrize(
    ("made", "counts"),
    [("2026-03-01T11:58:00Z", False), ("2026-03-01T11:59:50Z", True), ("2026-03-01T12:00:03Z", True), (None, True)],
    ids=["before it", "before it, by another API server's clock", "after it", "nobody knows when"],
)
def test_a_pod_made_before_its_leader_worker_set_is_of_an_earlier_one(made: str | None, *, counts: bool) -> None:
    scene = Scene()
    group = leader_worker_set()
    group["metadata"]["creationTimestamp"] = "2026-03-01T12:00:00Z"
    scene.api.workloads.append(group)
    pod = group_pod(spec={"nodeName": NODES[1]})
    pod["metadata"]["creationTimestamp"] = made
    scene.bind(pod)
    assert (scene.close().answers is None) is counts


def test_pods_of_a_workload_whose_templates_cannot_be_parsed_keep_their_hosts() -> None:
    scene = Scene()
    scene.api.workloads[:] = [jobset(spec={"replicatedJobs": [{"name": "workers", "replicas": "many"}]})]
    scene.bind(follower(2))
    assert scene.close().answers is None


def test_a_pod_that_holds_no_chips_keeps_no_hosts() -> None:
    scene = Scene()
    logs = follower(3)
    logs["spec"] = {**logs["spec"], "containers": [container(0)]}
    scene.bind(logs)
    assert scene.close().answers == 1


def ending(host: int, seconds: float, **parts: Any) -> Json:
    """Return a pod of a JobSet that is gone; its grace is over so many seconds after the relay began to watch."""
    made = bound_pod(0, f"{SLICE}-1-{host}", jobset="gemma", uid="ends", **parts)
    made["metadata"]["deletionTimestamp"] = (START + timedelta(seconds=seconds)).isoformat()
    return made


def test_hosts_are_not_empty_while_a_pod_of_a_jobset_that_is_gone_writes_its_checkpoint() -> None:
    scene = Scene()
    scene.bind(ending(1, seconds=600))
    with capture_logs() as lines:
        report = scene.close()
    assert (report.answers, report.ends_by) == (None, START + timedelta(seconds=600))
    assert lines == [], "nothing is wrong"
    scene.api.bound.clear()
    scene.site.watched.pass_time(30)
    assert scene.report().answers == 1, "the relay has looked again by itself"


def test_a_pod_that_has_used_up_its_grace_keeps_a_host_that_is_ready_and_none_that_is_not() -> None:
    scene = Scene()
    scene.bind(ending(1, seconds=1))
    assert scene.close().answers is None, "its kubelet will end it"
    scene.site.breaks(1)
    scene.site.watched.pass_time(30)
    assert scene.report().answers == 1, "nobody will"


@pytest.mark.parametrize("error", [Temporary("the API server does not answer"), Permanent("refused: 422")])
@pytest.mark.parametrize("which", ["error", "pods_error"], ids=["nodes", "pods"])
def test_hosts_that_cannot_be_listed_are_not_said_to_be_empty(which: str, error: Exception) -> None:
    scene = Scene()
    setattr(scene.api, which, error)
    assert scene.close().answers is None
    setattr(scene.api, which, None)
    scene.relay.ask(question())
    assert scene.report().answers == 1


def test_a_host_that_a_late_watch_has_not_shown_takes_the_answer_until_it_is_closed_too() -> None:
    scene = Scene()
    for number in (2, 3):
        scene.site.leave(number)
    with capture_logs() as lines:
        report = scene.close()
    assert (report.answers, report.joined, report.closed) == (None, 2, 2)
    assert [line["error"] for line in lines] == [f"the watch has not shown that node {NODES[2]} is one of the hosts"]

    scene.site.join(2, 3)
    scene.relay.ask(question())
    report = scene.close()
    assert (report.answers, report.joined, report.closed) == (1, 4, 4)


def test_a_pool_without_hosts_is_not_reported_while_the_api_server_has_some() -> None:
    scene = Scene()
    scene.site.leave(0, 1, 2, 3)
    scene.bind(leader(0))
    assert scene.close().answers is None

    scene.api.nodes.clear()  # now it is true
    scene.relay.ask(question())
    report = scene.report()
    assert (report.answers, report.joined) == (1, 0)


def test_a_pod_that_the_watch_has_shown_and_that_does_not_count_takes_no_answer() -> None:
    scene = Scene()
    stranger = leader(1)
    stranger["metadata"]["ownerReferences"] = []
    scene.bind(stranger)
    scene.site.watched.see(stranger)
    assert scene.close().answers == 1


def another(**parts: Any) -> Json:
    return jobset("gemma", **{"uid": "u-2", **parts})


def a_leader_of_another() -> Json:
    labels = {"jobset.sigs.k8s.io/jobset-uid": "u-2"}
    return bound_pod(0, f"{SLICE}-1-1", jobset="gemma", uid="pod-of-gemma", labels=labels)


def with_a_leader_of_another() -> Scene:
    """Return a relay whose watch of pods shows the leader of a JobSet that it has not been shown."""
    scene = Scene()
    scene.bind(a_leader_of_another())
    scene.site.watched.see(a_leader_of_another())
    return scene


def test_a_leader_whose_jobset_a_late_watch_has_not_shown_takes_the_answer() -> None:
    scene = with_a_leader_of_another()
    scene.api.workloads.append(another())
    with capture_logs() as lines:
        report = scene.close()
    assert (report.answers, report.closed, report.occupants) == (None, 4, ())
    assert ["gemma has a pod on them" in line["error"] for line in lines] == [True]

    scene.site.watched.see(another())
    scene.relay.ask(question())
    report = scene.report()
    assert (report.answers, len(report.occupants)) == (1, 1)


def test_a_leader_whose_jobset_a_late_watch_shows_as_it_was_takes_the_answer() -> None:
    scene = with_a_leader_of_another()
    scene.site.watched.see(another(spec={"suspend": True}))
    scene.api.workloads.append(another())
    assert scene.close().answers is None


@pytest.mark.parametrize(
    "now",
    [
        [],
        [another(spec={"suspend": True})],
        [another(conditions=["Completed"])],
        [another(uid="u-3")],
        [another(spec={"replicatedJobs": [replicated_job("other")]})],
    ],
    ids=["gone", "suspended", "completed", "another one of its name", "without such a Job"],
)
def test_a_leader_that_does_not_count_by_what_its_jobset_is_now_takes_no_answer(now: list[Json]) -> None:
    scene = with_a_leader_of_another()
    scene.api.workloads += now
    assert scene.close().answers == 1
    assert scene.api.listed.count("gemma") == 1


def test_a_leader_whose_jobset_cannot_be_read_takes_the_answer() -> None:
    scene = with_a_leader_of_another()
    scene.api.workload_error = Temporary("the API server does not answer")
    assert scene.close().answers is None


def test_nothing_is_listed_for_reports_that_answer_no_question() -> None:
    scene = Scene()
    scene.site.cordon(1)
    scene.site.watched.pass_time(15)
    assert scene.report().usable == 3
    assert scene.api.listed == []
