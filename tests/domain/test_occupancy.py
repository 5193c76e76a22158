"""Who is on a slice's hosts, by the relay's reports, and what follows for the slices of those who come and go."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_job, a_jobset, a_record, an_occupant, hosts_changed, some_hosts
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.facts import HostsChanged, Occupant, WorkloadState
from tpu_slices.domain.model.hosts import Departure, Hosts, digest_of
from tpu_slices.domain.model.records import RunsOn, SliceRecord, TerminatingAttempt
from tpu_slices.domain.model.slices import WorkloadUid, slice_id
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.reconciling.occupancy import (
    MOST_DEPARTURES,
    arrived,
    moved,
    reported,
    settled_demand,
    users,
    with_hosts,
    with_place,
)

LATER = NOW + MINUTE
GRACE = Limits().restart_grace
LLAMA, GEMMA = an_occupant(), an_occupant("gemma")
OF_GEMMA = slice_id(a_job(name="gemma", uid=WorkloadUid("uid-gemma")))


# reports


@pytest.mark.parametrize(
    ("fact", "counts"),
    [
        pytest.param(hosts_changed(usable=3, sequence=7), True, id="newer and different"),
        pytest.param(hosts_changed(usable=3, sequence=5), True, id="of the same position and different"),
        pytest.param(hosts_changed(usable=3, sequence=4), False, id="older than what is known"),
        pytest.param(hosts_changed(sequence=7), False, id="nothing changed"),
        pytest.param(hosts_changed(sequence=7, answers=NOW), True, id="an answer"),
        pytest.param(hosts_changed(sequence=7, occupants=(LLAMA,)), True, id="a leader came"),
    ],
)
def test_a_report_is_saved_only_where_it_is_no_older_and_different(fact: HostsChanged, *, counts: bool) -> None:
    assert (reported(some_hosts(sequence=5), fact, LATER) is not None) is counts


def test_the_first_report_counts_even_if_there_are_no_hosts() -> None:
    after = reported(Hosts(), hosts_changed(usable=0, joined=0), NOW)
    assert after == Hosts(sequence=1, vacant_since=NOW)


Course = list[tuple[int, tuple[Occupant, ...]]]
occupants_seen = st.sampled_from([(), (LLAMA,), (GEMMA, LLAMA)])
courses = st.lists(st.tuples(st.integers(0, 4), occupants_seen), min_size=1, max_size=6)


@given(courses, st.randoms(use_true_random=False))
def test_reports_in_any_order_converge_to_the_latest(course: Course, chance: Random) -> None:
    facts = [
        hosts_changed(usable=usable, occupants=occupants, sequence=at)
        for at, (usable, occupants) in enumerate(course, start=1)
    ]
    shuffled = [*facts, *facts]
    chance.shuffle(shuffled)
    hosts = Hosts()
    for fact in [*shuffled, facts[-1]]:
        hosts = reported(hosts, fact, NOW) or hosts
    assert (hosts.usable, hosts.occupants) == course[-1]


def test_a_job_that_left_is_remembered_until_it_is_back() -> None:
    left = reported(some_hosts(occupants=(LLAMA,)), hosts_changed(), LATER)
    assert left is not None
    assert (left.departures, left.vacant_since) == ((Departure(user=LLAMA, at=LATER),), LATER)
    restarted = an_occupant(pod_uid="pod-after-restart")
    back = reported(left, hosts_changed(occupants=(restarted,), sequence=2), LATER + MINUTE)
    assert back is not None
    assert (back.departures, back.vacant_since) == ((), None)


def test_hosts_are_vacant_since_the_last_job_left() -> None:
    vacant = some_hosts(vacant_since=NOW)
    again = reported(vacant, hosts_changed(usable=3, sequence=2), LATER)
    assert again is not None
    assert again.vacant_since == NOW


def test_only_so_many_departures_are_kept() -> None:
    many = tuple(an_occupant(job_index=index, pod_uid=f"pod-{index:03}") for index in range(2 * MOST_DEPARTURES))
    after = reported(some_hosts(occupants=many), hosts_changed(), LATER)
    assert after is not None
    assert len(after.departures) == MOST_DEPARTURES


def test_the_latest_answer_is_kept() -> None:
    after = reported(some_hosts(answered=NOW), hosts_changed(usable=0, sequence=2, answers=NOW - MINUTE), LATER)
    assert after is not None
    assert after.answered == NOW


# digests


def test_digests_tell_hosts_apart_and_are_zero_without_any() -> None:
    id_ = a_record().id
    assert digest_of(id_, 1, Hosts(sequence=9)) == 0
    several = [some_hosts(), some_hosts(usable=3), some_hosts(closed=4), some_hosts(occupants=(LLAMA,))]
    digests = {digest_of(id_, attempt, hosts) for attempt in (1, 2) for hosts in several}
    assert len(digests) == 2 * len(several)


def test_a_digest_does_not_depend_on_what_only_the_functions_know() -> None:
    known = some_hosts(departures=(Departure(user=GEMMA, at=NOW),), sequence=9, answered=NOW, vacant_since=None)
    assert digest_of(a_record().id, 1, known) == digest_of(a_record().id, 1, some_hosts())


# users


@pytest.mark.parametrize(
    ("workload", "uses"),
    [
        pytest.param(None, True, id="an unknown JobSet counts as live"),
        pytest.param(a_jobset(state=WorkloadState.ACTIVE), True, id="active"),
        pytest.param(a_jobset(state=WorkloadState.SUSPENDED), False, id="suspended"),
        pytest.param(a_jobset(state=WorkloadState.SUSPENDED, generation=0), True, id="suspended before, resumed since"),
        pytest.param(a_jobset(state=WorkloadState.FAILED, generation=0), False, id="failed: an end is final"),
    ],
)
def test_a_job_uses_hosts_while_its_jobset_is_live(workload: WorkloadRecord | None, *, uses: bool) -> None:
    workloads = {} if workload is None else {workload.owner.uid: workload}
    hosts = some_hosts(occupants=(LLAMA,))
    assert bool(users(hosts, workloads, NOW, GRACE).present) is uses
    left = some_hosts(departures=(Departure(user=LLAMA, at=NOW),))
    assert bool(users(left, workloads, NOW, GRACE).restarting) is uses


def test_a_job_that_left_may_restart_for_a_while() -> None:
    left = some_hosts(departures=(Departure(user=LLAMA, at=NOW),))
    assert users(left, {}, NOW + GRACE - MINUTE, GRACE)
    assert not users(left, {}, NOW + GRACE, GRACE)


def test_a_release_spares_only_jobs_of_other_workloads() -> None:
    both = users(some_hosts(occupants=(GEMMA, LLAMA)), {}, NOW, GRACE)
    assert both.without(LLAMA.owner.uid).present == (GEMMA,)


# other slices


def test_arrivals_settle_the_demand_of_their_own_slice_and_of_this_one() -> None:
    settled = set(settled_demand(a_record(), (GEMMA,)))
    assert settled == {(GEMMA.owner.uid, OF_GEMMA), (a_record().owner.uid, a_record().id)}


def test_a_pod_that_was_there_has_not_arrived() -> None:
    assert arrived(some_hosts(occupants=(LLAMA,)), some_hosts(occupants=(GEMMA, LLAMA))) == (GEMMA,)


def test_slices_of_those_who_came_left_or_lost_their_place_are_concerned() -> None:
    phi = an_occupant("phi")
    before = some_hosts(occupants=(GEMMA,), departures=(Departure(user=phi, at=NOW),))
    after = some_hosts(occupants=(LLAMA,), departures=before.departures)
    concerned = moved(a_record(), before, after)
    assert set(concerned.values()) == {GEMMA, phi}, "its own Job is on its own hosts"


GUEST = a_record(job=a_job(name="gemma", uid=WorkloadUid("uid-gemma")))
THERE = RunsOn(slice_id=a_record().id, attempt=1, pod_uid=GEMMA.pod_uid, chips=16, since=NOW)
LEFT = RunsOn(slice_id=a_record().id, attempt=1, pod_uid=GEMMA.pod_uid, chips=16, since=NOW, left_at=NOW)


@pytest.mark.parametrize(
    ("place", "occupants", "expected"),
    [
        pytest.param(None, (GEMMA,), THERE, id="came"),
        pytest.param(THERE, (GEMMA,), THERE, id="is there"),
        pytest.param(LEFT, (GEMMA,), THERE, id="came back"),
        pytest.param(THERE, (), LEFT, id="left"),
        pytest.param(LEFT, (), LEFT, id="left before"),
        pytest.param(LEFT, (LLAMA,), None, id="left before, and others came"),
        pytest.param(None, (LLAMA,), None, id="was never there"),
    ],
)
def test_a_slice_knows_where_its_job_runs(
    place: RunsOn | None, occupants: tuple[Occupant, ...], expected: RunsOn | None
) -> None:
    host = with_hosts(a_record(create_requested_at=NOW), 1, some_hosts(occupants=occupants), NOW)
    after = with_place(_at(place), host, 1, GEMMA, NOW) or _at(place)
    assert after.runs_on == expected


def _at(place: RunsOn | None) -> SliceRecord:
    return a_record(job=GUEST.job, runs_on=place)


def test_hosts_of_an_earlier_attempt_are_recorded_there() -> None:
    record = a_record(attempt=2, terminating=(TerminatingAttempt(attempt=1),))
    after = with_hosts(record, 1, some_hosts(occupants=(GEMMA,)), NOW)
    assert (after.hosts, after.terminating[0].hosts.occupants) == (record.hosts, (GEMMA,))


def test_a_job_that_is_on_its_own_hosts_runs_nowhere_else() -> None:
    record = a_record(runs_on=THERE)
    assert with_hosts(record, 1, some_hosts(occupants=(LLAMA,)), NOW).runs_on is None
