import re
from collections.abc import Mapping
from typing import Any

import pytest

from tests.relay.objects import Json, container, job, jobset, leader_worker_set, replicated_job
from tpu_slices.domain.model.gangs import GANG, GANG_HOLD_FOR
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.wire.readers import READERS

GATE = {"schedulingGates": [{"name": GANG}]}


def asking(value: str) -> Json:
    return {"annotations": {GANG: value}}


def of_one(name: str = "workers", **fields: Any) -> Json:
    return {**replicated_job(name), **fields}


def after(name: str, other: str, status: str) -> Json:
    return of_one(name, dependsOn=[{"name": other, "status": status}])


def held(name: str) -> Json:
    return replicated_job(name, schedulingGates=GATE["schedulingGates"])


def labelled(obj: Json) -> Json:
    obj["template"]["spec"]["template"]["metadata"] = {"labels": {GANG: "true"}}
    return obj


def gangs(*jobs: Json, **metadata: Any) -> Mapping[str, str]:
    """Return the gangs of a JobSet's replicatedJobs with chips."""
    read = READERS[OwnerKind.JOBSET].requests(jobset(metadata=metadata, spec={"replicatedJobs": [*jobs]}))
    return {each.replicated_job: each.gang for each in read}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("all", {"a": "all", "b": "all"}),
        ("true", {"a": "all", "b": "all"}),
        ("replicatedjob", {"a": "a", "b": "b"}),
        ("none", {"a": "", "b": ""}),
        ("false", {"a": "", "b": ""}),
        ("", {"a": "", "b": ""}),
    ],
)
def test_a_jobset_says_by_its_annotation_which_of_its_claims_are_a_gang(value: str, found: Mapping[str, str]) -> None:
    assert gangs(of_one("a"), of_one("b"), **asking(value)) == found


def test_a_jobset_that_says_nothing_is_no_gang() -> None:
    assert gangs(of_one("a")) == {"a": ""}


@pytest.mark.parametrize("job", [held("a"), labelled(replicated_job("a"))], ids=["by a gate", "by a label"])
def test_without_an_annotation_the_templates_that_are_held_are_a_gang(job: Json) -> None:
    assert gangs(job, of_one("b")) == {"a": "all", "b": ""}


def test_a_jobset_that_is_no_gang_is_none_whatever_its_templates_say() -> None:
    assert gangs(labelled(held("a")), **asking("none")) == {"a": ""}


@pytest.mark.parametrize(("written", "seconds"), [("30m", 1_800), ("90s", 90), ("1.5h", 5_400), ("2d", 172_800)])
def test_a_workload_says_for_how_long_slices_of_its_gangs_are_held(written: str, seconds: int) -> None:
    metadata = {"annotations": {GANG: "all", GANG_HOLD_FOR: written}}
    (read,) = READERS[OwnerKind.JOBSET].requests(jobset(metadata=metadata, spec={"replicatedJobs": [of_one("a")]}))
    assert read.gang_hold_for == seconds


def test_what_is_of_no_gang_is_not_held() -> None:
    metadata = {"annotations": {GANG_HOLD_FOR: "30m"}}
    (read,) = READERS[OwnerKind.JOBSET].requests(jobset(metadata=metadata, spec={"replicatedJobs": [of_one("a")]}))
    assert read.gang_hold_for == 0


@pytest.mark.parametrize("written", ["", "30", "half an hour", "0s", "-5m", "400d", "1e9h", f"{'9' * 400}d"])
def test_a_time_that_is_none_is_refused_by_its_key(written: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"metadata.annotations[{GANG_HOLD_FOR}]:")):
        gangs(of_one("a"), annotations={GANG: "all", GANG_HOLD_FOR: written})


def test_what_has_no_chips_is_of_no_gang() -> None:
    assert gangs(of_one("a"), replicated_job("cpu", containers=[container(0)]), **asking("all")) == {"a": "all"}


@pytest.mark.parametrize("pods", [2, 1])
def test_what_nobody_leads_is_of_no_gang_as_no_slice_is_made_for_it(pods: int) -> None:
    apart = of_one("b")
    apart["template"]["spec"] |= {"completionMode": "NonIndexed", "parallelism": pods, "completions": pods}
    assert gangs(of_one("a"), apart, **asking("all")) == {"a": "all", "b": ""}
    assert gangs(of_one("a"), apart, **asking("replicatedjob")) == {"a": "a", "b": ""}


def test_what_comes_after_another_is_ready_stands_with_that() -> None:
    assert gangs(of_one("a"), after("b", "a", "Ready"), **asking("all")) == {"a": "all", "b": "all"}


def test_what_comes_after_another_is_complete_is_a_gang_of_its_own() -> None:
    jobs = of_one("a"), after("b", "a", "Complete"), after("c", "b", "Ready"), after("d", "c", "Complete")
    assert gangs(*jobs, **asking("all")) == {"a": "all", "b": "all after a", "c": "all after a", "d": "all after c"}


def test_of_several_that_complete_before_the_last_one_names_the_gang() -> None:
    both = [{"name": "b", "status": "Complete"}, {"name": "a", "status": "Complete"}]
    found = gangs(of_one("a"), of_one("b"), of_one("c", dependsOn=both), **asking("all"))
    assert found == {"a": "all", "b": "all", "c": "all after b"}


def test_a_dependency_on_what_is_not_there_changes_nothing() -> None:
    assert gangs(after("a", "b", "Complete"), after("b", "a", "Ready"), **asking("all")) == {"a": "all", "b": "all"}


@pytest.mark.parametrize("value", ["all", "true", "replicatedjob"])
@pytest.mark.parametrize(
    ("kind", "obj"),
    [(OwnerKind.JOB, job), (OwnerKind.LEADER_WORKER_SET, leader_worker_set)],
    ids=["Job", "LeaderWorkerSet"],
)
def test_the_claims_of_a_job_or_of_groups_are_one_gang_if_they_are_any(kind: OwnerKind, obj: Any, value: str) -> None:
    asked = obj()
    asked["metadata"] |= asking(value)
    assert [each.gang for each in READERS[kind].requests(asked)] == ["all"]


def test_a_job_whose_template_is_held_is_a_gang() -> None:
    obj = job()
    obj["spec"]["template"]["spec"] |= GATE
    assert [each.gang for each in READERS[OwnerKind.JOB].requests(obj)] == ["all"]
    obj["metadata"] |= asking("none")
    assert [each.gang for each in READERS[OwnerKind.JOB].requests(obj)] == [""]


def test_groups_are_a_gang_whichever_template_is_held() -> None:
    obj = leader_worker_set()
    obj["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"] |= GATE
    assert [each.gang for each in READERS[OwnerKind.LEADER_WORKER_SET].requests(obj)] == ["all"]


def test_an_annotation_that_would_say_more_of_a_gang_is_refused_with_its_field() -> None:
    more = f"{GANG}-min"
    with pytest.raises(ValueError, match=re.escape(f"metadata.annotations[{more}] is not supported: remove it")):
        gangs(of_one(), annotations={GANG: "all", more: "3"})


def test_another_value_of_the_annotation_is_refused_with_the_field_and_the_values() -> None:
    with pytest.raises(ValueError, match=r"metadata\.annotations\[tpu-provisioner.*/gang\]: \"2 of 3\" is not .* all"):
        gangs(of_one("a"), **asking("2 of 3"))
