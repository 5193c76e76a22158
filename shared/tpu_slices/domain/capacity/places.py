"""At which rung of its ladder a claim asks for a slice. Pure.

A claim that has nothing requested asks where its workload is; what it has, or is being made for it, stays as it was
ordered.
"""

from __future__ import annotations

from dataclasses import replace

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import SliceSpec, at_rung
from tpu_slices.domain.planning.specs import SliceRequest, earlier_shape, scatters, spec_for
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord

OF_A_PLACE = frozenset({Reason.IMPOSSIBLE_SHAPE})
"""The reasons of refusals that say nothing of another place."""


def planned(
    asked: SliceRequest, record: SliceRecord | None, own: WorkloadRecord | None, settings: ClusterSettings
) -> SliceSpec | Refusal:
    """Return what a claim asks for, at the rung where it asked last, else at its workload's."""
    if (before := _as_before(asked, record)) is not None:
        return before
    spec = spec_for(asked, settings)
    if isinstance(spec, Refusal) or not spec.ladder:
        return spec
    last = record.spec if record is not None else None
    same = last is not None and last.ladder == spec.ladder
    return at_rung(spec, last.rung if last is not None and same else rung_of(spec, own))


def _as_before(asked: SliceRequest, record: SliceRecord | None) -> SliceSpec | None:
    """Return the request on record, with what its pods are now, if a group of an earlier revision waits for it again.

    None: it does not.
    """
    before = record.spec if record is not None else None
    shape = (before.accelerator, str(before.topology)) if before is not None else None
    if before is None or shape != earlier_shape(asked):
        return None
    return replace(before, scatters=scatters(asked, before.hosts))


def rung_of(spec: SliceSpec, own: WorkloadRecord | None) -> int:
    """Return the rung at which a workload asks for what it has not."""
    on = own.ladders.get(spec.ladder) if own is not None else None
    return on.rung if on is not None else 0


def with_place(record: SliceRecord, own: WorkloadRecord) -> SliceRecord:
    """Return the record of a claim at its workload's rung, where it is tried at once, if it has nothing requested."""
    spec = record.spec
    if spec is None or not spec.ladder or record.current.create_requested_at is not None:
        return record
    there = at_rung(spec, rung_of(spec, own))
    if there == spec:
        return record
    moved, rejection = replace(record, spec=there, slot_awaited=None), record.claim.rejection
    kept = None if rejection is not None and rejection.reason in OF_A_PLACE else rejection
    return moved.with_claim(retry_at=None, blocked_settings_version=None, rejection=kept, failures=0, stocked=())
