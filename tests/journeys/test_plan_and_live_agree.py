"""A pod template gets the same answer from `slices plan` and from a cluster where its leader waits."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from relay.objects import Kind
from tests.builders import settings
from tests.relay.objects import SELECTOR, Json, group_pod, job, job_pod, jobset, leader_worker_set, pod, replicated_job
from tests.relay.watched import Watched
from tests.world import World
from tpu_slices.domain.model.facts import EXCLUSIVE, GROUP_EXCLUSIVE, IDLE_HOSTS, MAX_RUN_DURATION, SlicesWanted
from tpu_slices.domain.model.slices import SliceSpec
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices_cli.manifests import Manifest
from tpu_slices_cli.planning import Plan, plan
from tpu_slices_simulator.objects import pinned

CLOUD = "cloud.google.com"
TPU, TOPOLOGY = f"{CLOUD}/gke-tpu-accelerator", f"{CLOUD}/gke-tpu-topology"
TPU_ALONE = {TPU: SELECTOR[TPU]}
FLEX = {TPU: "tpu-v5p-slice", TOPOLOGY: "2x2x4", f"{CLOUD}/gke-flex-start": "true"}
WORKERS = "replicatedJob workers: "


def asked(pod_spec: Json | None = None, **metadata: Any) -> Json:
    """Return a JobSet of one Job of four pods, whose template has these fields."""
    workers = replicated_job(replicas=1, **(pod_spec or {}))
    workers["template"]["spec"] |= {"parallelism": 4, "completions": 4}
    workers["template"]["spec"]["template"]["metadata"] = metadata
    return jobset(spec={"replicatedJobs": [workers]})


def by_affinity(labels: Json) -> Json:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [labels[key]]} for key in labels]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeSelector": {}, "affinity": {"nodeAffinity": required}}


def exclusive_by(key: str) -> Json:
    whole = asked()
    whole["metadata"]["annotations"] = {EXCLUSIVE: key}
    return whole


def pods_of_a_jobset(pods: int) -> Json:
    """Return a JobSet of one Job of so many pods."""
    whole = asked()
    whole["spec"]["replicatedJobs"][0]["template"]["spec"] |= {"parallelism": pods, "completions": pods}
    return whole


def a_job(hosts: int = 4, pod_spec: Json | None = None) -> Json:
    """Return an Indexed Job of so many pods, whose template has these fields."""
    whole = job(hosts=hosts)
    whole["spec"]["template"]["spec"] |= pod_spec or {}
    return whole


def groups(size: int = 4, exclusive_by: str = "") -> Json:
    """Return a LeaderWorkerSet of one group of so many pods."""
    whole = leader_worker_set(groups=1, size=size)
    annotations = {GROUP_EXCLUSIVE: exclusive_by} if exclusive_by else {}
    return {**whole, "metadata": {**whole["metadata"], "annotations": annotations}}


def leader_of(whole: Json) -> Json:
    """Return the leader of a workload's first slice, as its controller makes it of the template."""
    match whole["kind"]:
        case "JobSet":
            template = whole["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
            annotations = template["metadata"].get("annotations", {})
            return pod(0, spec=template["spec"], metadata={"annotations": annotations})
        case "Job":
            return job_pod(spec=whole["spec"]["template"]["spec"])
        case _:
            return group_pod(spec=whole["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"])


def live(world: World, whole: Json) -> SliceRecord:
    """Let a workload and its waiting leader appear to a relay; return the slice that comes of what it publishes."""
    watched = Watched()
    watched.see(whole)
    kind = Kind.GROUP_LEADERS if whole["kind"] == "LeaderWorkerSet" else Kind.LEADERS
    watched.relist(kind, {**pinned(leader_of(whole), "its-key")}, version=100)
    for fact in watched.due_facts():
        if isinstance(fact, SlicesWanted):
            world.publish(fact)
    world.deliver()
    (record,) = world.records.values()
    return record


def planned(whole: Json) -> Plan:
    return plan([Manifest("train.yaml", whole)], lambda _: settings(), "default")


REFUSED = {
    "dynamic slicing": (
        asked({"nodeSelector": TPU_ALONE}, annotations={f"{CLOUD}/gke-tpu-slice-topology": "2x2x2"}),
        f"{WORKERS}{CLOUD}/gke-tpu-slice-topology: ",
    ),
    "sub-slicing": (
        asked(annotations={f"{CLOUD}/gke-tpu-slice-topology": "2x2x1"}),
        f"{WORKERS}{CLOUD}/gke-tpu-slice-topology: ",
    ),
    "a slice by name": (
        asked({"nodeSelector": {**SELECTOR, f"{CLOUD}/gke-tpu-slice": "s"}}),
        f"{WORKERS}{CLOUD}/gke-tpu-slice: ",
    ),
    "placed by slice": (exclusive_by(f"{CLOUD}/gke-tpu-slice"), f"{WORKERS}{EXCLUSIVE}: "),
    "no topology": (asked({"nodeSelector": TPU_ALONE}), f"{WORKERS}{TOPOLOGY}: the pods select none"),
    "no selectors": (asked({"nodeSelector": {}}), f"{WORKERS}(1) {TPU}: the pods select none"),
    "half an affinity": (asked(by_affinity(TPU_ALONE)), f"{WORKERS}{TOPOLOGY}: the pods select none"),
    "more pods than hosts": (pods_of_a_jobset(8), f"{WORKERS}parallelism, completions: the Job has 8 and 8"),
    "a Job of more pods than hosts": (a_job(8), "pod template: parallelism, completions: the Job has 8 and 8"),
    "a Job without a topology": (a_job(4, {"nodeSelector": TPU_ALONE}), f"pod template: {TOPOLOGY}: the pods select"),
    "groups of more pods than hosts": (groups(5), "pod template: leaderWorkerTemplate.size: it is 5"),
    "groups placed by slice": (groups(4, f"{CLOUD}/gke-tpu-slice"), f"pod template: {GROUP_EXCLUSIVE}: "),
    "flex-start for too long": (
        asked({"nodeSelector": FLEX}, annotations={MAX_RUN_DURATION: "60"}),
        f'{WORKERS}{MAX_RUN_DURATION}: the pod has "60"',
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_template_that_no_slice_serves_is_refused_by_both_with_one_message(name: str) -> None:
    whole, message = REFUSED[name]
    (found,) = planned(whole).slices
    assert isinstance(found.outcome, Refusal)
    world = World()
    assert live(world, whole).claim.refusal == found.outcome
    assert found.outcome.message.startswith(message)
    assert world.pools == []


SERVED = {
    "by node selector": asked(),
    "by node affinity": asked(by_affinity(SELECTOR)),
    "with its own topology as the slice's": asked(annotations={f"{CLOUD}/gke-tpu-slice-topology": "2x2x4"}),
    "placed by node pool": exclusive_by(f"{CLOUD}/gke-nodepool"),
    "a Job": a_job(),
    "a Job by node affinity": a_job(4, by_affinity(SELECTOR)),
    "groups": groups(),
    "groups placed by node pool": groups(4, f"{CLOUD}/gke-nodepool"),
}


@pytest.mark.parametrize("name", SERVED)
def test_a_template_that_a_slice_serves_gets_the_same_hosts_from_both(name: str) -> None:
    (found,) = planned(SERVED[name]).slices
    assert isinstance(found.outcome, SliceSpec)
    assert live(World(), SERVED[name]).spec == found.outcome


def meant(whole: Json) -> Json:
    """Return a workload whose template says that hosts are to stay idle."""
    found = deepcopy(whole)
    spec = found["spec"]
    match whole["kind"]:
        case "JobSet":
            template = spec["replicatedJobs"][0]["template"]["spec"]["template"]
        case "Job":
            template = spec["template"]
        case _:
            template = spec["leaderWorkerTemplate"]["workerTemplate"]
    template.setdefault("metadata", {}).setdefault("annotations", {})[IDLE_HOSTS] = "true"
    return found


FEWER = {
    "JobSet": (pods_of_a_jobset(2), "JobSet llama, ", "parallelism, completions: the Job has 2 and 2"),
    "Job": (a_job(2), "Job tune: ", "parallelism, completions: the Job has 2 and 2"),
    "LeaderWorkerSet": (groups(2), "LeaderWorkerSet serve: ", "leaderWorkerTemplate.size: it is 2"),
}


@pytest.mark.parametrize("kind", FEWER)
def test_fewer_pods_than_hosts_are_refused_by_both(kind: str) -> None:
    whole, _, message = FEWER[kind]
    (found,) = planned(whole).slices
    assert isinstance(found.outcome, Refusal)
    assert message in found.outcome.message
    assert live(World(), whole).message == found.outcome.message


@pytest.mark.parametrize("kind", FEWER)
def test_hosts_that_are_meant_to_stay_idle_are_a_warning_in_plan_and_report(kind: str) -> None:
    fewer, whose, message = FEWER[kind]
    whole, world = meant(fewer), World()
    spec = live(world, whole).spec
    assert spec is not None
    assert message in spec.caveat
    assert f"{whose}{spec.caveat}" in planned(whole).warnings
