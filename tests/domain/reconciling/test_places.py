"""Whose demand an arrival settles, where Jobs run that are on the hosts of other slices, and who holds the chips."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import (
    MINUTE,
    NOW,
    a_job,
    a_list,
    a_record,
    an_occupant,
    hosts_changed,
    some_hosts,
    unclaimed,
    with_fields,
)
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.facts import Family, Listed, Occupant
from tpu_slices.domain.model.slices import WorkloadUid, claim_id
from tpu_slices.domain.reconciling.occupancy import (
    NewCount,
    counted,
    lowered,
    settled_demand,
    with_hosts,
    with_place,
    with_report,
)
from tpu_slices.domain.records.hosts import NO_HOSTS, Departure, Hosts, RunsOn, key_of
from tpu_slices.domain.records.slices import Desire, SliceRecord

LATER = NOW + MINUTE
GRACE = Limits().restart_grace
LLAMA, GEMMA = an_occupant(), an_occupant("gemma")
OF_GEMMA = claim_id(a_job(name="gemma", uid=WorkloadUid("uid-gemma")))


def a_count(occupants: tuple[Occupant, ...], host: SliceRecord | None = None, sequence: int = 5) -> NewCount:
    """Return a count of who is on the hosts of a slice."""
    record = host or a_record(create_requested_at=NOW)
    after = counted(record.current.hosts, hosts_changed(occupants=occupants, sequence=sequence), NOW)
    assert after is not None
    return NewCount(record, after, NOW)


def on_hosts(*occupants: Occupant) -> SliceRecord:
    return a_record(create_requested_at=NOW, hosts=some_hosts(occupants=occupants))


NOBODYS = unclaimed(on_hosts())
"""A slice that its claim has no more."""


def test_arrivals_settle_the_demand_of_their_own_slice_and_of_this_one() -> None:
    for host in (a_record(create_requested_at=NOW), NOBODYS):
        settled = set(settled_demand(a_count((GEMMA,), host), {}))
        assert settled == {(GEMMA.owner.uid, OF_GEMMA), (a_record().owner.uid, a_record().maker)}


def test_a_job_that_arrives_on_a_slice_that_its_claim_has_no_more_settles_its_demand() -> None:
    assert set(settled_demand(a_count((LLAMA,), NOBODYS), {})) == {(a_record().owner.uid, a_record().maker)}


def test_an_outdated_arrival_leaves_the_demand_of_its_own_slice() -> None:
    settled = set(settled_demand(a_count((GEMMA,)), {OF_GEMMA: _at(ELSEWHERE_LATER)}))
    assert settled == {(a_record().owner.uid, a_record().maker)}
    its_own = a_count((LLAMA,), host=a_record(runs_on=ELSEWHERE_LATER))
    assert set(settled_demand(its_own, {})) == set()


def test_a_sibling_that_arrives_settles_the_demand_of_this_slice_and_not_of_its_own() -> None:
    assert set(settled_demand(a_count((an_occupant(job_index=1),)), {})) == {(a_record().owner.uid, a_record().maker)}


def test_a_pod_that_was_there_has_not_arrived() -> None:
    assert a_count((GEMMA, LLAMA), host=on_hosts(LLAMA)).arrivals == (GEMMA,)


def test_slices_of_guests_and_of_those_who_left_or_lost_their_place_are_concerned() -> None:
    phi, mistral = an_occupant("phi"), an_occupant("mistral")
    hosts = some_hosts(occupants=(GEMMA, mistral), departures=(Departure(user=phi, at=NOW),))
    count = a_count((LLAMA, mistral), host=a_record(hosts=hosts))
    assert set(count.guests.values()) == {GEMMA, mistral, phi}, "its own Job is on its own hosts"


GUEST = a_record(job=a_job(name="gemma", uid=WorkloadUid("uid-gemma")))
THERE = RunsOn(slice_id=a_record().maker, attempt=1, pod_uid=GEMMA.pod_uid, chips=16, since=NOW, sequence=5)
LEFT = replace(THERE, left_at=NOW)
ELSEWHERE = replace(THERE, slice_id=claim_id(a_job(name="phi")), pod_uid="pod-on-others", sequence=4)
LEFT_ELSEWHERE = replace(ELSEWHERE, left_at=NOW)
ELSEWHERE_LATER = replace(ELSEWHERE, sequence=6)
RESTARTED = replace(GEMMA, pod_uid="pod-restarted")
AT_HOME = some_hosts(occupants=(RESTARTED,), sequence=4)


def _at(place: RunsOn | None, home: Hosts = NO_HOSTS, **changes: Any) -> SliceRecord:
    return a_record(job=GUEST.job, runs_on=place, hosts=home, **changes)


@pytest.mark.parametrize(
    ("before", "place", "occupants", "expected"),
    [
        pytest.param((), None, (GEMMA,), THERE, id="came"),
        pytest.param((GEMMA,), THERE, (GEMMA,), THERE, id="is there"),
        pytest.param((), LEFT, (GEMMA,), THERE, id="came back"),
        pytest.param((GEMMA,), THERE, (), LEFT, id="left"),
        pytest.param((), LEFT, (), LEFT, id="left before"),
        pytest.param((), LEFT, (LLAMA,), None, id="left before, and others came"),
        pytest.param((), None, (LLAMA,), None, id="was never there"),
        pytest.param((), ELSEWHERE, (GEMMA,), THERE, id="came from elsewhere"),
        pytest.param((), ELSEWHERE_LATER, (GEMMA,), ELSEWHERE_LATER, id="came, and was elsewhere later"),
        pytest.param((GEMMA,), ELSEWHERE_LATER, (), ELSEWHERE_LATER, id="left, and is elsewhere"),
        pytest.param((GEMMA,), None, (GEMMA,), THERE, id="is there, and its place was lost"),
        pytest.param((GEMMA,), LEFT_ELSEWHERE, (GEMMA,), THERE, id="is there, and left another place"),
        pytest.param((GEMMA,), ELSEWHERE, (GEMMA,), ELSEWHERE, id="has a pod there, and came elsewhere since"),
    ],
)
def test_a_slice_knows_where_its_job_runs(
    before: tuple[Occupant, ...], place: RunsOn | None, occupants: tuple[Occupant, ...], expected: RunsOn | None
) -> None:
    for host in (on_hosts(*before), unclaimed(on_hosts(*before))):
        after = with_place(_at(place), a_count(occupants, host), GEMMA) or _at(place)
        assert after.claim.runs_on == expected


@pytest.mark.parametrize(
    ("home", "before", "runs_there"),
    [
        pytest.param(AT_HOME, (), True, id="came later than it came home"),
        pytest.param(replace(AT_HOME, sequence=6), (), False, id="came home later"),
        pytest.param(some_hosts(occupants=(GEMMA,)), (), False, id="one pod, reported for both slices"),
        pytest.param(AT_HOME, (GEMMA,), False, id="is at home, and a pod is there still"),
    ],
)
def test_a_job_runs_where_it_came_last(home: Hosts, before: tuple[Occupant, ...], *, runs_there: bool) -> None:
    after = with_place(_at(None, home), a_count((GEMMA,), host=on_hosts(*before)), GEMMA)
    assert (after is not None and after.claim.runs_on == THERE) is runs_there


def test_a_place_is_not_restored_for_a_job_that_needs_none() -> None:
    over = _at(None, desire=Desire.ABSENT)
    assert with_place(over, a_count((GEMMA,), host=on_hosts(GEMMA)), GEMMA) is None


def test_hosts_are_recorded_with_the_slice_that_they_are_of() -> None:
    claim, fact = a_record(attempt=2, earlier=(1,)), hosts_changed(occupants=(GEMMA,))
    assert with_report(NOBODYS, fact, NOW).current.hosts.occupants == (GEMMA,)
    assert with_report(claim, fact, NOW) is claim, "they are those of the slice that it had before"


@pytest.mark.parametrize(
    ("before", "place", "expected"),
    [
        pytest.param((), ELSEWHERE, None, id="it came home"),
        pytest.param((), ELSEWHERE_LATER, ELSEWHERE_LATER, id="it came home, and was elsewhere later"),
        pytest.param((LLAMA,), ELSEWHERE, ELSEWHERE, id="a pod is at home still, and it came elsewhere since"),
    ],
)
def test_a_job_that_came_to_its_own_hosts_runs_nowhere_else(
    before: tuple[Occupant, ...], place: RunsOn, expected: RunsOn | None
) -> None:
    count = a_count((LLAMA,), host=on_hosts(*before).with_claim(runs_on=place))
    assert with_hosts(count).claim.runs_on == expected


def listed(*records: SliceRecord, sequence: int = 3) -> Listed:
    digests = {key_of(each.maker, each.attempt): each.hosts_digest for each in records}
    return a_list(Family.HOSTS, digests, sequence=sequence)


def test_a_list_that_disagrees_lowers_positions_that_are_higher() -> None:
    for position, expected in ((5, 3), (2, 2)):
        record = a_record(hosts=some_hosts(sequence=position), runs_on=THERE)
        for slice_ in (record, unclaimed(record)):
            assert lowered(slice_, listed()).current.hosts == some_hosts(sequence=expected)
        assert lowered(record, listed()).claim.runs_on == replace(THERE, sequence=3)


def test_a_list_that_agrees_lowers_none() -> None:
    for record in (on_hosts(LLAMA), unclaimed(on_hosts(LLAMA))):
        assert lowered(record, listed(record, sequence=0)) == record


def test_chips_are_held_by_the_slice_whose_job_runs_on_them() -> None:
    for lender in (on_hosts(GEMMA), unclaimed(on_hosts(GEMMA))):
        assert (lender.chips_held, _at(THERE).chips_held) == (0, 16)
        assert with_fields(lender, hosts=some_hosts(occupants=(GEMMA, LLAMA))).chips_held == 16
        assert (with_fields(lender, hosts=some_hosts()).chips_held, _at(LEFT).chips_held) == (16, 0)
