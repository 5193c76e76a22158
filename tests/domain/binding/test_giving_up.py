"""When the current attempt is given up, and how: one row per row of the table."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_jobset, heard, settings, some_hosts, with_fields
from tests.domain.cases import (
    GUEST,
    GUEST_ENDED,
    HEARD_AGAIN,
    HOUR,
    LEFT,
    LOST,
    OTHERS,
    OURS,
    OWN,
    SILENT,
    STOCKOUT,
    lasting,
    observations,
    ready,
    records,
    requested,
    situations,
    wanted,
)
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Observation,
    Observed,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.reconciling.case import Known, Situation
from tpu_slices.domain.reconciling.giving_up import GivingUp, giving_up
from tpu_slices.domain.reconciling.returning import AWAY
from tpu_slices.domain.records.gangs import Gang
from tpu_slices.domain.records.slices import SliceRecord

LIMITS = Limits()


def ended(record: SliceRecord, seen: Observation, known: Known | None = None) -> GivingUp | None:
    """Return how a slice ends, whatever is told of it."""
    end = giving_up(Situation(record, Observed(seen), NOW, settings(), known or heard()))
    return replace(end, why="") if end is not None else None


UNNEEDED, FITS, ENDED, FAILED = (
    GivingUp(unneeded=True),
    GivingUp(fits=True),
    GivingUp(),
    GivingUp(failure=STOCKOUT),
)
KEPT = None
_GANG = Gang(replicated_jobs=("slice",), claims=2, chips=32, since=NOW, state_since=NOW, lacks_since=NOW)
_OWN = a_jobset(gangs={"all": _GANG})
OF_A_WAITING_GANG = heard(workloads={_OWN.owner.uid: _OWN})


@pytest.mark.parametrize(
    ("record", "seen", "known", "expected"),
    [
        # its pool is gone, or going
        pytest.param(
            requested(attempt=0, legacy_pool="llama-4f2a1"), Absent(), None, ENDED, id="an adopted pool is gone"
        ),
        pytest.param(
            requested(attempt=0, legacy_pool="llama-4f2a1"),
            Begun("its instance template"),
            None,
            ENDED,
            id="the hosts of an adopted pool are gone",
        ),
        pytest.param(requested(), Begun("its instance template"), None, KEPT, id="those of ours are made again"),
        pytest.param(
            requested(), Begun("its instance template"), OF_A_WAITING_GANG, ENDED, id="begun, and its gang waits"
        ),
        pytest.param(requested(), Absent(), None, KEPT, id="ours is gone: the same name is created again"),
        pytest.param(ready(), Deleting(), SILENT, ENDED, id="somebody deletes it"),
        # others on it
        pytest.param(
            requested(hosts=some_hosts(occupants=(GUEST,))), OURS, SILENT, FITS, id="others on it, its Job waits"
        ),
        pytest.param(
            requested(hosts=some_hosts(occupants=(GUEST,))), Broken(STOCKOUT), None, FITS, id="others on it, and broken"
        ),
        pytest.param(
            requested(hosts=some_hosts(occupants=(GUEST, OWN))),
            OURS,
            None,
            KEPT,
            id="others on it, but its own Job too",
        ),
        pytest.param(
            ready(2 * HOUR, hosts=some_hosts(occupants=(GUEST,))),
            OURS,
            None,
            KEPT,
            id="others on it, its Job does not wait",
        ),
        # the creation
        pytest.param(requested(), Creating(), None, KEPT, id="GKE is creating it"),
        pytest.param(
            requested(create_requested_at=NOW - 20 * MINUTE), LOST, None, KEPT, id="no operation, not for long"
        ),
        pytest.param(requested(), LOST, SILENT, KEPT, id="no operation for long, users unknown"),
        pytest.param(
            lasting(Reason.CREATING, HOUR), Broken(STOCKOUT), SILENT, FAILED, id="failed before any host, relay silent"
        ),
        pytest.param(
            lasting(Reason.CREATION_STARTED, MINUTE), Broken(STOCKOUT), Known(), FAILED, id="failed before it was seen"
        ),
        pytest.param(
            lasting(Reason.CREATING, HOUR, hosts=some_hosts(usable=3)),
            Broken(STOCKOUT),
            SILENT,
            KEPT,
            id="failed with hosts",
        ),
        # broken later
        pytest.param(lasting(Reason.HOSTS_LOST, MINUTE), Broken(STOCKOUT), None, FAILED, id="broken, unused"),
        pytest.param(lasting(Reason.HOSTS_LOST, MINUTE), Broken(STOCKOUT), SILENT, KEPT, id="broken, relay silent"),
        pytest.param(
            lasting(Reason.HOSTS_LOST, MINUTE),
            Broken(STOCKOUT),
            HEARD_AGAIN,
            KEPT,
            id="broken, relay heard again just now",
        ),
        pytest.param(
            lasting(Reason.HOSTS_LOST, MINUTE, spared_until=NOW + MINUTE),
            Broken(STOCKOUT),
            None,
            KEPT,
            id="broken, spared",
        ),
        pytest.param(
            lasting(Reason.HOSTS_LOST, MINUTE, hosts=some_hosts(usable=3, occupants=(OWN,))),
            Broken(STOCKOUT),
            None,
            KEPT,
            id="broken under its Job",
        ),
        pytest.param(
            lasting(Reason.HOSTS_LOST, MINUTE, hosts=some_hosts(usable=3, departures=LEFT)),
            Broken(STOCKOUT),
            None,
            KEPT,
            id="broken under a Job that restarts",
        ),
        pytest.param(
            lasting(
                Reason.HOSTS_LOST, MINUTE, hosts=some_hosts(usable=3, occupants=(GUEST,)), demand_confirmed_at=None
            ),
            Broken(STOCKOUT),
            GUEST_ENDED,
            FAILED,
            id="broken under a Job that ended",
        ),
        pytest.param(ready(), Broken(STOCKOUT), None, KEPT, id="broken by GKE's word, but every host is usable"),
        # another request
        pytest.param(ready(rebuild_allowed=True), OTHERS, None, ENDED, id="another request, changed while suspended"),
        pytest.param(
            lasting(Reason.HOSTS_LOST, MINUTE, rebuild_allowed=True, hosts=some_hosts(usable=3)),
            OTHERS,
            None,
            ENDED,
            id="another request, and fewer hosts than it needs",
        ),
        pytest.param(ready(rebuild_allowed=True), OURS, None, KEPT, id="changed while suspended, and back again"),
        pytest.param(ready(), OTHERS, None, KEPT, id="another request, not changed while suspended"),
        pytest.param(ready(rebuild_allowed=True), OTHERS, SILENT, KEPT, id="another request, relay silent"),
        pytest.param(
            ready(rebuild_allowed=True, hosts=some_hosts(occupants=(OWN,))),
            OTHERS,
            None,
            KEPT,
            id="another request, in use",
        ),
    ],
)
def test_each_row_ends_the_attempt_or_keeps_it(
    record: SliceRecord, seen: Observation, known: Known | None, expected: GivingUp | None
) -> None:
    assert ended(record, seen, known) == expected


@pytest.mark.parametrize("reason", [Reason.HOSTS_JOINING, Reason.HOSTS_LOST, Reason.POOL_BROKEN, *AWAY])
@pytest.mark.parametrize("seen", [OURS], ids=repr)
def test_a_pool_without_some_usable_hosts_fails_after_hosts_timeout(reason: Reason, seen: Observation) -> None:
    record = lasting(reason, LIMITS.hosts_timeout, hosts=some_hosts(usable=3))
    failed = ended(record, seen)
    assert failed is not None
    assert failed.failure == Failure(FailureKind.HOSTS, "3 of 4 hosts became usable within 30 minutes.")
    assert ended(lasting(reason, LIMITS.hosts_timeout - MINUTE, hosts=some_hosts(usable=3)), seen) is None
    assert ended(with_fields(record, hosts=some_hosts(usable=3, occupants=(OWN,))), seen) is None
    assert ended(record, seen, SILENT) is None
    assert ended(with_fields(record, hosts=some_hosts()), seen) is None


@pytest.mark.parametrize("reason", [Reason.CREATION_STARTED, Reason.CREATING])
def test_the_hosts_of_a_pool_whose_creation_took_long_have_time_to_join(reason: Reason) -> None:
    assert ended(lasting(reason, HOUR), OURS) is None


def test_a_pool_that_gke_forgot_to_create_fails() -> None:
    failed = ended(requested(create_requested_at=NOW - 21 * MINUTE), LOST)
    assert failed is not None
    assert failed.failure is not None
    assert failed.failure.kind is FailureKind.UNKNOWN


IDLE = LIMITS.idle_after


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        pytest.param(ready(IDLE), UNNEEDED, id="unused for long"),
        pytest.param(ready(IDLE - MINUTE), KEPT, id="unused, not for long"),
        pytest.param(ready(2 * HOUR, hosts=some_hosts(vacant_since=NOW - MINUTE)), KEPT, id="vacated a moment ago"),
        pytest.param(ready(IDLE, demand_confirmed_at=None), UNNEEDED, id="nobody ever waited"),
        pytest.param(
            ready(2 * HOUR, demand_confirmed_at=NOW - HOUR),
            UNNEEDED,
            id="its leader waited, and does not any more",
        ),
        pytest.param(ready(2 * HOUR, hosts=some_hosts(occupants=(GUEST,))), KEPT, id="others use it"),
        pytest.param(lasting(Reason.HOSTS_JOINING, IDLE - MINUTE, hosts=some_hosts()), KEPT, id="not yet ready"),
    ],
)
def test_a_ready_pool_that_nobody_uses_is_given_up_after_idle_after(
    record: SliceRecord, expected: GivingUp | None
) -> None:
    assert ended(record, OURS) == expected
    assert ended(record, OURS, SILENT) is None


def test_a_ready_pool_that_its_waiting_leader_does_not_use_is_refused() -> None:
    refused = ended(ready(IDLE, demand_confirmed_at=NOW - MINUTE), OURS)
    assert refused is not None
    assert refused.rejection is not None
    assert (refused.fits, refused.unneeded, refused.rejection.reason) == (False, False, Reason.LEADER_UNSCHEDULABLE)


def test_a_pool_that_was_waited_for_before_it_was_vacant_is_neither_refused_nor_created_again() -> None:
    soon = settings(limits=replace(LIMITS, idle_after=5 * MINUTE))
    record = ready(6 * MINUTE, demand_confirmed_at=NOW - 7 * MINUTE)
    assert giving_up(Situation(record, Observed(OURS), NOW, soon, heard())) is None


present = observations.filter(lambda seen: not isinstance(seen, Absent | Begun | Deleting))
used = st.sampled_from(
    [some_hosts(usable=usable, **by) for usable in (0, 4) for by in ({"occupants": (OWN,)}, {"departures": LEFT})]
)
used_by_its_own_job = st.tuples(records(), used).map(lambda pair: with_fields(wanted(pair[0]), hosts=pair[1]))
with_hosts = st.tuples(records(), st.integers(0, 4)).map(
    lambda pair: with_fields(wanted(pair[0]), hosts=some_hosts(usable=pair[1]))
)


@given(situations(used_by_its_own_job, current=present))
def test_a_wanted_pool_that_its_own_job_uses_is_never_given_up(case: Situation) -> None:
    there = case.record.occupied or not isinstance(case.seen.pool, Unowned)
    if case.record.wanted and case.users and there:
        assert giving_up(case) is None


@given(situations(with_hosts, st.just(SILENT), present))
def test_while_the_relay_is_silent_a_wanted_pool_with_hosts_is_not_given_up(case: Situation) -> None:
    assert case.known.relay.silent(NOW)
    assert isinstance(case.seen.pool, Unowned) or giving_up(case) is None


@given(situations(records().map(wanted), current=st.just(Unreadable("503"))))
def test_a_wanted_slice_gives_nothing_up_over_a_pool_that_is_not_read(case: Situation) -> None:
    assert giving_up(case) is None or not case.record.wanted


@given(situations(records().map(wanted), current=st.just(Unowned("It has no labels."))))
def test_a_name_that_somebody_else_uses_is_given_up_unless_its_own_job_is_there(case: Situation) -> None:
    end = giving_up(case)
    assert not case.record.wanted or (end is None) == case.record.occupied
    assert end is None or "It has no labels." in end.unowned


@given(situations())
def test_a_slice_ends_in_one_way(case: Situation) -> None:
    end = giving_up(case)
    if end is not None:
        ways = [end.fits, end.unneeded, bool(end.unowned), end.failure is not None, end.rejection is not None]
        assert ways.count(True) <= 1
        assert end.told or end.unowned
