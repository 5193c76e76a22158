"""The pods of a Job on its hosts: how many run is told once it is settled, and how it is with those that do not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from relay.pods.reading import pod_of_a_group
from tests.relay.objects import (
    Json,
    bound_pod,
    group_pod,
    jobset,
    leader_worker_set,
    pod,
    replicated_job,
    worker_pod,
)
from tests.relay.watched import START, Watched, nodes, reports
from tpu_slices.domain.model.facts import Fact
from tpu_slices.domain.model.pods import JobPods, PodTrouble

HOSTS = 4
SAID = "0/9 nodes are available: 4 Insufficient google.com/tpu."


def training() -> Json:
    """Return a JobSet of one Job of four pods."""
    job = replicated_job(replicas=1)
    job["template"]["spec"] |= {"parallelism": HOSTS, "completions": HOSTS}
    return jobset(spec={"replicatedJobs": [job]})


def host(rank: int) -> str:
    return f"tpu-llama-0-aaaaaaaaaaaaa-1-{rank}"


def on_host(rank: int, node: str | None = None, at: datetime = START, **status: Any) -> Json:
    """Return a pod of the Job that came to a host at a time, and runs there unless its status says otherwise."""
    made = bound_pod(0, node or host(rank), uid=f"pod-{rank}", labels=indexed(rank))
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": f"{at:%Y-%m-%dT%H:%M:%SZ}"}]
    made["status"] = {"phase": "Running", "conditions": conditions, **status}
    made["metadata"]["name"] = f"llama-workers-0-{rank}-x2x4z"
    return made


def indexed(rank: int) -> dict[str, str]:
    return {"batch.kubernetes.io/job-completion-index": str(rank)}


def waits(rank: int, since: datetime = START - timedelta(hours=1), message: str = SAID) -> Json:
    """Return a pod of the Job that cannot be scheduled."""
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    conditions = [{**said, "lastTransitionTime": f"{since:%Y-%m-%dT%H:%M:%SZ}"}]
    made = pod(0, uid=f"pod-{rank}", labels=indexed(rank), status={"conditions": conditions})
    made["metadata"]["name"] = f"llama-workers-0-{rank}-x2x4z"
    return made


def told(facts: Sequence[Fact]) -> list[JobPods | None]:
    return [next(iter(each.pods), None) for each in reports(facts)]


def settled(watched: Watched, seconds: float = 150) -> list[JobPods | None]:
    """Return what is told of the pods meanwhile."""
    found = told(watched.due_facts())
    for _ in range(int(seconds // 15)):
        watched.pass_time(15)
        found += told(watched.due_facts())
    return found


def test_that_all_pods_run_is_told_with_the_last_of_them(watched: Watched) -> None:
    watched.see(training(), *nodes(HOSTS), *(on_host(rank) for rank in range(HOSTS)))
    assert settled(watched)[-1] == JobPods(pod_uid="pod-0", needed=HOSTS, running=HOSTS)


def test_pods_that_come_within_two_minutes_are_told_of_once(watched: Watched) -> None:
    watched.see(training(), *nodes(HOSTS), on_host(0))
    assert {*settled(watched, 60)} == {None}
    watched.see(*(on_host(rank) for rank in range(1, HOSTS)))
    assert settled(watched) == [JobPods(pod_uid="pod-0", needed=HOSTS, running=HOSTS)]


def test_a_pod_that_is_not_scheduled_is_told_in_the_schedulers_words_since_its_job_is_on_the_hosts(
    watched: Watched,
) -> None:
    watched.see(training(), *nodes(HOSTS), waits(3), *(on_host(rank) for rank in range(3)))
    [last] = settled(watched)[-1:]
    assert last is not None
    assert last.trouble is not None
    assert (last.running, last.trouble.pods, last.trouble.kind) == (3, 1, PodTrouble.UNSCHEDULABLE)
    assert (last.trouble.pod, last.trouble.words) == ("llama-workers-0-3-x2x4z", SAID)
    assert last.trouble.since == START


def test_trouble_is_told_once_and_its_end_at_once(watched: Watched) -> None:
    watched.see(training(), *nodes(HOSTS), waits(3), *(on_host(rank) for rank in range(3)))
    settled(watched)
    assert settled(watched, 3_600) == []
    watched.see(on_host(3))
    assert settled(watched) == [JobPods(pod_uid="pod-0", needed=HOSTS, running=HOSTS)]


def test_what_the_scheduler_says_otherwise_of_the_same_pod_is_not_told_again(watched: Watched) -> None:
    watched.see(training(), *nodes(HOSTS), waits(3), *(on_host(rank) for rank in range(3)))
    settled(watched)
    for count in range(100, 140):
        watched.see(waits(3, message=SAID.replace("9", str(count))))
        assert settled(watched, 15) == []


def test_pods_that_do_not_exist_are_told(watched: Watched) -> None:
    watched.see(training(), *nodes(HOSTS), on_host(0))
    [last] = settled(watched)[-1:]
    assert last is not None
    assert last.trouble is not None
    assert (last.trouble.kind, last.trouble.pods, last.trouble.pod) == (PodTrouble.MISSING, 3, "")


def test_of_several_the_worst_is_named(watched: Watched) -> None:
    image = {"name": "main", "image": "train:2", "state": {"waiting": {"reason": "ErrImagePull", "message": "denied"}}}
    broken = on_host(2, phase="Pending", containerStatuses=[image])
    watched.see(training(), *nodes(HOSTS), on_host(0), on_host(1), broken, waits(3))
    [last] = settled(watched)[-1:]
    assert last is not None
    assert last.trouble is not None
    assert (last.trouble.kind, last.trouble.pods) == (PodTrouble.IMAGE, 2)
    assert last.trouble.words == "container main, image train:2: denied"


def test_pods_that_run_on_other_hosts_are_told(watched: Watched) -> None:
    watched.see(training(), *nodes(HOSTS), on_host(3, node="elsewhere"), *(on_host(rank) for rank in range(3)))
    assert settled(watched)[-1] == JobPods(pod_uid="pod-0", needed=HOSTS, running=HOSTS, apart=1)


def test_pods_that_have_succeeded_do_not_lack(watched: Watched) -> None:
    watched.see(training(), *nodes(HOSTS), *(on_host(rank) for rank in range(HOSTS)))
    settled(watched)
    watched.see(*(on_host(rank, phase="Succeeded") for rank in range(1, HOSTS)))
    assert settled(watched) == []


def test_a_pod_that_something_else_made_counts_nowhere(watched: Watched) -> None:
    forged = on_host(3)
    forged["metadata"]["ownerReferences"] = []
    watched.see(training(), *nodes(HOSTS), forged, *(on_host(rank) for rank in range(3)))
    [last] = settled(watched)[-1:]
    assert last is not None
    assert last.trouble is not None
    assert last.trouble.kind is PodTrouble.MISSING


@pytest.mark.parametrize("gone", [1, 2, 3])
def test_a_pod_that_is_gone_is_told_after_two_minutes(watched: Watched, gone: int) -> None:
    watched.see(training(), *nodes(HOSTS), *(on_host(rank) for rank in range(HOSTS)))
    settled(watched)
    watched.pass_time(3600)
    gone_at = watched.now
    watched.lose(on_host(gone))
    assert settled(watched, 105) == []
    [last] = settled(watched, 180)[-1:]
    assert last is not None
    assert last.trouble is not None
    assert (last.running, last.trouble.kind) == (3, PodTrouble.MISSING)
    assert gone_at <= last.trouble.since <= gone_at + timedelta(seconds=15)


def test_a_pod_that_is_replaced_within_two_minutes_is_not_told(watched: Watched) -> None:
    watched.see(training(), *nodes(HOSTS), *(on_host(rank) for rank in range(HOSTS)))
    settled(watched)
    for _ in range(5):
        watched.pass_time(3600)
        watched.lose(on_host(2))
        assert settled(watched, 90) == []
        watched.see(on_host(2, at=watched.now))
        assert settled(watched, 90) == []


def test_a_pod_of_an_earlier_set_of_that_name_counts_nowhere(watched: Watched) -> None:
    """The pods of a group do not name their set by its UID."""
    serve, status = leader_worker_set(), {"phase": "Running", "conditions": on_host(0)["status"]["conditions"]}
    serve["metadata"]["creationTimestamp"] = "2026-11-01T11:00:00Z"

    def runs(made: Json, rank: int, created: str) -> Json:
        made["metadata"]["creationTimestamp"] = created
        return {**made, "spec": {**made["spec"], "nodeName": host(rank)}, "status": status}

    workers = [worker_pod(0, rank, leader_has_chips=True) for rank in (1, 2, 3)]
    now, before = "2026-11-01T11:30:00Z", "2026-11-01T10:00:00Z"
    pods = [runs(group_pod(), 0, now), *(runs(each, rank, now) for rank, each in enumerate(workers[:2], 1))]
    watched.see(serve, *nodes(HOSTS))
    for each in (*pods, runs(workers[2], 3, before)):
        seen = pod_of_a_group(each)
        assert seen is not None
        watched.queue.saw(seen, watched.now)
    [last] = settled(watched)[-1:]
    assert last is not None
    assert last.trouble is not None
    assert (last.running, last.trouble.kind) == (3, PodTrouble.MISSING)
