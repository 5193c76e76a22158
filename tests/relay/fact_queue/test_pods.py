"""Pods by themselves: what the relay reads of them, and what it publishes; each is a workload, and leads it."""

from __future__ import annotations

from typing import Any

import pytest

from relay import translate
from relay.hosts.occupants import HostPod
from relay.notices.unserved_pod import UnservedPod, unserved
from relay.objects import Kind
from tests.relay.closing import Site
from tests.relay.objects import TOPOLOGY, Json, container, group_pod, job_pod, node, pod, single_pod
from tests.relay.watched import Watched, demand, occupants, states
from tpu_slices.domain.model.clusters import PodsOf
from tpu_slices.domain.model.facts import Reach, SlicesWanted, WorkloadState
from tpu_slices.domain.model.slices import OwnerKind

UID = "u-web-1-x2x4z"
HOST = "tpu-llama-0-aaaaaaaaaaaaa-1-0"


class WatchedPods(Watched):
    """A fact queue that sees single pods as their own watch shows them."""

    def sees(self, *pods: Json) -> None:
        for each in pods:
            seen = translate.pod_by_itself(each)
            assert seen is not None
            self.queue.saw(seen, self.now)

    def loses(self, obj: Json, version: int = 100) -> None:
        seen = translate.pod_by_itself(obj)
        assert seen is not None
        self.queue.lost(Kind.PODS, seen.identity, self.now, seen, str(version))


@pytest.fixture
def watched() -> WatchedPods:
    return WatchedPods()


def test_a_pod_that_waits_asks_for_a_slice_of_its_own_at_once(watched: WatchedPods) -> None:
    watched.sees(single_pod())
    (fact,) = watched.due_facts()
    assert isinstance(fact, SlicesWanted)
    owner, (request,), (leader,) = fact.workload.owner, fact.requests, fact.waiting
    assert (owner.kind, owner.name, owner.uid) == (OwnerKind.POD, "web-1-x2x4z", UID)
    assert (request.made_by, request.pod_key, request.replicas, request.parallelism) == ("Deployment", "u-rs", 1, 1)
    assert leader.reach is Reach.OWN


def test_two_pods_of_a_deployment_are_two_workloads(watched: WatchedPods) -> None:
    watched.sees(single_pod("web-1-a"), single_pod("web-1-b"))
    assert demand(watched.due_facts()) == [[0], [0]]
    watched.pass_time(5)
    assert sorted(watched.listed()) == ["u-web-1-a", "u-web-1-b"]


@pytest.mark.parametrize(
    ("parts", "state"),
    [
        ({"status": {"phase": "Succeeded"}}, WorkloadState.COMPLETED),
        ({"status": {"phase": "Failed"}}, WorkloadState.FAILED),
        ({"metadata": {"deletionTimestamp": "2026-11-01T12:00:30Z"}}, WorkloadState.DELETED),
    ],
)
def test_its_life_is_that_of_the_pod(watched: WatchedPods, parts: dict[str, Any], state: WorkloadState) -> None:
    watched.see(node())
    watched.sees(single_pod(node=HOST))
    watched.pass_time(15)
    watched.due_facts()
    over = single_pod(node=HOST, **parts) if "metadata" not in parts else single_pod(node=HOST)
    over["metadata"] |= parts.get("metadata", {})
    watched.sees(over)
    assert states(watched.due_facts()) == [(UID, state)]


def test_a_pod_that_is_deleted_is_told_of_once(watched: WatchedPods) -> None:
    watched.sees(single_pod())
    watched.due_facts()
    watched.loses(single_pod())
    assert states(watched.due_facts()) == [(UID, WorkloadState.DELETED)]
    watched.pass_time(600)
    assert watched.listed() == []


def test_the_pod_after_one_that_ended_asks_once_that_end_is_known(watched: WatchedPods) -> None:
    """Else a slice may be made for it before the one that is left is offered to it."""
    watched.sees(single_pod("web-1-a"))
    watched.due_facts()
    watched.loses(single_pod("web-1-a"))
    watched.sees(single_pod("web-1-b"))
    assert states(facts := watched.due_facts()) == [("u-web-1-a", WorkloadState.DELETED)]
    assert demand(facts) == []
    watched.pass_time(2)
    assert demand(watched.due_facts()) == [[0]]


def test_a_list_that_lacks_it_does_not_say_that_it_was_deleted(watched: WatchedPods) -> None:
    watched.sees(single_pod())
    watched.due_facts()
    watched.relist(Kind.PODS)
    assert states(watched.due_facts()) == [(UID, WorkloadState.MISSING)]


def test_a_pod_that_runs_occupies_its_host(watched: WatchedPods) -> None:
    watched.see(node())
    watched.sees(single_pod(node=HOST))
    watched.pass_time(15)
    assert occupants(watched.due_facts()) == [[UID]]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(single_pod(key=""), id="judged to run on static hosts"),
        pytest.param(single_pod(spec={"affinity": None}), id="not judged"),
        pytest.param(pod(), id="of a JobSet"),
        pytest.param(job_pod(), id="of a Job"),
        pytest.param(group_pod(), id="of a LeaderWorkerSet"),
        pytest.param(single_pod(spec={"containers": [container(0)]}), id="without chips"),
        pytest.param(
            single_pod(
                metadata={
                    "ownerReferences": [
                        {
                            "apiVersion": "ray.io/v1",
                            "kind": "RayCluster",
                            "name": "ray",
                            "uid": "u-ray",
                            "controller": True,
                        }
                    ]
                }
            ),
            id="of Ray",
        ),
    ],
)
def test_other_pods_are_none_of_their_own(other: Json) -> None:
    assert translate.pod_by_itself(other) is None


def test_a_tenant_who_writes_a_key_gets_no_slice_by_it() -> None:
    forged = single_pod(key="u-other")
    (term, static) = forged["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    term["matchExpressions"] += static["matchExpressions"]
    assert translate.pod_by_itself(forged) is None
    elsewhere = single_pod(metadata={"namespace": "theirs"})
    assert translate.pod_by_itself(elsewhere) is None


@pytest.mark.parametrize("references", [[], single_pod()["metadata"]["ownerReferences"]])
def test_a_pod_that_runs_is_known_on_its_host_even_if_its_controller_leaves_it(references: list[Json]) -> None:
    found = translate.pod_on_a_host(single_pod(node=HOST, metadata={"ownerReferences": references}))
    assert isinstance(found, HostPod)
    assert found.member is not None
    assert found.member.workload.kind is OwnerKind.POD


def why(obj: Json, *serve: PodsOf) -> str | None:
    found = unserved(obj, serve=serve)
    return None if found is None else found.unserved.why if found.unserved else ""


def test_only_those_are_told_that_they_get_none_that_do_not() -> None:
    assert unserved(single_pod(), serve=[PodsOf.DEPLOYMENT]) is None
    assert isinstance(unserved(single_pod(), serve=[PodsOf.POD]), UnservedPod)
    assert why(single_pod(), PodsOf.POD) == "", "by its owner"
    assert "neither the admission policy nor the webhook" in (why(single_pod(key=""), PodsOf.DEPLOYMENT) or "")
    parts = single_pod(key="", spec={"nodeSelector": {TOPOLOGY: "2x2x2"}})
    assert "none of its containers has all chips of 2x2x2" in (why(parts, PodsOf.DEPLOYMENT) or "")


def answered(site: Site, seconds: float) -> bool:
    """Return whether it is answered within so many seconds that nobody is on the hosts."""
    return 1 in [fact.answers for fact in site.after(seconds)]


@pytest.mark.parametrize(("left", "waits"), [(True, True), (False, False)])
def test_the_hosts_that_a_pod_left_are_left_to_the_next_one_for_some_seconds(left: bool, waits: bool) -> None:
    """A StatefulSet makes it once the one before is gone: nobody is on the hosts for a moment."""
    site, over = Site(), single_pod(node=HOST)
    over["metadata"]["deletionTimestamp"] = "2026-11-01T12:00:30Z"
    for each in (single_pod(node=HOST), over) if left else ():
        seen = translate.pod_by_itself(each)
        assert seen is not None
        site.watched.queue.saw(seen, site.watched.now)
    site.ask()
    site.patch()
    assert not answered(site, 4)
    site.watched.queue.lost(Kind.PODS, UID, site.watched.now, None, "200")
    assert answered(site, 2) is not waits
    assert answered(site, 4) is waits
