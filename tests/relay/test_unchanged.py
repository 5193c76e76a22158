"""Events of pods that tell nothing new are skipped; whatever changes what is told of a leader is read."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from relay import translate
from relay.objects import Bookmarked, Kind, Lost, Saw
from relay.watch import Event, Patience, Source, Watch, WatchLost
from tests.relay.objects import Json, job_pod, pod
from tests.relay.watched import objects_kept
from tpu_slices_simulator.objects import patched

SCHEDULED = {"type": "PodScheduled"}
BOUND = {"spec": {"nodeName": "host-0"}, "status": {"phase": "Running", "conditions": []}}
STARTED = {"status": {"containerStatuses": [{"name": "main", "ready": True}]}}
CHANGES: dict[str, Json] = {
    "bound": BOUND,
    "schedulable": {
        "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}
    },
    "ended": {"status": {"phase": "Succeeded"}},
    "gated": {"spec": {"schedulingGates": [{"name": "queue"}]}},
    "being deleted": {"metadata": {"deletionTimestamp": "2026-11-01T12:00:00Z"}},
    "labelled": {"metadata": {"labels": {"team": "vision"}}},
    "opted out": {"metadata": {"annotations": {"tpu-provisioner.cloud.google.com/disable-autoprovisioning": "true"}}},
    "another selector": {"spec": {"nodeSelector": {"team": "vision"}}},
    "without an owner": {"metadata": {"ownerReferences": []}},
}


def watch(*shown: Json) -> tuple[Watch[Any, Any], list[Any]]:
    """Return a watch that has seen these pods, and what it puts on the queue from now on."""
    put: list[Any] = []
    source: Source[Any, Any] = Source(
        Kind.LEADERS,
        lambda **_: pytest.fail("it fetches"),
        translate.leader,
        "uid",
        "pods",
        told_by=translate.told_by_pod,
    )
    one = Watch(source, put.append, Patience(silence=90.0, seconds=lambda: 0.0), random.Random(0))
    one.pass_on(events(*shown), "1")
    put.clear()
    return one, put


def events(*pods: Json, first: int = 10, type_: str = "MODIFIED") -> Iterable[Event]:
    return [Event(type_, each, str(version)) for version, each in enumerate(pods, start=first)]


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_what_changes_a_leader_is_told_by_its_pod(changes: Json) -> None:
    before, after = pod(), patched(pod(), changes)
    assert translate.told_by_pod(before) != translate.told_by_pod(after)
    one, put = watch(before)
    one.pass_on(events(after, first=20), "19")
    (seen,) = put
    assert seen == Saw(Kind.LEADERS, translate.leader(after), "20")


def test_events_about_containers_only_tell_how_far_the_watch_is() -> None:
    one, put = watch(pod(), job_pod())
    started = [patched(each, STARTED) for each in (pod(), job_pod(), pod(), pod())]
    assert translate.leader(started[0]) == translate.leader(pod())
    assert one.pass_on(events(*started, first=20), "19") == "23"
    assert put == [Bookmarked(Kind.LEADERS, "23")]


@pytest.mark.parametrize("type_", ["ADDED", "MODIFIED", "DELETED"])
def test_of_a_pod_that_is_no_leader_nothing_is_told_or_kept(type_: str) -> None:
    other = pod(labels={"batch.kubernetes.io/job-completion-index": "7"})
    one, put = watch(other)
    many = [patched(other, {**STARTED, "metadata": {"uid": f"other-{number}"}}) for number in range(100)]
    kept = objects_kept(one)
    one.pass_on(events(*many, first=20, type_=type_), "19")
    assert put == [Bookmarked(Kind.LEADERS, "119")]
    assert objects_kept(one) == kept + len((put[0], put[0].version))


def test_a_pod_that_was_deleted_and_comes_again_is_read() -> None:
    one, put = watch(pod())
    one.pass_on(events(pod(), first=20, type_="DELETED"), "19")
    one.pass_on(events(pod(), first=21), "20")
    assert [type(each) for each in put] == [Lost, Saw]


def test_what_is_not_relevant_any_more_is_lost_and_only_what_was_deleted_is_told_so() -> None:
    leader, follower = pod(), pod(labels={"batch.kubernetes.io/job-completion-index": "7"})
    one, put = watch(leader)
    follower["metadata"]["uid"] = leader["metadata"]["uid"]
    one.pass_on(events(follower, first=20), "19")
    one.pass_on(events(leader, first=21), "20")
    one.pass_on(events(leader, first=22, type_="DELETED"), "21")
    assert [each.deleted for each in put if isinstance(each, Lost)] == [False, True]


def test_a_pod_that_cannot_be_parsed_is_tried_each_time() -> None:
    broken = patched(
        pod(), {"metadata": {"labels": {"jobset.sigs.k8s.io/job-index": "0"}}, "spec": {"nodeSelector": {"a": 1}}}
    )
    one, put = watch(broken)
    one.pass_on(events(broken, first=20), "19")
    (seen,) = put
    assert isinstance(seen, Saw)


def test_a_watch_that_goes_back_is_lost_also_by_an_event_that_tells_nothing() -> None:
    one, _ = watch(pod())
    with pytest.raises(WatchLost):
        one.pass_on(events(pod(), first=20), "21")
