"""What is true of the rule for deletions for every pool and all evidence."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, an_occupant, asked_to_close, some_hosts
from tests.domain.cases import HOUR
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.reconciling.deletion import Evidence, Step, assess
from tpu_slices.domain.reconciling.occupancy import Users
from tpu_slices.domain.records.attempts import Attempt
from tpu_slices.domain.records.heartbeats import RelayHeard
from tpu_slices.domain.records.hosts import Departure

LIMITS = Limits()
WAIT, CLOSE, DELETE = Step.WAIT, Step.CLOSE, Step.DELETE
GUEST = an_occupant("guest")
NOBODY = Users((), ())
HEARD = RelayHeard(last_at=NOW, since=NOW - 8 * HOUR)


def judged(pool: Attempt, known: Evidence) -> tuple[Step, Reason]:
    found = assess(pool, known, NOW, LIMITS)
    return found.step, found.reason


times = st.integers(-90, 30).map(lambda minutes: NOW + minutes * MINUTE)
maybe_times = st.none() | times
left_lately = st.integers(-599, 0).map(lambda seconds: NOW + seconds * timedelta(seconds=1))
departures = st.builds(Departure, user=st.just(GUEST), at=left_lately)
hosts = st.builds(
    some_hosts,
    joined=st.integers(0, 4),
    closed=st.integers(0, 4),
    occupants=st.sampled_from([(), (GUEST,)]),
    vacant_since=st.sampled_from([NOW - LIMITS.restart_grace, NOW - MINUTE]),
    sequence=st.integers(0, 3),
    asked=st.none() | st.builds(asked_to_close, times, st.just(2), close=st.booleans()),
    highest=st.integers(2, 3),
    answered=st.integers(0, 3),
).map(lambda hosts: replace(hosts, vacant_since=None) if hosts.occupants else hosts)
some_pools = st.builds(
    Attempt,
    number=st.just(1),
    create_requested_at=maybe_times,
    hosts=hosts,
    spared_until=maybe_times,
    delete_requested_at=maybe_times,
)
numbers: st.SearchStrategy[dict[str, int]] = st.sampled_from(
    [{}, {"answered": 2}, {"answered": 2}, {"answered": 2, "highest": 3}]
)
asked_lately = st.tuples(some_pools, st.integers(-12, 0), numbers).map(
    lambda drawn: _asked(drawn[0], NOW + drawn[1] * MINUTE, **drawn[2])
)
pools = some_pools | asked_lately
users = st.builds(Users, st.sampled_from([(), (GUEST,)]), st.lists(departures, max_size=2).map(tuple))
relays = st.builds(RelayHeard, last_at=maybe_times, since=maybe_times)
unforced = st.builds(
    Evidence,
    users=users | st.just(NOBODY),
    relay=relays | st.just(HEARD),
    released=st.booleans(),
    stopped=st.sampled_from([None, None, "too many"]),
)


def _asked(pool: Attempt, at: datetime, **numbers: int) -> Attempt:
    """Return an old pool about which the relay was asked by the second question."""
    known = {"asked": asked_to_close(at, number=2), "highest": 2, "answered": 1, **numbers}
    return replace(_with_hosts(pool, **known), create_requested_at=NOW - HOUR, spared_until=None)


def _with_hosts(pool: Attempt, **changes: Any) -> Attempt:
    return replace(pool, hosts=replace(pool.hosts, **changes))


@given(pools, unforced)
def test_no_pool_is_deleted_or_closed_that_a_live_job_uses(pool: Attempt, known: Evidence) -> None:
    assume(known.users)
    assert judged(pool, known)[0] is WAIT


@given(pools, unforced)
def test_nothing_is_deleted_while_the_relay_is_silent(pool: Attempt, known: Evidence) -> None:
    assume(known.relay.silent(NOW))
    assert judged(pool, known) == (WAIT, Reason.RELAY_SILENT)


@given(pools, unforced)
def test_nothing_is_deleted_without_a_recent_answer_to_the_last_question(pool: Attempt, known: Evidence) -> None:
    if judged(pool, known)[0] is DELETE:
        asked = pool.hosts.closing
        assert asked is not None
        assert pool.hosts.answered == asked.number == pool.hosts.highest
        assert NOW - asked.at <= LIMITS.restart_grace
        if pool.hosts.closed < max(pool.hosts.joined, 1):
            lasts = timedelta(seconds=90 if pool.hosts.joined else 30)
            assert NOW - asked.at <= lasts, "a pod may have come since"


@given(pools, unforced)
def test_nothing_is_deleted_while_a_pod_may_come(pool: Attempt, known: Evidence) -> None:
    """Hosts that cannot be closed may be deleted if nobody came for long, or under the Job that is to be released."""
    if judged(pool, known)[0] is DELETE:
        vacant_since = pool.hosts.vacant_since
        nobody_came = vacant_since is not None and NOW - vacant_since >= LIMITS.restart_grace
        taken = known.released and pool.hosts.occupants
        assert pool.hosts.closed >= pool.hosts.joined or nobody_came or taken


@given(pools, unforced)
def test_an_operator_can_force_every_deletion(pool: Attempt, known: Evidence) -> None:
    assert judged(pool, replace(known, forced=True))[0] is DELETE


@given(pools, unforced)
def test_what_waits_for_a_time_does_not_wait_for_a_past_one(pool: Attempt, known: Evidence) -> None:
    until = assess(pool, known, NOW, LIMITS).until
    assert until is None or until > NOW


@given(pools, users, st.none() | times.filter(lambda at: at <= NOW))
def test_a_pool_that_nobody_uses_any_more_is_deleted_in_the_end(
    pool: Attempt, left: Users, uninterrupted_since: datetime | None
) -> None:
    """Given that the relay is heard and answers within half a minute, and that every Job that was there stays away."""
    now, steps = NOW, []
    for _ in range(120):
        gone = Users((), tuple(each for each in left.restarting if now - each.at < LIMITS.restart_grace))
        found = assess(
            pool,
            Evidence(users=gone, relay=RelayHeard(last_at=now, since=uninterrupted_since), namespace="research"),
            now,
            LIMITS,
        )
        steps.append(found.step)
        if found.step is DELETE:
            break
        if found.step is CLOSE:
            pool = replace(pool, hosts=pool.hosts.asked_to(close=True, now=now))
        now += MINUTE / 2
        pool = _with_hosts(pool, closed=pool.hosts.joined, answered=pool.hosts.highest)
    assert steps[-1] is DELETE
