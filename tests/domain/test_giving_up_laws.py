"""What is true of giving up for every case: nobody loses hosts, and silence gives nothing up."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import NOW, some_hosts
from tests.domain.cases import LEFT, OWN, SILENT, observations, records, situations, wanted
from tpu_slices.domain.model.observations import Absent, Deleting, Unowned, Unreadable
from tpu_slices.domain.reconciling.case import Situation
from tpu_slices.domain.reconciling.giving_up import giving_up

present = observations.filter(lambda seen: not isinstance(seen, Absent | Deleting))
used = st.sampled_from(
    [some_hosts(usable=usable, **by) for usable in (0, 4) for by in ({"occupants": (OWN,)}, {"departures": LEFT})]
)
used_by_its_own_job = st.tuples(records(), used).map(lambda pair: replace(wanted(pair[0]), hosts=pair[1]))
with_hosts = st.tuples(records(), st.integers(0, 4)).map(
    lambda pair: replace(wanted(pair[0]), hosts=some_hosts(usable=pair[1]))
)


@given(situations(used_by_its_own_job, current=present))
def test_a_wanted_pool_that_its_own_job_uses_is_never_given_up(case: Situation) -> None:
    if case.record.wanted and case.users:
        assert giving_up(case) is None


@given(situations(with_hosts, st.just(SILENT), present))
def test_while_the_relay_is_silent_a_wanted_pool_with_hosts_is_not_given_up(case: Situation) -> None:
    assert case.known.relay.silent(NOW)
    assert giving_up(case) is None


@given(situations(records().map(wanted), current=st.sampled_from([Unowned("x"), Unreadable("503")])))
def test_a_wanted_slice_gives_nothing_up_over_a_pool_that_is_not_ours_or_not_read(case: Situation) -> None:
    assert giving_up(case) is None or not case.record.wanted


@given(situations())
def test_an_attempt_ends_in_one_way(case: Situation) -> None:
    end = giving_up(case)
    assert end is None or [end.fits, end.failure is not None, end.rejection is not None].count(True) <= 1


@given(situations())
def test_what_is_not_wanted_is_given_up_and_what_was_never_requested_is_not(case: Situation) -> None:
    end = giving_up(case)
    if case.record.create_requested_at is None:
        assert end is None
    elif not case.record.wanted:
        assert end is not None
        assert end.fits
