"""What went wrong with slices and when they began anew, as the transitions tell. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.records.transitions import Transition
from tpu_slices.domain.reporting.timeline import Course


class Mark(StrEnum):
    """A moment in a slice's life.

    | mark    | when                                                                                          |
    |---------|-----------------------------------------------------------------------------------------------|
    | FAILURE | an attempt or a READY slice came to WAITING, REFUSED or BLOCKED, but for a hold or a pause;   |
    |         | or a READY slice lost hosts, and is PROVISIONING again                                        |
    | RESTART | another attempt began, or a slice was READY again after a failure                             |
    | CUT     | earlier transitions are no longer on record                                                   |
    """

    FAILURE = "failure"
    RESTART = "restart"
    CUT = "history truncated"


@dataclass(frozen=True, slots=True)
class Marked:
    at: datetime
    mark: Mark


_FAILED = {Phase.WAITING, Phase.REFUSED, Phase.BLOCKED}
_BY_PEOPLE = {Reason.HELD, Reason.PAUSED}


def marks(each: Course) -> Iterator[Marked]:
    """Yield the marks of a slice in the window; what is before it counts as known, and is not yielded."""
    if each.forgotten:
        yield Marked(each.spans[0].start, Mark.CUT)
    before: Transition | None = None
    attempts, failed = 0, False
    for after in each.record.transitions:
        mark: Mark | None = None
        if before is not None and _is_failure(before, after):
            mark, failed = Mark.FAILURE, True
        elif after.reason is Reason.CREATION_STARTED:
            mark = Mark.RESTART if attempts else None
            attempts, failed = attempts + 1, False
        elif failed and after.phase is Phase.READY:
            mark, failed = Mark.RESTART, False
        if mark is not None and after.at >= each.spans[0].start:
            yield Marked(after.at, mark)
        before = after


def counted(courses: Iterable[Course]) -> dict[Mark, int]:
    """Return how many failures and restarts there were."""
    found = [each.mark for course in courses for each in marks(course)]
    return {mark: found.count(mark) for mark in (Mark.FAILURE, Mark.RESTART)}


def _is_failure(before: Transition, after: Transition) -> bool:
    if before.phase is Phase.READY and after.phase is Phase.PROVISIONING:
        return after.reason is not Reason.CREATION_STARTED
    return (
        before.phase in {Phase.PROVISIONING, Phase.READY} and after.phase in _FAILED and after.reason not in _BY_PEOPLE
    )
