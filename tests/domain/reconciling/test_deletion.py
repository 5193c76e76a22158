"""When a pool may be deleted: one row per row of the rule's table."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.builders import MINUTE, NOW, an_occupant, asked_to_close, asked_to_open, some_hosts
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.reconciling.deletion import Assessment, Evidence, Step, assess
from tpu_slices.domain.reconciling.occupancy import Users
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.heartbeats import NEVER_HEARD, SILENT_AFTER, RelayHeard
from tpu_slices.domain.records.hosts import Departure

LIMITS = Limits()
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
NOBODY = Users((), ())
GUEST = an_occupant("guest")
PRESENT = Users((GUEST,), ())
RESTARTING = Users((), (Departure(user=GUEST, at=NOW - 9 * MINUTE),))
HEARD = RelayHeard(last_at=NOW, since=NOW - 8 * HOUR)
ASKED = NOW - 30 * SECOND


def a_pool(**changes: Any) -> Attempt:
    """Return an attempt that was created an hour ago, and about which the relay was not asked."""
    return Attempt(**{"number": 1, "create_requested_at": NOW - HOUR, "hosts": some_hosts(), **changes})


def asked(at: datetime = ASKED, **hosts: Any) -> Attempt:
    """Return a pool about which the relay was asked by the second question, and has answered the first."""
    known = {"asked": asked_to_close(at, number=2), "answered": 1, "vacant_since": NOW - MINUTE, **hosts}
    return a_pool(hosts=some_hosts(**known))


def answered(at: datetime = ASKED, **hosts: Any) -> Attempt:
    """Return a pool about which the relay was asked, and has answered that; its hosts are closed."""
    return asked(at, **{"answered": 2, "usable": 0, "closed": 4, **hosts})


def evidence(**changes: Any) -> Evidence:
    return Evidence(**{"users": NOBODY, "relay": HEARD, "namespace": "research", **changes})


def judged(pool: Attempt, known: Evidence) -> tuple[Step, Reason]:
    found = assess(pool, known, NOW, LIMITS)
    return found.step, found.reason


ANSWERED = answered()
GRACE = LIMITS.restart_grace
WAIT, CLOSE, DELETE = Step.WAIT, Step.CLOSE, Step.DELETE


@pytest.mark.parametrize(
    ("pool", "known", "expected"),
    [
        pytest.param(
            a_pool(spared_until=NOW + HOUR),
            evidence(users=PRESENT, relay=NEVER_HEARD, forced=True, stopped="too many"),
            (DELETE, Reason.DELETION_STARTED),
            id="forced by an operator: whatever else is known",
        ),
        pytest.param(
            ANSWERED, evidence(relay=NEVER_HEARD), (WAIT, Reason.RELAY_SILENT), id="the relay was never heard"
        ),
        pytest.param(
            ANSWERED,
            evidence(relay=replace(HEARD, last_at=NOW - SILENT_AFTER - SECOND), users=PRESENT, stopped="too many"),
            (WAIT, Reason.RELAY_SILENT),
            id="the relay is silent",
        ),
        pytest.param(
            ANSWERED,
            evidence(relay=replace(HEARD, last_at=NOW - SILENT_AFTER)),
            (DELETE, Reason.DELETION_STARTED),
            id="the relay was heard three minutes ago",
        ),
        pytest.param(
            replace(ANSWERED, spared_until=NOW + HOUR),
            evidence(users=Users((GUEST,), RESTARTING.restarting), stopped="too many"),
            (WAIT, Reason.OCCUPIED),
            id="a live Job is on the hosts",
        ),
        pytest.param(
            replace(ANSWERED, spared_until=NOW + HOUR),
            evidence(users=RESTARTING, stopped="too many"),
            (WAIT, Reason.RESTART_POSSIBLE),
            id="a live Job left a moment ago",
        ),
        pytest.param(
            replace(ANSWERED, spared_until=NOW + SECOND),
            evidence(stopped="too many"),
            (WAIT, Reason.USERS_UNKNOWN),
            id="spared, and not long enough",
        ),
        pytest.param(
            replace(ANSWERED, spared_until=NOW), evidence(), (DELETE, Reason.DELETION_STARTED), id="spared long enough"
        ),
        pytest.param(
            ANSWERED,
            evidence(relay=replace(HEARD, since=NOW - 9 * MINUTE), stopped="too many"),
            (WAIT, Reason.USERS_UNKNOWN),
            id="the relay was silent a moment ago, and the pool existed",
        ),
        pytest.param(
            replace(ANSWERED, create_requested_at=None),
            evidence(relay=replace(HEARD, since=NOW - 9 * MINUTE)),
            (WAIT, Reason.USERS_UNKNOWN),
            id="the relay was silent a moment ago, and nobody knows since when the pool exists",
        ),
        pytest.param(
            ANSWERED,
            evidence(relay=replace(HEARD, since=NOW - LIMITS.restart_grace)),
            (DELETE, Reason.DELETION_STARTED),
            id="the relay has been heard again for as long as a restart takes",
        ),
        pytest.param(
            ANSWERED,
            evidence(relay=replace(HEARD, since=NOW - 2 * MINUTE, confirmed_at=NOW - MINUTE)),
            (DELETE, Reason.DELETION_STARTED),
            id="the records have been found to agree with what the relay sees since its silence",
        ),
        pytest.param(
            ANSWERED,
            evidence(relay=replace(HEARD, since=NOW - 2 * MINUTE, confirmed_at=NOW - 2 * MINUTE)),
            (WAIT, Reason.USERS_UNKNOWN),
            id="they were by its first heartbeat, before it told of hosts",
        ),
        pytest.param(
            ANSWERED,
            evidence(relay=replace(HEARD, since=NOW - 2 * MINUTE, confirmed_at=NOW - 9 * MINUTE)),
            (WAIT, Reason.USERS_UNKNOWN),
            id="they were before its silence",
        ),
        pytest.param(
            replace(ANSWERED, create_requested_at=NOW - 8 * MINUTE),
            evidence(relay=replace(HEARD, since=NOW - 9 * MINUTE)),
            (DELETE, Reason.DELETION_STARTED),
            id="the pool was created after the relay's silence",
        ),
        pytest.param(
            a_pool(), evidence(stopped="too many"), (WAIT, Reason.RELEASES_STOPPED), id="releases are stopped"
        ),
        pytest.param(a_pool(), evidence(), (CLOSE, Reason.CLOSING_HOSTS), id="the relay was not asked"),
        pytest.param(
            answered(NOW - 11 * MINUTE),
            evidence(),
            (CLOSE, Reason.CLOSING_HOSTS),
            id="the answer is too old",
        ),
        pytest.param(
            answered(usable=4, joined=0, closed=0),
            evidence(),
            (DELETE, Reason.DELETION_STARTED),
            id="there were no hosts a moment ago",
        ),
        pytest.param(
            answered(ASKED - SECOND, joined=0, closed=0),
            evidence(),
            (CLOSE, Reason.CLOSING_HOSTS),
            id="there were no hosts, and some may have joined since",
        ),
        pytest.param(
            answered(ASKED - MINUTE, closed=3, vacant_since=NOW - GRACE),
            evidence(),
            (DELETE, Reason.DELETION_STARTED),
            id="a host cannot be closed, which was told after a minute",
        ),
        pytest.param(
            answered(ASKED - MINUTE - SECOND, closed=3, vacant_since=NOW - GRACE),
            evidence(),
            (CLOSE, Reason.CLOSING_HOSTS),
            id="a host cannot be closed, and somebody may have come since",
        ),
        pytest.param(asked(), evidence(), (WAIT, Reason.CLOSING_HOSTS), id="asked a moment ago"),
        pytest.param(asked(NOW - MINUTE), evidence(), (CLOSE, Reason.CLOSING_HOSTS), id="not answered within a minute"),
        pytest.param(
            asked(usable=0, closed=4), evidence(), (WAIT, Reason.CLOSING_HOSTS), id="an earlier question was answered"
        ),
        pytest.param(asked(highest=3), evidence(), (CLOSE, Reason.CLOSING_HOSTS), id="the relay has seen a later one"),
        pytest.param(
            answered(answered=3, highest=3), evidence(), (CLOSE, Reason.CLOSING_HOSTS), id="and has answered that"
        ),
        pytest.param(
            answered(highest=3), evidence(), (CLOSE, Reason.CLOSING_HOSTS), id="answered, before a later one was seen"
        ),
        pytest.param(
            answered(asked=asked_to_open(ASKED, number=2)),
            evidence(),
            (CLOSE, Reason.CLOSING_HOSTS),
            id="the answered question opens the hosts",
        ),
        pytest.param(answered(closed=0), evidence(), (WAIT, Reason.CLOSING_HOSTS), id="answered, but not closed"),
        pytest.param(
            answered(NOW - MINUTE, closed=3),
            evidence(),
            (CLOSE, Reason.CLOSING_HOSTS),
            id="answered, but one host is still not closed after a minute",
        ),
        pytest.param(
            answered(closed=3, vacant_since=NOW - GRACE),
            evidence(),
            (DELETE, Reason.DELETION_STARTED),
            id="a host cannot be closed, and nobody came for long",
        ),
        pytest.param(
            answered(closed=0, occupants=(GUEST,)),
            evidence(released=True),
            (DELETE, Reason.DELETION_STARTED),
            id="an operator requested the release: its own Job does not count",
        ),
        pytest.param(
            asked(occupants=(GUEST,)),
            evidence(released=True),
            (WAIT, Reason.CLOSING_HOSTS),
            id="released, its own Job is there, and the relay has not answered",
        ),
        pytest.param(
            answered(closed=0, occupants=(GUEST,)),
            evidence(),
            (WAIT, Reason.CLOSING_HOSTS),
            id="answered while a Job was there whose JobSet has ended since",
        ),
        pytest.param(
            answered(closed=0),
            evidence(released=True),
            (WAIT, Reason.CLOSING_HOSTS),
            id="released, its own Job has left, and a guest may still come",
        ),
        pytest.param(ANSWERED, evidence(), (DELETE, Reason.DELETION_STARTED), id="nobody is there, nobody can come"),
        pytest.param(
            answered(joined=0, closed=0),
            evidence(),
            (DELETE, Reason.DELETION_STARTED),
            id="there are no hosts",
        ),
    ],
)
def test_each_row_has_its_step_and_reason(pool: Attempt, known: Evidence, expected: tuple[Step, Reason]) -> None:
    assert judged(pool, known) == expected


@pytest.mark.parametrize("requeue_after", [10 * SECOND, MINUTE, 5 * MINUTE], ids=str)
def test_the_answer_that_hosts_cannot_be_closed_counts_as_long_whatever_the_settings(requeue_after: timedelta) -> None:
    """The relay gives it a minute after the question, and is asked again once it is 30 seconds old."""
    limits = replace(LIMITS, requeue_after=requeue_after)
    for at, step in ((ASKED - MINUTE, DELETE), (ASKED - MINUTE - SECOND, CLOSE)):
        pool = answered(at, closed=3, vacant_since=NOW - GRACE)
        assert assess(pool, evidence(), NOW, limits).step is step


def test_a_message_names_who_uses_the_hosts_and_until_when_they_are_kept() -> None:
    assert assess(a_pool(), evidence(users=PRESENT), NOW, LIMITS).message == "research/guest runs on its hosts"
    assert assess(a_pool(), evidence(users=RESTARTING), NOW, LIMITS) == Assessment(
        WAIT,
        Reason.RESTART_POSSIBLE,
        "research/guest ran on its hosts at 11:51:00 UTC, and may restart there",
        NOW + MINUTE,
    )
    spared = assess(a_pool(spared_until=NOW + 2 * MINUTE), evidence(), NOW, LIMITS)
    assert (spared.message, spared.until) == ("kept until 12:02:00 UTC, when it is known who uses it", NOW + 2 * MINUTE)


# a TPUNodeGroup that is over

SOON, OVER = NOW + 5 * MINUTE, NOW - MINUTE


@pytest.mark.parametrize(
    ("pool", "known", "expected"),
    [
        (a_pool(), {"evict_by": SOON}, (Step.CLOSE, Reason.CLOSING_HOSTS)),
        (a_pool(), {"evict_by": SOON, "users": PRESENT}, (Step.CLOSE, Reason.CLOSING_HOSTS)),
        (a_pool(), {"evict_by": SOON, "users": RESTARTING}, (Step.CLOSE, Reason.CLOSING_HOSTS)),
        (a_pool(spared_until=SOON), {"evict_by": SOON}, (Step.CLOSE, Reason.CLOSING_HOSTS)),
        (asked(), {"evict_by": SOON}, (Step.WAIT, Reason.CLOSING_HOSTS)),
        (asked(NOW - 2 * MINUTE), {"evict_by": SOON}, (Step.CLOSE, Reason.CLOSING_HOSTS)),
        (asked(highest=3), {"evict_by": SOON}, (Step.CLOSE, Reason.CLOSING_HOSTS)),
        (answered(), {"evict_by": SOON}, (Step.DELETE, Reason.DELETION_STARTED)),
        (answered(), {"evict_by": OVER, "users": PRESENT}, (Step.DELETE, Reason.DELETION_STARTED)),
        (asked(), {"evict_by": OVER}, (Step.WAIT, Reason.CLOSING_HOSTS)),
        (asked(NOW - 2 * MINUTE), {"evict_by": OVER, "users": PRESENT}, (Step.DELETE, Reason.DELETION_STARTED)),
        (a_pool(), {"evict_by": OVER}, (Step.CLOSE, Reason.CLOSING_HOSTS)),
        (a_pool(), {"evict_by": SOON, "stopped": "too many"}, (Step.WAIT, Reason.RELEASES_STOPPED)),
        (answered(), {"evict_by": OVER, "relay": NEVER_HEARD}, (Step.WAIT, Reason.RELAY_SILENT)),
    ],
)
def test_the_pods_of_a_group_that_is_over_get_a_time_to_go(
    pool: Attempt, known: dict[str, Any], expected: tuple[Step, Reason]
) -> None:
    assert judged(pool, evidence(**known)) == expected


def test_it_says_until_when_pods_are_evicted() -> None:
    assert "evicted, until 12:05:00 UTC at the latest" in assess(a_pool(), evidence(evict_by=SOON), NOW, LIMITS).message


@pytest.mark.parametrize(
    ("ends_by", "told"),
    [
        (None, "its hosts are being closed to new pods"),
        (NOW + MINUTE, "pods that are being deleted on its hosts have until 12:01:00 UTC to end"),
        (NOW, "pods on its hosts should have ended by 12:00:00 UTC, and have not: see the kubelets there"),
    ],
    ids=["none", "in their grace", "beyond it"],
)
def test_it_is_told_until_when_pods_that_are_being_deleted_keep_a_pool(ends_by: datetime | None, told: str) -> None:
    found = assess(asked(ends_by=ends_by), evidence(), NOW, LIMITS)
    assert (found.step, found.reason, found.message) == (WAIT, Reason.CLOSING_HOSTS, told)
