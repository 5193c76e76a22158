"""From facts about hosts, leaders and JobSets to the record of a slice."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_jobset, a_record, an_occupant
from tpu_slices.domain.model.facts import HostsChanged, LeaderBound, WorkloadState
from tpu_slices.domain.model.records import Desire, TerminatingAttempt
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.model.workloads import WorkloadRecord
from tpu_slices.domain.reconciling.demand import counted, with_current_desire
from tpu_slices.domain.reconciling.occupancy import bound

LATER = NOW + 5 * MINUTE
ENDS = [state for state in WorkloadState if state.ended]


def hosts(**changes: int) -> HostsChanged:
    fields = {"attempt": 1, "usable": 3, "joined": 4, "sequence": 7}
    return HostsChanged(slice_id=a_record().id, **{**fields, **changes})


@pytest.mark.parametrize(
    ("fact", "counts"),
    [
        pytest.param(hosts(), True, id="newer"),
        pytest.param(hosts(attempt=2), False, id="of another attempt"),
        pytest.param(hosts(sequence=4), False, id="older than what is known"),
        pytest.param(hosts(usable=0, joined=0), False, id="nothing changed"),
    ],
)
def test_a_count_of_hosts_is_saved_only_where_it_is_newer_and_different(fact: HostsChanged, counts: bool) -> None:
    after = counted(fact, a_record(hosts_sequence=5, next_reconcile_at=None), LATER)
    assert (after is not None) is counts
    if after is not None:
        assert (after.hosts_usable, after.hosts_joined, after.hosts_sequence, after.next_reconcile_at) == (
            3,
            4,
            7,
            LATER,
        )


counts = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), min_size=1, max_size=6, unique=True)


@given(counts, st.randoms(use_true_random=False))
def test_host_counts_in_any_order_converge_to_the_latest(pairs: list[tuple[int, int]], chance: Random) -> None:
    story = [hosts(usable=usable, joined=joined, sequence=at) for at, (usable, joined) in enumerate(pairs, start=1)]
    facts = [*story, *story]
    chance.shuffle(facts)
    record = a_record()
    for fact in facts:
        record = counted(fact, record, LATER) or record
    assert (record.hosts_usable, record.hosts_joined) == pairs[-1]


def leader(jobset: str = "llama", *, on: bool = True, attempt: int = 1) -> LeaderBound:
    return LeaderBound(slice_id=a_record().id, attempt=attempt, occupant=an_occupant(jobset), bound=on)


def test_a_leader_becomes_an_occupant_and_leaves() -> None:
    occupied = bound(leader(), a_record(), NOW)
    assert occupied is not None
    assert occupied.occupants == (an_occupant(),)
    free = bound(leader(on=False), occupied, NOW)
    assert free is not None
    assert free.occupants == ()


def test_a_late_fact_about_an_earlier_leader_does_not_remove_the_present_one() -> None:
    occupied = a_record(occupants=(an_occupant(pod_uid="pod-after-restart"),))
    assert bound(leader(on=False), occupied, NOW) is None


def test_a_leader_on_an_earlier_attempt_occupies_that_attempt() -> None:
    record = a_record(attempt=2, terminating=(TerminatingAttempt(attempt=1),))
    after = bound(leader("other"), record, NOW)
    assert after is not None
    assert after.occupants == ()
    assert after.terminating == (TerminatingAttempt(attempt=1, occupants=(an_occupant("other"),)),)


@pytest.mark.parametrize(
    ("workloads", "desire"),
    [
        pytest.param([a_jobset()], Desire.PRESENT, id="active"),
        pytest.param([], Desire.PRESENT, id="unknown: nothing is deleted"),
        pytest.param([a_jobset(state=WorkloadState.SUSPENDED)], Desire.ABSENT, id="suspended"),
        *(pytest.param([a_jobset(state=end)], Desire.ABSENT, id=end) for end in ENDS),
    ],
)
def test_a_slices_desire_follows_from_its_jobsets_state(workloads: list[WorkloadRecord], desire: Desire) -> None:
    record = with_current_desire(a_record(), {jobset.owner.uid: jobset for jobset in workloads})
    assert record.desire is desire


def test_a_requested_release_overrides_the_jobsets_demand() -> None:
    assert (
        with_current_desire(a_record(release_requested=True), {a_jobset().owner.uid: a_jobset()}).desire
        is Desire.ABSENT
    )


@pytest.mark.parametrize(
    ("state", "stays"),
    [
        pytest.param(None, True, id="an unknown JobSet counts as live"),
        pytest.param(WorkloadState.ACTIVE, True, id="active"),
        pytest.param(WorkloadState.SUSPENDED, False, id="suspended"),
        pytest.param(WorkloadState.FAILED, False, id="failed"),
    ],
)
def test_an_occupant_counts_while_its_jobset_is_live(state: WorkloadState | None, stays: bool) -> None:
    guest = an_occupant("other")
    workloads = [] if state is None else [a_jobset(uid=WorkloadUid("uid-other"), state=state)]
    record = a_record(attempt=2, occupants=(guest,), terminating=(TerminatingAttempt(attempt=1, occupants=(guest,)),))
    after = with_current_desire(record, {jobset.owner.uid: jobset for jobset in workloads})
    assert (after.occupants == (guest,)) is stays
    assert (after.terminating[0].occupants == (guest,)) is stays
