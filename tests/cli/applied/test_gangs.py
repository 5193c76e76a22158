"""What `slices plan` says of gangs: what one is, which never stands, and what goes wrong with one that may."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.builders import CLUSTER, settings
from tests.cli.applied.asking import Json, a_job, a_jobset, answer, groups, invalid, job_of, pod_of
from tests.cli.conftest import Slices
from tests.cli.stage import Stage
from tests.world import World
from tpu_slices.domain.model.clusters import Policy
from tpu_slices.domain.model.facts import Pinning
from tpu_slices.domain.model.gangs import ADMISSION_CHECKS, GANG, Gangs

GATE = {"name": GANG}
QUEUE = "kueue.x-k8s.io/queue-name"


def gang(replicas: int = 2, value: str = "all", *, gated: bool = True) -> Any:
    """Return a JobSet of so many slices of 16 chips that is a gang, and holds its pods itself if it is gated."""
    jobset = a_jobset()
    jobset["metadata"]["annotations"] |= {GANG: value}
    jobset["spec"]["replicatedJobs"][0]["replicas"] = replicas
    if gated:
        pod_of(jobset)["schedulingGates"] = [GATE]
    return jobset


def told(plan: Json) -> list[str]:
    return [each["message"] for each in plan["gangs"]]


def about(word: str, plan: Json) -> list[str]:
    """Return the warnings that have a word."""
    return [each for each in plan["warnings"] if word in each]


def test_a_gang_is_told_what_it_means_to_be_one(slices: Slices) -> None:
    (found,) = answer(slices, gang())["gangs"]
    assert found["message"] == (
        "JobSet v5e is a gang: 2 slices, 32 chips, together or not at all: nothing is bought before all of them may "
        "be, and their pods start together. Slices that stand are held, and billed, for 1 hour while others cannot be "
        "made, for 4 hours at most, and then let go"
    )
    assert {key: found[key] for key in ("kind", "namespace", "name", "gang", "slices", "chips")} == {
        "kind": "JobSet",
        "namespace": "default",
        "name": "v5e",
        "gang": "all",
        "slices": 2,
        "chips": 32,
    }
    assert answer(slices, a_jobset())["gangs"] == []


def test_it_is_in_the_table_too(slices: Slices) -> None:
    shown = slices("plan", "-f", "-", input=yaml.safe_dump(gang())).stdout
    assert "JobSet v5e is a gang: 2 slices, 32 chips, together or not at all" in shown


def test_each_gang_of_a_jobset_is_told_by_its_name(slices: Slices) -> None:
    jobset = gang(value="replicatedjob")
    other = yaml.safe_load(yaml.safe_dump(jobset["spec"]["replicatedJobs"][0])) | {"name": "evaluate", "replicas": 1}
    jobset["spec"]["replicatedJobs"].append(other)
    first, second = told(answer(slices, jobset))
    assert first.startswith("JobSet v5e, gang workers: 2 slices, 32 chips, together or not at all")
    assert second == (
        "JobSet v5e, gang evaluate: one slice, whose pods start together, once all of its hosts are ready"
    )


def test_jobs_and_groups_may_be_gangs(slices: Slices) -> None:
    service, job = a_job()
    whole = groups()
    for each in (job, whole):
        each["metadata"]["annotations"] = {GANG: "true"}
    of_job, of_groups = told(answer(slices, service, job, whole))
    assert of_job.startswith("Job indexed is a gang: one slice")
    assert of_groups.startswith("LeaderWorkerSet serve is a gang: 2 slices")


def test_a_gang_of_which_a_slice_is_refused_gets_none(slices: Slices) -> None:
    jobset = gang()
    other = yaml.safe_load(yaml.safe_dump(jobset["spec"]["replicatedJobs"][0])) | {"name": "evaluate", "replicas": 1}
    other["template"]["spec"]["template"]["spec"]["nodeSelector"]["cloud.google.com/gke-tpu-topology"] = "4x5"
    jobset["spec"]["replicatedJobs"].append(other)
    assert told(answer(slices, jobset, code=3)) == [
        "JobSet v5e is a gang: 1 of its 3 slices is refused, so that none is made"
    ]


def test_nothing_more_is_told_of_a_gang_that_is_refused_as_a_whole(slices: Slices) -> None:
    jobset = gang()
    pod_of(jobset)["nodeSelector"]["cloud.google.com/gke-flex-start"] = "true"
    plan = answer(slices, jobset, code=3)
    assert {each["refused"]["reason"] for each in plan["slices"]} == {"DoesNotFit"}
    assert (plan["gangs"], plan["warnings"]) == ([], [])


def test_the_annotation_has_few_values_and_no_others_beside_it(slices: Slices) -> None:
    assert f'metadata.annotations[{GANG}]: "both" is not supported' in invalid(slices, gang(value="both"))
    jobset = gang()
    jobset["metadata"]["annotations"][f"{GANG}-min"] = "3"
    assert f"metadata.annotations[{GANG}-min] is not supported" in invalid(slices, jobset)


def test_a_deadline_of_its_jobs_does_not_wait_for_slices(slices: Slices) -> None:
    assert about("activeDeadlineSeconds", answer(slices, gang())) == []
    jobset = gang()
    job_of(jobset)["activeDeadlineSeconds"] = 3600
    (warning,) = about("activeDeadlineSeconds", answer(slices, jobset))
    assert warning == (
        "JobSet v5e: spec.replicatedJobs[0].template.spec.activeDeadlineSeconds is 3600, and runs on while the pods "
        "are held: the Job fails if the slices come later: remove it, or add as long as they may take"
    )
    service, job = a_job()
    job["metadata"]["annotations"] = {GANG: "all"}
    job["spec"]["activeDeadlineSeconds"] = 3600
    (warning,) = about("activeDeadlineSeconds", answer(slices, service, job))
    assert warning.startswith("Job indexed: spec.activeDeadlineSeconds is 3600")


def test_kueue_evicts_a_gang_that_waits(slices: Slices) -> None:
    jobset = gang()
    assert about("waitForPodsReady", answer(slices, jobset)) == []
    jobset["metadata"]["labels"] = {QUEUE: "team-a"}
    (warning,) = about("waitForPodsReady", answer(slices, jobset))
    assert warning == (
        f"JobSet v5e: {QUEUE} is team-a, and by waitForPodsReady, which is on by default since 0.19, Kueue evicts it "
        "unless all of its pods run within 30 minutes, as they may not while slices are made: have the operator of "
        "Kueue give the queue an AdmissionCheck of tpu-provisioner.cloud.google.com/slices, so that this time begins "
        "once all slices stand, or set waitForPodsReady.timeout and recoveryTimeout above 4 hours, or turn it off"
    )


@pytest.mark.parametrize(("controller", "told"), [(ADMISSION_CHECKS, 0), ("kueue.x-k8s.io/multikueue", 1)])
def test_it_does_not_where_its_queue_waits_for_the_slices(slices: Slices, controller: str, told: int) -> None:
    def kueue(kind: str, name: str, **spec: Any) -> Json:
        metadata = {"name": name, "namespace": "default"} if kind == "LocalQueue" else {"name": name}
        return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}

    jobset = gang()
    jobset["metadata"]["labels"] = {QUEUE: "team-a"}
    plan = answer(
        slices,
        jobset,
        kueue("AdmissionCheck", "slices", controllerName=controller),
        kueue("ClusterQueue", "tpus", admissionChecksStrategy={"admissionChecks": [{"name": "slices"}]}),
        kueue("LocalQueue", "team-a", clusterQueue="tpus"),
    )
    assert len(about("waitForPodsReady", plan)) == told


def planned(jobset: Any, pinning: Pinning | None, **changes: Any) -> Json:
    """Return the plan for a configured cluster whose relay says by what pods are pinned."""
    stage = Stage(World(of_cluster=settings(**changes)))
    stage.world.cluster.pinning = pinning
    stage.world.settle(minutes=2)
    asked = stage.slices("plan", "-f", "-", "--cluster", CLUSTER, "-o", "json", input=yaml.safe_dump(jobset))
    found: Json = json.loads(asked.stdout)
    return found


@pytest.mark.parametrize(
    ("pinning", "says"),
    [
        (Pinning.POLICY, []),
        (Pinning.WEBHOOK, []),
        (Pinning.NOTHING, ["nothing holds its pods until all of its slices stand, as neither"]),
        (None, ["only the admission policy or the webhook holds its pods"]),
    ],
)
def test_it_is_warned_of_what_nothing_may_hold(pinning: Pinning | None, says: list[str]) -> None:
    found = about("hold", planned(gang(gated=False), pinning))
    assert [each.startswith(f"JobSet v5e: {said}") for each, said in zip(found, says, strict=True)] == [True] * len(
        says
    )
    assert [f"spec.schedulingGates: [{{name: {GANG}}}]" in each for each in found] == [True] * len(says)
    assert about("hold", planned(gang(), pinning)) == []


def test_where_multislice_is_a_gang_by_default_one_that_is_created_will_be() -> None:
    apart = gang(gated=False)
    del apart["metadata"]["annotations"][GANG]
    (message,) = told(planned(apart, Pinning.POLICY, gangs=Gangs.MULTISLICE))
    assert message.startswith("JobSet v5e is a gang: 2 slices")
    created = apart | {"metadata": apart["metadata"] | {"uid": "u-1"}}
    for jobset, pinning, gangs in (
        (apart, Pinning.POLICY, Gangs.NONE),
        (apart, Pinning.NOTHING, Gangs.MULTISLICE),
        (created, Pinning.POLICY, Gangs.MULTISLICE),
        (a_jobset(), Pinning.POLICY, Gangs.MULTISLICE),
        (gang(value="none"), Pinning.POLICY, Gangs.MULTISLICE),
    ):
        assert told(planned(jobset, pinning, gangs=gangs)) == []


def test_a_gang_is_planned_within_the_limits_as_a_whole() -> None:
    (message,) = told(planned(gang(), Pinning.POLICY, policy=Policy(chips_per_cluster=32)))
    assert "nothing is bought before all of them may be (policy.chips_per_cluster: 32)" in message
    plan = planned(gang(replicas=3), Pinning.POLICY, policy=Policy(chips_per_cluster=32))
    assert {each["refused"]["reason"] for each in plan["slices"]} == {"GangTooLarge"}
    assert {each["refused"]["message"] for each in plan["slices"]} == {
        "policy.chips_per_cluster: its 3 slices need 48 chips together, and at most 32 are allowed."
    }
