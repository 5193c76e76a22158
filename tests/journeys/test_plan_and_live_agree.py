"""A pod template gets the same answer from `slices plan` and from a cluster where its leader waits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import settings
from tests.relay.objects import SELECTOR, Json, jobset, pod, replicated_job
from tests.relay.watched import Watched
from tests.world import World
from tpu_slices.domain.model.facts import SlicesWanted
from tpu_slices.domain.model.records import Refusal, SliceRecord
from tpu_slices.domain.model.slices import SliceSpec
from tpu_slices_cli.manifests import Manifest
from tpu_slices_cli.planning import plan

CLOUD = "cloud.google.com"
TPU, TOPOLOGY = f"{CLOUD}/gke-tpu-accelerator", f"{CLOUD}/gke-tpu-topology"
TPU_ALONE = {TPU: SELECTOR[TPU]}


def asked(pod_spec: Json | None = None, **metadata: Any) -> Json:
    """Return a JobSet of one Job of four pods, whose template has these fields."""
    job = replicated_job(replicas=1, **(pod_spec or {}))
    job["template"]["spec"] |= {"parallelism": 4, "completions": 4}
    job["template"]["spec"]["template"]["metadata"] = metadata
    return jobset(spec={"replicatedJobs": [job]})


def by_affinity(labels: Json) -> Json:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [labels[key]]} for key in labels]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeSelector": {}, "affinity": {"nodeAffinity": required}}


def exclusive_by(key: str) -> Json:
    whole = asked()
    whole["metadata"]["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": key}
    return whole


def live(world: World, whole: Json) -> SliceRecord:
    """Let the JobSet and its waiting leader appear to a relay; return the slice that comes of what it publishes."""
    watched = Watched()
    template = whole["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    watched.see(
        whole, pod(0, spec=template["spec"], metadata={"annotations": template["metadata"].get("annotations", {})})
    )
    for fact in watched.due_facts():
        if isinstance(fact, SlicesWanted):
            world.publish(fact)
    world.deliver()
    (record,) = world.records.values()
    return record


REFUSED = {
    "dynamic slicing": (
        asked({"nodeSelector": TPU_ALONE}, annotations={f"{CLOUD}/gke-tpu-slice-topology": "2x2x2"}),
        f"{CLOUD}/gke-tpu-slice-topology: ",
    ),
    "sub-slicing": (
        asked(annotations={f"{CLOUD}/gke-tpu-slice-topology": "2x2x1"}),
        f"{CLOUD}/gke-tpu-slice-topology: ",
    ),
    "a slice by name": (
        asked({"nodeSelector": {**SELECTOR, f"{CLOUD}/gke-tpu-slice": "s"}}),
        f"{CLOUD}/gke-tpu-slice: ",
    ),
    "placed by slice": (exclusive_by(f"{CLOUD}/gke-tpu-slice"), "alpha.jobset.sigs.k8s.io/exclusive-topology: "),
    "no topology": (asked({"nodeSelector": TPU_ALONE}), f"{TOPOLOGY}: the pods select none"),
    "no selectors": (asked({"nodeSelector": {}}), f"(1) {TPU}: the pods select none"),
    "half an affinity": (asked(by_affinity(TPU_ALONE)), f"{TOPOLOGY}: the pods select none"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_template_that_no_slice_serves_is_refused_by_both_with_one_message(name: str) -> None:
    whole, message = REFUSED[name]
    (planned,) = plan([Manifest("train.yaml", whole)], settings(), "default").slices
    assert isinstance(planned.outcome, Refusal)
    world = World()
    assert live(world, whole).refusal == planned.outcome
    assert planned.outcome.message.startswith(f"replicatedJob workers: {message}")
    assert world.pools == []


SERVED = {
    "by node selector": asked(),
    "by node affinity": asked(by_affinity(SELECTOR)),
    "with its own topology as the slice's": asked(annotations={f"{CLOUD}/gke-tpu-slice-topology": "2x2x4"}),
    "placed by node pool": exclusive_by(f"{CLOUD}/gke-nodepool"),
}


@pytest.mark.parametrize("name", SERVED)
def test_a_template_that_a_slice_serves_gets_the_same_hosts_from_both(name: str) -> None:
    (planned,) = plan([Manifest("train.yaml", SERVED[name])], settings(), "default").slices
    assert isinstance(planned.outcome, SliceSpec)
    assert live(World(), SERVED[name]).spec == planned.outcome


def test_fewer_pods_than_hosts_are_a_warning_in_plan_and_report() -> None:
    whole = asked()
    whole["spec"]["replicatedJobs"][0]["template"]["spec"] |= {"parallelism": 2, "completions": 2}
    made = plan([Manifest("train.yaml", whole)], settings(), "default")
    record = live(World(), whole)
    assert record.spec is not None
    assert made.warnings == (record.spec.caveat,)
    assert "parallelism, completions: the Job has 2 and 2" in record.spec.caveat


def test_more_pods_than_hosts_are_refused_by_both() -> None:
    whole = asked()
    whole["spec"]["replicatedJobs"][0]["template"]["spec"] |= {"parallelism": 8, "completions": 8}
    (planned,) = plan([Manifest("train.yaml", whole)], settings(), "default").slices
    record = live(World(), whole)
    assert record.refusal == planned.outcome
    assert replace(record, spec=None) == record
