"""Where a workload on a ladder asks for slices: laws of the table, and its rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_job, a_jobset, a_record, a_shortage, a_spec
from tpu_slices.domain.capacity.stepping import Case, is_empty, may_step, next_look, stepped, waits
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import Capacity, CapacityKind, RungSpec, at_rung
from tpu_slices.domain.reconciling.demand import with_current_desire
from tpu_slices.domain.records.claims import Rejection
from tpu_slices.domain.records.ladders import OnLadder, PassedOver
from tpu_slices.domain.records.slices import SliceRecord

KINDS = [CapacityKind.SPOT, CapacityKind.FLEX_START, CapacityKind.ON_DEMAND]
ZONES = ["us-central2-b", "us-central2-c"]
REASONS = [
    Reason.STOCKOUT,
    Reason.QUOTA_EXCEEDED,
    Reason.AWAITING_TURN,
    Reason.INVALID_CONFIGURATION,
    Reason.CREATION_FAILED,
    Reason.OPERATION_LIMIT,
    Reason.AWAITING_GANG,
    Reason.REQUESTED,
    Reason.NO_RUNG_IN_ZONE,
]
HAVE = [Reason.CREATING, Reason.READY, Reason.AWAITING_FLEX_START, Reason.HOSTS_JOINING]

rungs = st.lists(
    st.builds(
        RungSpec,
        place=st.just("place"),
        zone=st.sampled_from(ZONES),
        capacity=st.sampled_from([Capacity(kind) for kind in KINDS]),
        lasts=st.none() | st.sampled_from([timedelta(minutes=20), timedelta(hours=2)]),
        against=st.sampled_from(["", "", "", "a selector"]),
    ),
    min_size=1,
    max_size=5,
).filter(lambda some: any(not each.against for each in some))


def a_claim(index: int, some: list[RungSpec], rung: int, reason: Reason, **changes: Any) -> SliceRecord:
    spec = at_rung(replace(a_spec(), ladder="patient@1", rungs=tuple(some)), rung)
    waiting_since = NOW - timedelta(minutes=changes.pop("waited", 30))
    record = a_record(job=a_job(job_index=index), spec=spec, waits_since=waiting_since, **changes)
    return replace(record.transitioned(NOW, reason, "said."), claim=record.claim)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    some = draw(rungs)
    numbers = st.integers(0, len(some) - 1)
    claims = []
    for index in range(draw(st.integers(0, 4))):
        rung = draw(numbers)
        if draw(st.booleans()):
            stocked = draw(st.lists(st.sampled_from(ZONES), max_size=1))
            reason, waited = draw(st.sampled_from(REASONS)), draw(st.integers(0, 300))
            claims.append(a_claim(index, some, rung, reason, stocked=tuple(stocked), waited=waited))
        else:
            made = {"create_requested_at": NOW - timedelta(minutes=draw(st.integers(0, 300)))}
            has = a_claim(index, some, rung, draw(st.sampled_from(HAVE)), **made)
            claims.append(has.with_current(ordered=has.spec))
    avoided = draw(st.dictionaries(numbers, st.integers(1, 30).map(lambda minutes: NOW + minutes * MINUTE)))
    passed = draw(st.lists(st.builds(PassedOver, rung=numbers, message=st.just("no"), until=st.just(NOW + MINUTE))))
    return Case(
        name="patient",
        at=OnLadder(
            rung=draw(numbers),
            since=NOW - timedelta(minutes=draw(st.integers(0, 300))),
            tried=draw(st.booleans()),
            sent=draw(st.booleans()),
            passed=tuple({each.rung: each for each in passed}.values()),
        ),
        rungs=some,
        claims=claims,
        what="v6e 4x4",
        avoided=avoided,
        shortages={number: a_shortage(until=until) for number, until in avoided.items()},
        anywhere=draw(st.booleans()),
        whole=draw(st.booleans()),
        now=NOW,
        mended_after=timedelta(hours=1),
    )


@given(cases())
def test_it_asks_at_a_rung_that_is_open_to_it_or_where_it_did(case: Case) -> None:
    after = stepped(case)
    if after.rung != case.at.rung:
        assert after.rung in case.open(after)
        assert not case.rungs[after.rung].against
        assert not after.passes(after.rung, NOW)
        assert after.message


@given(cases())
def test_it_asks_nowhere_if_no_rung_is_open_and_its_own_is_in_another_zone_than_what_it_has(case: Case) -> None:
    assume(not any(is_empty(each) for each in case.claims))
    after = stepped(case)
    zones = case.zones(after)
    elsewhere = bool(zones) and case.rungs[after.rung].zone not in zones
    assert bool(after.nowhere) == (bool(case.waiting) and elsewhere)


@given(cases())
def test_who_waits_for_nothing_stays(case: Case) -> None:
    if not case.waiting and not case.empty(case.at):
        assert stepped(case).rung == case.at.rung


@given(cases())
def test_what_stands_keeps_the_rest_in_its_zone_unless_it_moves_whole_or_may_be_anywhere(case: Case) -> None:
    after = stepped(case)
    if after.rung == case.at.rung or case.whole or case.anywhere:
        return
    made = [claim for claim in case.claims if claim.current.create_requested_at is not None]
    zones = {each.made_as.zone for each in made if each.reason is not Reason.AWAITING_FLEX_START and each.made_as}
    assert not zones or case.rungs[after.rung].zone in zones | {each.made_as.zone for each in made if each.made_as}


@given(cases())
def test_without_news_it_comes_to_rest_within_as_many_steps_as_there_are_rungs(case: Case) -> None:
    at, seen = case.at, 0
    while (after := stepped(replace(case, at=at))).rung != at.rung:
        at, seen = after, seen + 1
        assert seen <= len(case.rungs)


@given(cases())
def test_a_place_that_is_known_to_be_short_is_chosen_only_if_all_are(case: Case) -> None:
    after = stepped(case)
    if after.rung != case.at.rung and after.rung in case.avoided:
        assert all(number in case.avoided for number in case.open(after))


@given(cases())
def test_who_waits_is_decided_on_again(case: Case) -> None:
    after = stepped(case)
    at = next_look(case, after)
    assert at is None or at > NOW
    assert at is not None or not case.waiting or not (case.avoided or after.passed or after.tried)


THREE = [
    RungSpec(place="spot", zone=ZONES[0], capacity=Capacity(CapacityKind.SPOT), lasts=timedelta(minutes=40)),
    RungSpec(place="other", zone=ZONES[1], capacity=Capacity(CapacityKind.SPOT), lasts=timedelta(minutes=40)),
    RungSpec(place="list", zone=ZONES[0], capacity=Capacity()),
]


def a_case(*claims: SliceRecord, rung: int = 0, short: tuple[int, ...] = (), **changes: Any) -> Case:
    at = OnLadder(
        rung=rung, since=NOW - timedelta(minutes=changes.pop("here_for", 10)), tried=changes.pop("tried", False)
    )
    avoided = {number: NOW + (10 + number) * MINUTE for number in short}
    shortages = {number: a_shortage(until=until) for number, until in avoided.items()}
    fields: dict[str, Any] = {
        "name": "patient",
        "at": at,
        "rungs": THREE,
        "claims": claims,
        "what": "v6e 4x4",
        "avoided": avoided,
        "shortages": shortages,
        "now": NOW,
        "mended_after": timedelta(hours=1),
    }
    return Case(**{**fields, **changes})


STOCKOUT = a_claim(0, THREE, 0, Reason.STOCKOUT)
IN_TURN = a_claim(0, THREE, 0, Reason.AWAITING_TURN)
FAR = a_claim(0, THREE, 2, Reason.STOCKOUT)


@pytest.mark.parametrize(
    ("case", "rung"),
    [
        (a_case(STOCKOUT, short=(0,)), 0),
        (a_case(STOCKOUT, short=(0,), here_for=41), 1),
        (a_case(IN_TURN, short=(0,)), 1),
        (a_case(IN_TURN, short=(0, 1)), 2),
        (a_case(IN_TURN, short=(0, 1, 2)), 0),
        (a_case(FAR, rung=2, short=(2,)), 0),
        (a_case(FAR, rung=2, short=(0, 2)), 1),
        (a_case(FAR, rung=2, short=(0, 1, 2), tried=True), 0),
        (a_case(STOCKOUT.with_claim(stocked=(ZONES[1],)), short=(0,)), 1),
        (a_case(replace(STOCKOUT, reason=Reason.INVALID_CONFIGURATION)), 1),
    ],
    ids=[
        "its time is not over",
        "its time is over",
        "it did not ask there",
        "the next is short, too",
        "all are short",
        "a better one is free",
        "the best is short",
        "all are short, and it asked at the last",
        "the vendor names another zone",
        "the vendor does not take it",
    ],
)
def test_each_row_of_the_table(case: Case, rung: int) -> None:
    if case.claims and rung == 1 and case.at.since < NOW - 40 * MINUTE:
        case = replace(case, claims=[each.with_claim(waits_since=case.at.since) for each in case.claims])
    assert stepped(case).rung == rung


MADE = a_claim(1, THREE, 2, Reason.READY, create_requested_at=NOW - 9 * MINUTE)
WAITS_WITH_IT = a_claim(0, THREE, 2, Reason.OPERATION_LIMIT)


@pytest.mark.parametrize("whole", [True, False])
def test_a_gang_that_has_slices_where_it_asks_goes_back_to_no_better_place(*, whole: bool) -> None:
    """What stands of other workloads stays where it is, so that these may."""
    case = a_case(WAITS_WITH_IT, MADE.with_current(ordered=MADE.spec), rung=2, whole=whole)
    assert stepped(case).rung == (2 if whole else 0)


def test_who_waits_for_its_turn_is_decided_on_again_soon() -> None:
    after = stepped(a_case(IN_TURN))
    assert next_look(a_case(IN_TURN), after) == NOW + MINUTE


@pytest.mark.parametrize(("rung", "short", "comes_to"), [(0, (0,), 1), (2, (), 0)], ids=["further down", "back"])
def test_who_comes_to_a_place_where_nothing_is_known_to_be_short_is_decided_on_again_soon(
    rung: int, short: tuple[int, ...], comes_to: int
) -> None:
    waiting = a_claim(0, THREE, rung, Reason.AWAITING_TURN if short else Reason.OPERATION_LIMIT)
    case = a_case(waiting, rung=rung, short=short)
    after = stepped(case)
    assert (after.rung, next_look(case, after)) == (comes_to, NOW + MINUTE)


def test_who_comes_back_to_a_place_that_was_short_is_decided_on_again_soon_as_others_may_be_trying_it() -> None:
    case = replace(a_case(WAITS_WITH_IT, rung=2), shortages={0: a_shortage(until=NOW)})
    after = stepped(case)
    assert (after.rung, next_look(case, after)) == (0, NOW + MINUTE)


def test_a_creation_that_runs_is_no_refusal_so_that_the_first_refusal_is_decided_on() -> None:
    runs = a_claim(0, THREE, 0, Reason.CREATING, create_requested_at=NOW - MINUTE)
    after = stepped(a_case(runs.with_current(ordered=runs.spec), short=(0,)))
    assert not after.tried
    assert may_step(STOCKOUT, after, NOW)


REFUSED = Rejection(
    reason=Reason.IMPOSSIBLE_SHAPE, message="No such hosts in this zone.", settings_version="settings-1"
)
GIVEN_UP = Rejection(reason=Reason.PODS_DID_NOT_RUN, message="Its pods did not run.", settings_version="1")


@pytest.mark.parametrize(("rejection", "kept"), [(REFUSED, False), (GIVEN_UP, True)])
def test_what_one_place_refused_is_asked_at_the_next(rejection: Rejection, *, kept: bool) -> None:
    claim = a_claim(0, THREE, 0, Reason.IMPOSSIBLE_SHAPE, rejection=rejection)
    own = a_jobset(ladders={"patient@1": OnLadder(rung=1, since=NOW)})
    after = with_current_desire(claim, own)
    assert after.spec is not None
    assert (after.spec.rung, after.claim.rejection is not None) == (1, kept)


def test_the_text_says_what_ran_out_how_often_it_was_tried_and_where_it_is_asked_for_now() -> None:
    claim = STOCKOUT.with_claim(setbacks={Reason.STOCKOUT: 3}, waits_since=NOW - timedelta(minutes=58))
    after = stepped(a_case(claim, short=(0,), here_for=58))
    assert after.message == (
        "v6e 4x4 is out of stock as spot in us-central2-b (3 attempts since 11:02 UTC); now asked as spot in "
        "us-central2-c (rung 2 of 3)"
    )


@pytest.mark.parametrize(
    ("record", "at", "may"),
    [
        (STOCKOUT, None, True),
        (STOCKOUT, OnLadder(since=NOW, tried=True), False),
        (STOCKOUT, OnLadder(since=NOW - 41 * MINUTE, tried=True), False),
        (STOCKOUT.with_claim(waits_since=NOW - 41 * MINUTE), OnLadder(since=NOW - 41 * MINUTE, tried=True), True),
        (STOCKOUT, OnLadder(rung=2, since=NOW), False),
        (replace(STOCKOUT, reason=Reason.OPERATION_LIMIT), None, False),
        (replace(STOCKOUT, reason=Reason.INVALID_CONFIGURATION), OnLadder(since=NOW, tried=True), True),
        (replace(STOCKOUT, spec=a_spec()), None, False),
    ],
    ids=["news", "known", "waits for less", "time over", "elsewhere", "a slot", "not taken", "no ladder"],
)
def test_all_claims_are_read_only_if_one_shows_that_they_may_have_to_step(
    record: SliceRecord, at: OnLadder | None, may: bool
) -> None:
    assert may_step(record, at, NOW) is may
    assert waits(record)


def test_a_spec_at_a_rung_is_the_next_that_its_pods_can_use_else_the_last_before() -> None:
    some = [replace(THREE[0], against="a selector"), THREE[1], replace(THREE[2], against="a selector")]
    spec = replace(a_spec(), ladder="patient@1", rungs=tuple(some))
    assert [at_rung(spec, number).rung for number in range(3)] == [1, 1, 1]
    assert at_rung(spec, 0).zone == ZONES[1]
    assert at_rung(a_spec(), 7) == a_spec()


@pytest.mark.parametrize("whole", [False, True], ids=["claims by themselves", "a gang"])
def test_what_it_has_by_an_earlier_form_of_its_ladder_keeps_it_in_its_zone(*, whole: bool) -> None:
    has = a_claim(1, THREE, 1, Reason.READY, create_requested_at=NOW - timedelta(hours=1))
    earlier = has.with_current(ordered=at_rung(replace(a_spec(), ladder="patient@0", rungs=tuple(THREE)), 1))
    case = a_case(IN_TURN, earlier=[earlier], whole=whole)
    assert stepped(case).rung == 1
    assert stepped(replace(case, anywhere=True)).rung == 0
