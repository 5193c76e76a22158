"""Whose pods could come to several slices where nothing pins pods: nothing is created for them there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import a_job, a_leader, a_request, a_spec, an_owner, settings
from tests.domain.asking import refusal_of, selecting
from tpu_slices.domain.model.facts import IDLE_HOSTS, Reach, Requirement, TemplateRequest
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import OwnerKind, SliceSpec
from tpu_slices.domain.planning.host_labels import NODE_POOL
from tpu_slices.domain.planning.reach import reach_of, unjudged
from tpu_slices.domain.planning.specs import SliceRequest, spec_for
from tpu_slices.domain.reconciling.refusals import not_together


def spec_of(kind: OwnerKind = OwnerKind.JOBSET, reach: Reach = Reach.ANY, **asked: Any) -> SliceSpec:
    """Return the spec of a slice of four hosts, unless it is asked for another."""
    request = a_request(**{"replicas": 1, **asked})
    job = a_job(owner=an_owner(kind=kind), replicated_job="slice" if kind is OwnerKind.JOBSET else "")
    spec = spec_for(SliceRequest(job=job, request=request, leader=a_leader(reach=reach), jobset_chips=16), settings())
    assert isinstance(spec, SliceSpec), spec
    return spec


@pytest.mark.parametrize(
    ("spec", "scatters"),
    [
        pytest.param(spec_of(), True, id="a Job of several hosts"),
        pytest.param(spec_of(OwnerKind.LEADER_WORKER_SET), True, id="a group of several hosts"),
        pytest.param(spec_of(reach=Reach.OWN), False, id="pinned pods"),
        pytest.param(spec_of(reach=Reach.ONE_SLICE), False, id="pods that come to one slice together"),
        pytest.param(spec_of(topology="2x2"), False, id="one host"),
        pytest.param(
            spec_of(parallelism=1, completions=1, requested_annotations=((IDLE_HOSTS, "true"),)), False, id="one pod"
        ),
        pytest.param(spec_of(exclusive_topology=NODE_POOL), True, id="a template that was annotated since"),
    ],
)
def test_pods_scatter_unless_they_are_one_or_reach_no_further_than_one_slice(spec: SliceSpec, scatters: bool) -> None:
    assert spec.scatters is scatters


@pytest.mark.parametrize(
    ("request_", "reach"),
    [
        (a_request(), Reach.ANY),
        (a_request(exclusive_topology=NODE_POOL), Reach.ONE_SLICE),
        (a_request(exclusive_topology="cloud.google.com/gke-tpu-topology"), Reach.ANY),
        (a_request(exclusive_nodes=True), Reach.ONE_SLICE),
        (a_request(node_selector=(("google.com/tpu-slice-id", "tpu-llama-0-oahqlz77blgqd"),)), Reach.ONE_SLICE),
        (a_request(node_selector=(("google.com/tpu-provisioner-parent-name", "llama-slice-0"),)), Reach.ANY),
    ],
    ids=["plain", "by pool", "by what slices share", "by node selector", "its own slice", "a name in every namespace"],
)
def test_how_far_a_pod_reaches_where_nothing_pins_pods_follows_from_its_template(
    request_: TemplateRequest, reach: Reach
) -> None:
    assert unjudged(a_leader(), request_).reach is reach


@pytest.mark.parametrize(
    ("kind", "jobs", "remedy"),
    [
        (
            OwnerKind.JOBSET,
            1,
            f"create the JobSet with the annotation alpha.jobset.sigs.k8s.io/exclusive-topology: {NODE_POOL}",
        ),
        (
            OwnerKind.JOBSET,
            4,
            "create the JobSet with one Job of 4 pods, and with the annotation alpha.jobset.sigs.k8s.io/exclusive-topo",
        ),
        (
            OwnerKind.LEADER_WORKER_SET,
            1,
            f"LeaderWorkerSet with the annotation leaderworkerset.sigs.k8s.io/exclusive-topology: {NODE_POOL}",
        ),
        (OwnerKind.JOB, 1, "create a JobSet instead, with the annotation alpha.jobset.sigs.k8s.io/exclusive-topology"),
    ],
)
def test_the_refusal_names_what_lacks_and_what_its_kind_can_do(kind: OwnerKind, jobs: int, remedy: str) -> None:
    refusal = not_together(kind, a_spec(jobs=jobs))
    assert refusal.reason is Reason.PODS_NOT_PINNED
    assert "neither the admission policy nor the webhook" in refusal.message
    assert remedy in refusal.message


def test_a_pod_for_which_no_slice_is_made_is_refused_with_the_label_that_lacks() -> None:
    refusal = refusal_of(a_request(), a_leader(reach=Reach.STATIC))
    assert refusal.reason is Reason.DOES_NOT_FIT
    assert "labels its pods with jobset-uid" in refusal.message


def test_whatever_else_is_wrong_with_such_a_pod_is_told_instead() -> None:
    selects = selecting({"cloud.google.com/compute-class": "tpu"})
    refusal = refusal_of(selects, a_leader(reach=Reach.STATIC))
    assert refusal.reason is Reason.PROVISIONED_BY_GKE
    assert "jobset-uid" not in refusal.message


KEY = Requirement(key="google.com/tpu-slice-key", operator="In", values=("uid.j0",))
NAME = Requirement(key="google.com/tpu-provisioner-parent-name", operator="In", values=("llama-slice-0",))
STATIC = Requirement(key="google.com/nodepool-manager", operator="DoesNotExist")
OTHER = Requirement(key="team", operator="In", values=("a",))


@pytest.mark.parametrize(
    ("terms", "reach"),
    [
        ([], Reach.ANY),
        ([[OTHER]], Reach.ANY),
        ([[OTHER], [STATIC]], Reach.ANY),
        ([[KEY], [OTHER]], Reach.ANY),
        ([[replace(KEY, operator="Exists", values=())]], Reach.ANY),
        ([[replace(NAME, operator="NotIn")]], Reach.ANY),
        ([[OTHER, STATIC]], Reach.STATIC),
        ([[KEY]], Reach.OWN),
        ([[KEY], [NAME]], Reach.OWN),
        ([[OTHER, KEY], [OTHER, STATIC]], Reach.OWN),
    ],
)
def test_where_a_pod_may_come_to_follows_from_what_it_was_made_to_require(
    terms: list[list[Requirement]], reach: Reach
) -> None:
    assert reach_of(terms, kept_together=False) is reach
    together = Reach.ONE_SLICE if reach is Reach.ANY else reach
    assert reach_of(terms, kept_together=True) is together
