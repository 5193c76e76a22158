"""What a step of one slice means for slices that are kept warm: limits, chips that others need, claims that wait."""

from __future__ import annotations

from dataclasses import replace

from tpu_slices.domain.capacity.warmth import (
    NOTHING_KEPT,
    TOO_MANY,
    Kept,
    Needed,
    beyond_limits,
    is_limited,
    kept_after,
    kept_with,
    short_of,
)
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.reconciling.decisions import Decision
from tpu_slices.domain.records.matching import wants
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.budget import MOST_WARM, make_room
from tpu_slices.flows.capacity import crossing
from tpu_slices.flows.looking import Looked
from tpu_slices.ports.deps import ReconcileDeps


def with_limit(looked: Looked, decision: Decision, deps: ReconcileDeps) -> Looked | None:
    """Return it with what is kept warm beside a slice that would be, too; None: no limit counts.

    If more are kept than are looked at, no limit has room for another.
    """
    if decision.reason is not Reason.WARM or not is_limited(looked.record, looked.settings):
        return None
    return replace(looked, known=replace(looked.known, beside=_beside(looked, deps)))


def _beside(looked: Looked, deps: ReconcileDeps) -> Kept:
    found = deps.store.for_reasons(looked.record.cluster, [Reason.WARM], MOST_WARM)
    if len(found) == MOST_WARM and looked.record.id not in {each.value.id for each in found}:
        return TOO_MANY
    others = kept_with(looked.record, (each.value for each in found), looked.settings)
    return kept_after(looked.record, others, looked.at) if others else NOTHING_KEPT


def follow(looked: Looked, before: SliceRecord, after: SliceRecord, deps: ReconcileDeps) -> list[SliceRecord]:
    """Return who is to be reconciled after a step of a slice, or of a claim, where slices are kept warm.

    | the step                                         | is to be reconciled                                        |
    |--------------------------------------------------|------------------------------------------------------------|
    | a slice is kept warm from now on                 | those that exceed a limit with it: the longest warm        |
    | a claim is refused for a limit of chips          | warm slices that hold these: they are kept no longer       |
    | a claim begins to wait for a slice, not yet for  | the claim, if a slice that it may want goes                |
    | the first time                                   |                                                            |
    """
    settings = looked.settings
    if not (settings.keeps_warm or settings.spares) or after.owner.kind.is_spare:
        return []
    if after.reason is Reason.WARM is not before.reason:
        return _beyond_limits(after, settings, deps)
    if after.reason is Reason.CHIP_LIMIT_REACHED is not before.reason and after.spec is not None:
        held, namespace = looked.known.held, after.owner.namespace
        if held is None:
            return []
        needed = Needed(after.spec.chips, after.spec.chips, held.in_namespace)
        return make_room(settings, short_of({namespace: needed}, held.in_cluster, settings.policy), deps)
    request, own = wants(after), before.current.create_requested_at is not None
    if own and request is not None and (deps.store.offered(request, 1) or crossing.offered(looked, deps, most=1)):
        return [after]
    return []


def _beyond_limits(after: SliceRecord, settings: ClusterSettings, deps: ReconcileDeps) -> list[SliceRecord]:
    if not is_limited(after, settings):
        return []
    found = (each.value for each in deps.store.for_reasons(after.cluster, [Reason.WARM], MOST_WARM))
    return [*beyond_limits(after, kept_with(after, found, settings), settings)]
