"""Each state of a gang has an Event of its own on the workload, which says what it costs and until when."""

from __future__ import annotations

import pytest

from tests.builders import NOW, a_jobset
from tests.domain.gangs.test_deciding import a_gang as in_records
from tests.journeys.gangs.test_gangs import SLICE, a_gang, at_most, gang_of, held, report
from tests.world import World
from tpu_slices.domain.model.reasons import Reason, ReportReason
from tpu_slices.domain.records.gangs import Gang, GangState
from tpu_slices.domain.reporting.gangs import reason_of_gangs


def test_a_gang_that_waits_and_starts_says_so_by_reasons_of_its_own() -> None:
    world = at_most(5 * SLICE)
    other = world.jobset_appears("gemma", 2)
    world.settle(minutes=10, until=lambda: other.served)
    gang = a_gang(world)
    world.settle(minutes=10)
    reason, message = report(world, gang)
    assert reason is ReportReason.GANG_WAITS
    assert "need 64 chips at once, and 48 of 80 are free" in message
    world.ends(other)
    world.settle(minutes=15, until=lambda: gang.served)
    world.settle(minutes=2)
    reason, message = report(world, gang)
    assert reason is ReportReason.GANG_STARTED
    assert message.startswith("4 of 4 slices ready")
    assert "its pods were released together after 1" in message


def test_a_gang_that_starts_is_told_so_at_once_and_not_that_its_slices_are_ready() -> None:
    world = World()
    gang = a_gang(world)
    world.settle(minutes=15, until=lambda: gang.served)
    told = [update.report.reason for _, update in world.publisher.reports]
    assert ReportReason.READY not in told
    assert told[-1] is ReportReason.GANG_STARTED


def test_a_gang_that_is_held_says_what_that_costs_and_one_that_is_let_go_what_did_not_come() -> None:
    world = World()
    gang = held(world)
    world.settle(minutes=3)
    reason, message = report(world, gang)
    assert reason is ReportReason.GANG_HELD
    assert "Those that stand have been held since" in message
    assert "all are let go if the others have not come" in message
    world.settle(minutes=80, until=lambda: gang_of(world, gang).reason is Reason.LET_GO_WITH_GANG)
    world.settle(minutes=2)
    assert report(world, gang)[0] is ReportReason.GANG_LET_GO
    told = [update.report for _, update in world.publisher.reports]
    first = next(each for each in told if each.reason is ReportReason.GANG_LET_GO)
    assert "3 of 4 slices stood for 60 min" in first.message
    assert first.message.count("slices stood for") == 1


STANDS_STILL = {"state": GangState.FORMS, "ran": True}
"""And some of its slices do."""


@pytest.mark.parametrize(
    ("gang", "said", "reason"),
    [
        ({"state": GangState.WAITS, "yielded": True}, ReportReason.WAITING, ReportReason.GANG_YIELDED),
        ({"state": GangState.WAITS}, ReportReason.PROVISIONING, ReportReason.GANG_WAITS),
        ({"state": GangState.FORMS}, ReportReason.WAITING, ReportReason.WAITING),
        ({"state": GangState.FORMS, "ran": True}, ReportReason.WAITING, ReportReason.WAITING),
        ({"state": GangState.FORMS, "ran": True}, ReportReason.PROVISIONING, ReportReason.GANG_FORMING),
        ({**STANDS_STILL, "held_since": NOW}, ReportReason.WAITING, ReportReason.GANG_REPAIRING),
        ({**STANDS_STILL, "runs": True}, ReportReason.PROVISIONING, ReportReason.GANG_REPAIRING),
        ({"state": GangState.STANDS}, ReportReason.READY, ReportReason.GANG_STARTED),
        ({"state": GangState.STANDS}, ReportReason.NOT_RUNNING, ReportReason.NOT_RUNNING),
        ({"state": GangState.FORMS}, ReportReason.READY, ReportReason.READY),
        ({"state": GangState.WAITS}, ReportReason.BLOCKED, ReportReason.BLOCKED),
    ],
)
def test_the_reason_follows_from_the_gang_and_from_what_its_slices_say(
    gang: dict[str, object], said: ReportReason, reason: ReportReason
) -> None:
    made: Gang = in_records(**gang)
    assert reason_of_gangs(a_jobset(gangs={"all": made}), said) is reason
