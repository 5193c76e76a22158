"""Whose pods could come to several slices where nothing pins pods: nothing is created for them there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import a_job, a_leader, a_request, an_owner, settings
from tests.domain.asking import refusal_of
from tpu_slices.domain.model.facts import IDLE_HOSTS, Reach, Requirement
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import OwnerKind, SliceSpec
from tpu_slices.domain.planning.host_labels import NODE_POOL
from tpu_slices.domain.planning.reach import reach_of
from tpu_slices.domain.planning.specs import SliceRequest, spec_for
from tpu_slices.domain.reconciling.refusals import not_together

OWN_NAME = ("google.com/tpu-provisioner-parent-name", "llama-slice-0")
GROUPS_NAME = ("google.com/tpu-provisioner-parent-name", "llama")


def spec_of(
    kind: OwnerKind = OwnerKind.JOBSET, selects: tuple[str, str] | None = None, reach: Reach = Reach.ANY, **asked: Any
) -> SliceSpec:
    """Return the spec of a slice of four hosts, unless it is asked for another."""
    request = a_request(**{"replicas": 1, **asked})
    request = a_request(**{"replicas": 1, **asked, "node_selector": (*request.node_selector, *filter(None, [selects]))})
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
        pytest.param(spec_of(topology="2x2"), False, id="one host"),
        pytest.param(
            spec_of(parallelism=1, completions=1, requested_annotations=((IDLE_HOSTS, "true"),)), False, id="one pod"
        ),
        pytest.param(spec_of(exclusive_topology=NODE_POOL), False, id="exclusive topology"),
        pytest.param(
            spec_of(OwnerKind.LEADER_WORKER_SET, exclusive_topology=NODE_POOL), False, id="a group's exclusive topology"
        ),
        pytest.param(
            spec_of(exclusive_topology="cloud.google.com/gke-tpu-topology"), True, id="exclusive by what slices share"
        ),
        pytest.param(spec_of(exclusive_nodes=True), False, id="exclusive placement by node selector"),
        pytest.param(spec_of(selects=OWN_NAME), False, id="a Job that selects its own slice"),
        pytest.param(
            spec_of(OwnerKind.LEADER_WORKER_SET, selects=GROUPS_NAME), True, id="groups that select those of all groups"
        ),
    ],
)
def test_pods_scatter_unless_they_are_one_or_something_of_their_own_keeps_them_together(
    spec: SliceSpec, scatters: bool
) -> None:
    assert spec.scatters is scatters


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        (OwnerKind.JOBSET, f"set the annotation alpha.jobset.sigs.k8s.io/exclusive-topology: {NODE_POOL}"),
        (
            OwnerKind.LEADER_WORKER_SET,
            f"set the annotation leaderworkerset.sigs.k8s.io/exclusive-topology: {NODE_POOL}",
        ),
        (OwnerKind.JOB, "use a JobSet with the annotation alpha.jobset.sigs.k8s.io/exclusive-topology"),
    ],
)
def test_the_refusal_names_what_lacks_and_what_its_kind_can_do(kind: OwnerKind, remedy: str) -> None:
    refusal = not_together(kind)
    assert refusal.reason is Reason.PODS_NOT_PINNED
    assert "neither the admission policy nor the webhook" in refusal.message
    assert remedy in refusal.message


def test_a_pod_for_which_no_slice_is_made_is_refused_with_the_label_that_lacks() -> None:
    refusal = refusal_of(a_request(), a_leader(reach=Reach.STATIC))
    assert refusal.reason is Reason.DOES_NOT_FIT
    assert "does not label them with jobset-uid" in refusal.message


KEY = Requirement(key="google.com/tpu-slice-key", operator="In", values=("uid.j0",))
STATIC = Requirement(key="google.com/nodepool-manager", operator="DoesNotExist")
OTHER = Requirement(key="team", operator="In", values=("a",))


@pytest.mark.parametrize(
    ("terms", "reach"),
    [
        ([], Reach.ANY),
        ([[OTHER]], Reach.ANY),
        ([[OTHER], [STATIC]], Reach.ANY),
        ([[OTHER, STATIC]], Reach.STATIC),
        ([[KEY]], Reach.OWN),
        ([[OTHER, KEY], [OTHER, STATIC]], Reach.OWN),
    ],
)
def test_where_a_pod_may_come_to_follows_from_what_it_was_made_to_require(
    terms: list[list[Requirement]], reach: Reach
) -> None:
    assert reach_of(terms) is reach
