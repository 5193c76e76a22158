"""Which JobSets are completed, and which fields and changes are refused. tests/cluster asks a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tpu_standins.clients.objects import Object, copied
from tpu_standins.clients.reviews import Refused
from tpu_standins.jobset.fields import admitted
from tpu_standins.testing.jobsets import created, jobset, pod_spec, replicated_job
from tpu_standins.testing.objects import FakeObjects


def plain(**spec: Any) -> Object:
    """Return a JobSet that leaves out all that has a default."""
    job = {"parallelism": 2, "completions": 2, "template": {"spec": pod_spec()}}
    return jobset("train", {"name": "slice", "template": {"spec": job}}, **spec)


def pods(obj: Object) -> Object:
    template: Object = obj["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    return template


def with_jobs(**fields: Any) -> Object:
    return jobset("train", replicated_job() | fields)


def refusal(ask: Callable[[], object]) -> str:
    with pytest.raises(Refused) as refused:
        ask()
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    return refused.value.message


def update(old: Object, new: Object) -> Object:
    return admitted(FakeObjects(), {"operation": "UPDATE", "object": new, "oldObject": old})


def changed(change: Callable[[Object], object], **spec: Any) -> Object:
    """Return a JobSet after an update. Raise Refused."""
    old = created(plain(**spec))
    new = copied(old)
    change(new)
    return update(old, new)


def test_a_new_jobset_is_completed() -> None:
    made = created(plain(failurePolicy={"maxRestarts": 1}))
    first = made["spec"]["replicatedJobs"][0]
    assert (first["groupName"], first["replicas"]) == ("default", 1)
    assert first["template"]["spec"]["completionMode"] == "Indexed"
    assert pods(made)["spec"]["restartPolicy"] == "OnFailure"
    assert made["spec"]["failurePolicy"] == {"maxRestarts": 1, "restartStrategy": "Recreate"}


def test_what_was_said_is_left_alone() -> None:
    said = plain()
    pods(said)["spec"]["restartPolicy"] = "Never"
    assert pods(created(said))["spec"]["restartPolicy"] == "Never"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (plain(replicatdJobs=[]), "spec.replicatdJobs"),
        (plain(suspend="no"), "spec.suspend"),
        (plain(ttlSecondsAfterFinished=-1), "spec.ttlSecondsAfterFinished"),
        (plain(successPolicy={"operator": "All", "targetReplicatedJobs": ["slice"]}), "spec.successPolicy.target"),
        (plain(failurePolicy={"rules": [{"action": "RestartJob"}]}), "spec.failurePolicy.rules[0].action"),
        (
            plain(failurePolicy={"rules": [{"action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]}]}),
            "spec.failurePolicy.rules[0].onJobFailureReasons[0]",
        ),
        (with_jobs(groupName="ring"), "spec.replicatedJobs[0].groupName"),
        (with_jobs(replicas=1001), "spec.replicatedJobs[0].replicas"),
        (with_jobs(replicas=True), "spec.replicatedJobs[0].replicas"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_covered_is_refused_with_the_field_and_the_remedy(wrong: Object, field: str) -> None:
    message = refusal(lambda: created(wrong))
    assert field in message
    assert "`make kubernetes` builds" in message


def test_two_replicated_jobs_of_a_name_are_refused() -> None:
    twice = jobset("train", replicated_job(), replicated_job())
    assert "spec.replicatedJobs: Duplicate value: slice" in refusal(lambda: created(twice))


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("replicatedJobs", lambda new: new["spec"]["replicatedJobs"][0].update(replicas=3)),
        ("managedBy", lambda new: new["spec"].update(managedBy="example.com/other")),
        ("replicatedJobs", lambda new: pods(new)["spec"].update(nodeSelector={"a": "b"})),
    ],
)
def test_neither_jobs_nor_policies_change_while_it_runs(field: str, change: Callable[[Object], object]) -> None:
    assert f"spec.{field}: Forbidden: only suspend and ttlSecondsAfterFinished change" in refusal(
        lambda: changed(change)
    )


def test_it_is_suspended_and_its_time_to_live_changes_at_any_time() -> None:
    wanted = {"suspend": True, "ttlSecondsAfterFinished": 7}
    assert wanted.items() <= changed(lambda new: new["spec"].update(wanted))["spec"].items()


def test_the_same_manifest_again_is_no_change() -> None:
    made = created(plain())
    assert update(made, plain())["spec"] == made["spec"]


@pytest.mark.parametrize(("before", "after"), [(True, True), (True, False), (False, True)])
def test_placement_does_not_change_even_while_suspended(*, before: bool, after: bool) -> None:
    """Kueue changes it, which does not run there."""

    def place(new: Object) -> None:
        new["spec"]["suspend"] = after
        pods(new)["spec"] |= {"nodeSelector": {"a": "b"}}

    assert "spec.replicatedJobs: Forbidden" in refusal(lambda: changed(place, suspend=before))


def test_an_image_does_not_change_even_while_suspended() -> None:
    def paint(new: Object) -> None:
        pods(new)["spec"]["containers"][0]["image"] = "python:3.13"

    assert "spec.replicatedJobs: Forbidden" in refusal(lambda: changed(paint, suspend=True))
