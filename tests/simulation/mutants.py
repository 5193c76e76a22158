"""Systems that are broken on purpose, each in one place, and the promise that tells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.simulation.promises import Promise
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import SliceRecord
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.reconciling import terminating
from tpu_slices.domain.reconciling.deletion import Assessment, Step
from tpu_slices.domain.reconciling.demand import with_current_desire

DOMAIN = "tpu_slices.domain.reconciling"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A system with something else in the place of a function."""

    name: str
    promise: Promise
    place: str
    instead: Any

    def breaks(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(self.place, self.instead)


def _deletes_at_once(*_: object) -> Assessment:
    return Assessment(Step.DELETE, Reason.DELETION_STARTED, "nobody was asked")


def _forgets_what_it_gave_up(record: SliceRecord, **how: bool) -> SliceRecord:
    return replace(_GIVEN_UP(record, **how), terminating=record.terminating)


def _uses_two_names_in_turn(record: SliceRecord, **how: bool) -> SliceRecord:
    return replace(_GIVEN_UP(record, **how), attempt=1 if record.attempt > 1 else 2)


def _wants_what_has_ended(record: SliceRecord, own: WorkloadRecord | None) -> SliceRecord:
    return record if own is not None and own.state.ended else with_current_desire(record, own)


_GIVEN_UP = terminating.given_up
MUTANTS = (
    Mutant("deletes at once", Promise.NO_THEFT, f"{DOMAIN}.terminating.assess", _deletes_at_once),
    Mutant("uses two names in turn", Promise.NO_DOUBLE, f"{DOMAIN}.terminating.given_up", _uses_two_names_in_turn),
    Mutant("forgets what it gave up", Promise.NO_STRAY, f"{DOMAIN}.terminating.given_up", _forgets_what_it_gave_up),
    Mutant(
        "buys for whoever waited once",
        Promise.NO_STALE_BUYING,
        f"{DOMAIN}.case.Situation.waiting",
        property(lambda case: case.record.wanted),
    ),
    Mutant("counts no chips", Promise.NO_OVERRUN, f"{DOMAIN}.refusals.over_budget", lambda *_: None),
    Mutant("comes back to nothing", Promise.NO_SILENCE, f"{DOMAIN}.decide.due", lambda *_: None),
    Mutant("looks at nothing that is due", Promise.CONVERGES, "tpu_slices.flows.sweep.request_due", lambda *_: 0),
    Mutant(
        "wants what has ended",
        Promise.NO_LEAK,
        "tpu_slices.flows.reconcile.with_current_desire",
        _wants_what_has_ended,
    ),
)
