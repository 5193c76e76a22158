"""Acts on the decision about a slice that was just saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tpu_slices.domain.model.joining import JoinEnded, JoinQuestion
from tpu_slices.domain.model.observations import (
    FailureKind,
    Outcome,
    Refused,
    Started,
)
from tpu_slices.domain.reconciling.decisions import (
    Action,
    AskJoin,
    CancelCreation,
    CloseHosts,
    CreatePool,
    DeletePool,
    DeleteRemains,
    EndJoin,
    OpenHosts,
    Relabel,
)
from tpu_slices.domain.reconciling.limiter import lowered
from tpu_slices.domain.reconciling.outcomes import acted, left_by
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows import slots
from tpu_slices.flows.looking import Looked
from tpu_slices.flows.orders import order_of, question_of
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.errors import StaleRecord


@dataclass(frozen=True, slots=True)
class Acted:
    """What came of the actions of a decision."""

    record: SliceRecord
    left: SliceRecord | None
    """What they left of a slice that its claim does not have."""


def act(record: SliceRecord, actions: Sequence[Action], looked: Looked, deps: ReconcileDeps) -> Acted:
    """Perform the actions of the decision just saved; raise StaleRecord once it is too late for them."""
    left = None
    for action in actions:
        if deps.clock.now() > looked.at + looked.settings.limits.act_window:
            raise StaleRecord(f"the decision about {record.name} is too old to act on")
        outcome, now = _perform(action, record, looked, deps), deps.clock.now()
        left = left_by(record, action, outcome, now) or left
        record = acted(record, action, outcome, now, looked.settings)
    return Acted(record, left)


def _perform(action: Action, record: SliceRecord, looked: Looked, deps: ReconcileDeps) -> Outcome:
    """Return the outcome of an action; questions to the relay are answered by facts."""
    settings = looked.settings
    order = replace(order_of(record, settings), attempt=action.attempt, seen_ours=looked.is_ours)
    match action:
        case CreatePool():
            outcome = deps.backend.create(order)
        case DeletePool():
            outcome = deps.backend.delete(order)
        case DeleteRemains():
            outcome = deps.backend.delete_remains(order)
        case CancelCreation():
            outcome = deps.backend.cancel(order)
        case Relabel():
            outcome = deps.backend.relabel(order)
        case CloseHosts() | OpenHosts():
            deps.publisher.ask(settings.cluster, [question_of(action, record)])
            return Started(None)
        case AskJoin(attempt, asked_at):
            question = JoinQuestion(slice_id=record.maker, attempt=attempt, asked_at=asked_at)
            deps.publisher.ask(settings.cluster, [question])
            return Started(None)
        case EndJoin(attempt):
            deps.publisher.ask(settings.cluster, [JoinEnded(slice_id=record.maker, attempt=attempt)])
            return deps.backend.join(order, None)
    if isinstance(outcome, Refused) and outcome.failure.kind is FailureKind.RATE:
        slots.change_limiter(lambda limiter, now: lowered(limiter, now, settings.limits), settings, deps)
    return outcome
