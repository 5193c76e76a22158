"""Jobs of one pod each that have all chips of a topology together are the hosts of one slice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import a_job, a_leader, a_request, settings
from tpu_slices.domain.model.facts import IDLE_HOSTS, Reach, TemplateRequest
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import SliceSpec
from tpu_slices.domain.planning.host_labels import NODE_POOL
from tpu_slices.domain.planning.sharing import share_slice, slices_of
from tpu_slices.domain.planning.specs import SliceRequest, chips_requested, spec_for
from tpu_slices.domain.records.claims import Refusal


def sharing(**changes: Any) -> TemplateRequest:
    """Return four Jobs of one pod each on a topology of four hosts."""
    return a_request(**{"replicas": 4, "parallelism": 1, "completions": 1, **changes})


def outcome(request: TemplateRequest, **leader: Any) -> SliceSpec | Refusal:
    return spec_for(SliceRequest(job=a_job(), request=request, leader=a_leader(**leader), jobset_chips=16), settings())


def test_as_many_jobs_of_one_pod_as_hosts_share_a_slice() -> None:
    assert (share_slice(sharing()), slices_of(sharing())) == (True, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"replicas": 8},
        {"replicas": 1},
        {"replicas": 2, "parallelism": 2, "completions": 2},
        {"completions": 4},
        {"replicas": 3},
        {"exclusive_topology": NODE_POOL},
        {"exclusive_nodes": True},
        {"requested_annotations": ((IDLE_HOSTS, "true"),)},
        {"replicated_job": ""},
        {"topology": None},
        {"topology": "wide"},
        {"parallelism": None, "completions": None},
    ],
    ids=str,
)
def test_others_have_slices_of_their_own(changes: dict[str, Any]) -> None:
    request = sharing(**changes)
    assert (share_slice(request), slices_of(request)) == (False, request.replicas)


def test_a_shared_slice_has_a_host_for_each_job_and_their_common_key() -> None:
    spec = outcome(sharing(first_job=3))
    assert isinstance(spec, SliceSpec)
    assert (spec.hosts, spec.key, spec.caveat) == (4, f"{a_job().owner.uid}.r3", "")


def test_its_chips_count_once() -> None:
    assert chips_requested([sharing()]) == 16
    assert chips_requested([sharing(exclusive_topology=NODE_POOL)]) == 64


def test_where_nothing_pins_pods_they_scatter_over_slices() -> None:
    spec = outcome(sharing(), reach=Reach.ANY)
    assert isinstance(spec, SliceSpec)
    assert spec.scatters


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"replicas": 32}, "set both to 4, have 4 such Jobs (they share one slice), select a smaller topology"),
        ({"exclusive_topology": NODE_POOL}, "have 4 such Jobs without exclusive-topology (they share one slice)"),
        ({"replicas": 32, "parallelism": 2, "completions": 2}, "set both to 4, select a smaller topology"),
    ],
    ids=["more Jobs", "placed exclusively", "several pods"],
)
def test_jobs_that_cannot_share_are_refused_and_told_what_would(changes: dict[str, Any], told: str) -> None:
    refusal = outcome(sharing(**changes))
    assert isinstance(refusal, Refusal)
    assert refusal.reason is Reason.DOES_NOT_FIT
    assert told in refusal.message
