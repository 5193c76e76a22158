"""Requests, and the specs or refusals that they lead to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.builders import a_job, a_leader, a_request, settings
from tpu_slices.domain.model.facts import TemplateRequest, Toleration, WaitingLeader
from tpu_slices.domain.model.slices import SliceSpec
from tpu_slices.domain.planning.host_labels import ACCELERATOR, FLEX_START, TOPOLOGY
from tpu_slices.domain.planning.specs import SliceRequest, spec_for
from tpu_slices.domain.records.claims import Refusal

SHAPE = {ACCELERATOR: "tpu-v6e-slice", TOPOLOGY: "4x4"}
EVERYTHING = Toleration(operator="Exists")


def selecting(further: Mapping[str, str]) -> TemplateRequest:
    """Return a request for a 4x4 of v6e with further selectors."""
    return a_request(node_selector=tuple({**SHAPE, **further}.items()), tolerations=(EVERYTHING,))


def outcome(request: TemplateRequest, leader: WaitingLeader | None = None, **set_: Any) -> SliceSpec | Refusal:
    slice_request = SliceRequest(job=a_job(), request=request, leader=leader or a_leader(), jobset_chips=64)
    return spec_for(slice_request, settings(**set_))


FLEX = selecting({FLEX_START: "true"})
"""A request for a 4x4 of v6e by flex-start."""
SPOT = selecting({"cloud.google.com/gke-spot": "true"})
"""The same of spot hosts."""


def spec_of(request: TemplateRequest, leader: WaitingLeader | None = None, **set_: Any) -> SliceSpec:
    spec = outcome(request, leader, **set_)
    assert isinstance(spec, SliceSpec), spec
    return spec


def refusal_of(request: TemplateRequest, leader: WaitingLeader | None = None, **set_: Any) -> Refusal:
    refusal = outcome(request, leader, **set_)
    assert isinstance(refusal, Refusal), refusal
    return refusal
