"""A gang gets all of its slices or none, holds them for a while, and gives them to who waits longer."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MINUTE, NOW, a_job, a_record, a_spec, an_occupant, settings, some_hosts
from tpu_slices.domain.gangs.deciding import LONGEST_PAUSE, SPREAD, Case, decided, in_line, pause_after
from tpu_slices.domain.gangs.members import Members
from tpu_slices.domain.model.clusters import Allowed, Policy
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import Capacity, CapacityKind, WorkloadUid
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.records.gangs import Gang, GangKey, GangState, InLine
from tpu_slices.domain.records.queues import capacity_pool_of
from tpu_slices.domain.records.slices import SliceRecord

HOUR = timedelta(hours=1)
KEY = GangKey("uid-llama/all")
POOL = capacity_pool_of(a_spec())
RESERVED = a_spec(capacity=Capacity(CapacityKind.RESERVATION, reservation="r"))
FORMING = {"state": GangState.FORMS}
STOOD = {"state": GangState.STANDS, "ran": True}
HELD = {**FORMING, "held_since": NOW - 10 * MINUTE}


def a_gang(**changes: Any) -> Gang:
    return Gang(
        **{
            "replicated_jobs": ("slice",),
            "claims": 3,
            "chips": 48,
            "since": NOW - HOUR,
            "state_since": NOW - HOUR,
            "lacks_since": NOW - HOUR,
            **changes,
        }
    )


def slices(count: int, first: int = 0, **changes: Any) -> tuple[SliceRecord, ...]:
    return tuple(a_record(job=a_job(job_index=first + index), **changes) for index in range(count))


def standing(count: int, first: int = 0, **changes: Any) -> tuple[SliceRecord, ...]:
    made = {"create_requested_at": NOW - HOUR, "phase": Phase.READY, "hosts": some_hosts(), **changes}
    return slices(count, first, **made)


def stuck(count: int, first: int = 0, **changes: Any) -> tuple[SliceRecord, ...]:
    why = {"phase": Phase.WAITING, "reason": Reason.STOCKOUT, "message": "us-central2-b is out of them."}
    return slices(count, first, **{**why, **changes})


def being_made(count: int, first: int = 0) -> tuple[SliceRecord, ...]:
    return slices(count, first, create_requested_at=NOW, phase=Phase.PROVISIONING, reason=Reason.CREATING)


def waiting_in_line(since: datetime = NOW - 2 * HOUR, **changes: Any) -> InLine:
    fields: dict[str, Any] = {"workload_name": "gemma", "namespace": "research", "chips": 0, "lacks": (POOL,)}
    return InLine(**{"workload": WorkloadUid("uid-gemma"), "since": since, **fields, **changes})


def a_case(gang: Gang, members: Members, **changes: Any) -> Case:
    fields: dict[str, Any] = {
        "workload": WorkloadUid("uid-llama"),
        "name": "llama",
        "namespace": "research",
        "key": KEY,
        "gang": gang,
        "members": members,
        "line": {},
        "now": NOW,
        "settings": settings(policy=changes.pop("policy", Policy())),
        "held": None,
    }
    return Case(**{**fields, **changes})


def test_slices_are_held_for_as_long_as_the_workload_says() -> None:
    members = Members(standing=standing(2), stuck=stuck(1, 2))
    for hold_for, held in ((None, True), (timedelta(minutes=30), False), (timedelta(hours=2), True)):
        gang = a_gang(**FORMING, held_since=NOW - 45 * MINUTE, stuck_since=NOW - 45 * MINUTE, hold_for=hold_for)
        assert decided(a_case(gang, members)).forms is held


def test_a_gang_of_one_slice_is_told_of_one() -> None:
    case = a_case(a_gang(claims=1), Members(), policy=at_most(40), held=Held(in_namespace=0, in_cluster=0))
    assert (
        decided(case).message
        == "policy.chips_per_namespace: its slice needs 48 chips together, and at most 40 are allowed"
    )


def at_most(in_namespace: int | None = None, in_cluster: int | None = None) -> Policy:
    return Policy(everyone=Allowed(chips_per_namespace=in_namespace), chips_per_cluster=in_cluster)


@pytest.mark.parametrize("before", [{}, FORMING, STOOD, {"let_go": "it was held", "back_at": NOW + HOUR}])
@pytest.mark.parametrize(
    "members",
    [
        pytest.param(Members(standing=standing(3)), id="all stand"),
        pytest.param(Members(used=standing(3)), id="all are used"),
        pytest.param(Members(standing=standing(1), used=standing(1, 1), over=1), id="one is over"),
    ],
)
def test_a_gang_stands_whose_claims_lack_nothing(before: dict[str, Any], members: Members) -> None:
    after = decided(a_case(a_gang(**before), members))
    assert (after.state, after.ran, after.let_go, after.back_at, after.held_since) == (
        GangState.STANDS,
        True,
        "",
        None,
        None,
    )
    place = in_line(a_case(after, members), after)
    assert (place is None) == (not members.standing), "it is looked at until its pods have come"
    assert place is None or (place.chips, place.lacks) == (0, ())


def test_of_a_gang_that_stands_it_is_known_whether_some_of_it_runs() -> None:
    for members, runs in (
        (Members(standing=standing(3)), False),
        (Members(standing=standing(2), used=standing(1, 2)), True),
    ):
        for before in (FORMING, STOOD, {**STOOD, "runs": not runs}):
            assert decided(a_case(a_gang(**before), members)).runs is runs


def test_a_gang_that_may_have_all_slices_forms_and_what_it_may_buy_is_reserved() -> None:
    case = a_case(a_gang(), Members(made=slices(3)), policy=at_most(48), held=Held(0, 0))
    after = decided(case)
    place = in_line(case, after)
    assert (after.state, after.state_since) == (GangState.FORMS, NOW)
    assert place is not None
    assert (place.chips, place.lacks, place.workload) == (48, (), "uid-llama")


def test_what_is_bought_is_not_reserved_too() -> None:
    case = a_case(a_gang(**FORMING), Members(made=being_made(3)), policy=at_most(48), held=Held(0, 0))
    place = in_line(case, decided(case))
    assert place is not None
    assert place.chips == 0


def test_nothing_is_reserved_for_a_gang_that_has_nothing_as_none_can_be_had() -> None:
    for members, chips in ((Members(stuck=stuck(3)), 0), (Members(made=being_made(1), stuck=stuck(2, 1)), 32)):
        case = a_case(a_gang(**FORMING), members, policy=at_most(48), held=Held(0, 0))
        place = in_line(case, decided(case))
        assert place is not None
        assert (place.chips, place.lacks) == (chips, (POOL,))


@pytest.mark.parametrize("before", [FORMING, STOOD])
@pytest.mark.parametrize(
    ("other", "waits"), [(waiting_in_line(chips=48), True), (waiting_in_line(NOW, chips=48), False)]
)
def test_a_gang_that_has_nothing_waits_for_room_beside_those_before_it(
    before: dict[str, Any], other: InLine, waits: bool
) -> None:
    line = {GangKey("uid-gemma/all"): replace(other, lacks=())}
    case = a_case(a_gang(**before), Members(made=slices(3)), policy=at_most(64), held=Held(48, 48), line=line)
    assert decided(case).waits is waits


def test_a_gang_that_long_had_nothing_goes_behind_those_that_wait() -> None:
    gang = a_gang(**FORMING)
    assert decided(a_case(gang, Members(stuck=stuck(3)))).since == NOW
    assert decided(a_case(gang, Members(stuck=stuck(3)), now=NOW - MINUTE)).since == gang.since
    assert decided(a_case(gang, Members(made=being_made(1), stuck=stuck(2, 1)))).since == gang.since
    assert decided(a_case(gang, Members(stuck=stuck(3)), silent=True)).since == gang.since


@pytest.mark.parametrize(
    ("policy", "held", "reason", "words"),
    [
        (at_most(40), Held(0, 0), Reason.GANG_TOO_LARGE, "its 3 slices need 48 chips together, and at most 40"),
        (at_most(None, 40), Held(0, 0), Reason.GANG_TOO_LARGE, "policy.chips_per_cluster"),
        (at_most(64), Held(32, 32), Reason.AWAITING_GANG, "need 48 chips at once, and 32 of 64 are free"),
        (at_most(64, 64), Held(0, 17), Reason.AWAITING_GANG, "policy.chips_per_cluster"),
    ],
)
def test_a_gang_waits_while_not_all_of_it_fits(policy: Policy, held: Held, reason: Reason, words: str) -> None:
    case = a_case(a_gang(), Members(made=slices(3)), policy=policy, held=held)
    after = decided(case)
    assert (after.state, after.reason) == (GangState.WAITS, reason)
    assert words in after.message
    place = in_line(case, after)
    assert place is not None
    assert place.chips == 0


def test_nothing_is_bought_for_a_gang_of_which_a_claim_is_refused() -> None:
    refusal = Refusal(reason=Reason.IMPOSSIBLE_SHAPE, message="no TPU has 3x3")
    refused = slices(1, refusal=refusal)
    after = decided(a_case(a_gang(), Members(made=(*refused, *slices(2, 1)))))
    assert (after.state, after.reason) == (GangState.WAITS, Reason.AWAITING_GANG)
    assert "is refused, so nothing is bought for the others either: no TPU has 3x3" in after.message


NEVER = {
    "refused": stuck(1, 2, phase=Phase.REFUSED, reason=Reason.NOT_ALLOWED, message="It is not allowed."),
    "held": stuck(1, 2, hold=True, phase=Phase.BLOCKED, reason=Reason.HELD),
    "released": stuck(1, 2, release_requested=True, phase=Phase.GONE, reason=Reason.RELEASED),
}


@pytest.mark.parametrize("which", NEVER)
def test_slices_are_not_held_for_a_claim_that_gets_none(which: str) -> None:
    has = (Members(standing=standing(2)), True), (Members(made=being_made(2)), True), (Members(), False)
    for members, goes in has:
        after = decided(a_case(a_gang(**FORMING), replace(members, stuck=NEVER[which])))
        assert (after.waits, after.reason, bool(after.let_go)) == (True, Reason.AWAITING_GANG, goes)
        assert f"llama-slice-2 {'was' if which == 'released' else 'is'} {which}" in after.message
    ran = decided(a_case(a_gang(**STOOD), Members(standing=standing(2), stuck=NEVER[which])))
    assert ran.forms, "it may be mended meanwhile"


@pytest.mark.parametrize(
    ("line", "waits"),
    [
        pytest.param(waiting_in_line(), True, id="before it"),
        pytest.param(waiting_in_line(since=NOW), False, id="behind it"),
        pytest.param(waiting_in_line(lacks=("elsewhere",)), False, id="lacks other capacity"),
        pytest.param(waiting_in_line(lacks=()), False, id="lacks none"),
    ],
)
def test_a_gang_waits_behind_one_that_lacks_the_same_capacity(line: InLine, waits: bool) -> None:
    after = decided(a_case(a_gang(), Members(made=slices(3)), line={GangKey("uid-gemma/all"): line}))
    assert after.waits is waits
    assert ("gemma, which is before it in line, lacks" in after.message) is waits


def test_a_workload_of_another_namespace_is_not_named() -> None:
    line = {GangKey("uid-gemma/all"): waiting_in_line(namespace="others")}
    after = decided(a_case(a_gang(), Members(made=slices(3)), line=line))
    assert "gemma" not in after.message
    assert "a workload of another namespace" in after.message


@pytest.mark.parametrize(
    ("held_since", "yields"), [(NOW - 5 * MINUTE, True), (NOW - 4 * MINUTE, False)], ids=["long", "not long"]
)
def test_a_gang_yields_what_one_before_it_lacks(held_since: datetime, yields: bool) -> None:
    gang = a_gang(**FORMING, held_since=held_since)
    line = {GangKey("uid-gemma/all"): waiting_in_line()}
    after = decided(a_case(gang, Members(standing=standing(2), stuck=stuck(1, 2)), line=line))
    assert (after.waits, after.yielded) == (yields, yields)
    assert (after.since, after.back_at, bool(after.let_go)) == (gang.since, None, yields)


@pytest.mark.parametrize(
    "gang",
    [
        pytest.param(a_gang(**HELD, ran=True), id="it stood once"),
        pytest.param(a_gang(**HELD, since=NOW - 3 * HOUR), id="it waits longer itself"),
    ],
)
def test_a_gang_that_ran_or_comes_first_yields_to_nobody(gang: Gang) -> None:
    line = {GangKey("uid-gemma/all"): waiting_in_line()}
    after = decided(a_case(gang, Members(standing=standing(2), stuck=stuck(1, 2)), line=line))
    assert after.forms


def test_a_gang_that_has_nothing_yet_yields_at_once() -> None:
    line = {GangKey("uid-gemma/all"): waiting_in_line()}
    after = decided(a_case(a_gang(**FORMING), Members(stuck=stuck(3)), line=line))
    assert (after.waits, after.let_go) == (True, "")


def test_slices_that_were_held_for_too_long_are_let_go_and_it_goes_behind_those_that_wait() -> None:
    gang = a_gang(**FORMING, held_since=NOW - HOUR, stuck_since=NOW - HOUR)
    after = decided(a_case(gang, Members(standing=standing(2), stuck=stuck(1, 2))))
    assert (after.state, after.reason, after.since, after.tries) == (GangState.WAITS, Reason.LET_GO_WITH_GANG, NOW, 1)
    assert after.let_go == "its gang was held for 60 min"
    assert after.message.startswith(
        "2 of 3 slices stood for 60 min, and llama-slice-2 did not come (Stockout: us-central2-b is out of them)."
    )
    assert after.back_at is not None
    assert not decided(a_case(after, Members(stuck=stuck(3)), now=after.back_at)).waits
    again = decided(a_case(after, Members(stuck=stuck(3)), now=after.back_at - MINUTE))
    assert (again.waits, again.message) == (True, after.message)


def test_the_clock_of_holding_stands_still_while_the_others_are_being_made() -> None:
    gang = a_gang(**FORMING, held_since=NOW - 3 * HOUR, stuck_for=50 * MINUTE)
    members = Members(standing=standing(2), made=being_made(1, 2))
    after = decided(a_case(gang, members, now=NOW + 30 * MINUTE))
    assert (after.forms, after.stuck_for, after.stuck_since) == (True, 50 * MINUTE, None)


def test_no_slice_is_held_for_ever_for_one_that_is_always_about_to_come() -> None:
    gang = a_gang(**FORMING, held_since=NOW - 4 * HOUR)
    after = decided(a_case(gang, Members(standing=standing(2), made=being_made(1, 2))))
    assert (after.waits, after.reason) == (True, Reason.LET_GO_WITH_GANG)


def test_while_the_relay_is_silent_the_clock_stands_still() -> None:
    gang = a_gang(**FORMING, held_since=NOW - 5 * HOUR, stuck_since=NOW - 2 * HOUR)
    after = decided(a_case(gang, Members(standing=standing(2), stuck=stuck(1, 2)), silent=True))
    assert (after.forms, after.stuck_since, after.stuck_for) == (True, None, 2 * HOUR)


@pytest.mark.parametrize("wanted", [False, True])
def test_hosts_of_a_reservation_are_held_as_long_as_nobody_else_lacks_them(wanted: bool) -> None:
    gang = a_gang(**FORMING, held_since=NOW - 5 * HOUR, stuck_since=NOW - 5 * HOUR)
    members = Members(standing=standing(2, ordered=RESERVED, spec=RESERVED), stuck=stuck(1, 2, spec=RESERVED))
    other = waiting_in_line(since=NOW, lacks=(capacity_pool_of(RESERVED),))
    after = decided(a_case(gang, members, line={GangKey("uid-gemma/all"): other} if wanted else {}))
    assert after.waits is wanted


def test_a_gang_that_lost_a_slice_holds_the_others_and_makes_that_anew() -> None:
    case = a_case(a_gang(**STOOD), Members(standing=standing(2), stuck=stuck(1, 2)))
    after = decided(case)
    assert (after.state, after.ran, after.held_since, after.stuck_since) == (GangState.FORMS, True, NOW, NOW)
    later = decided(replace(case, gang=after, now=NOW + HOUR))
    assert (later.state, later.reason, later.ran) == (GangState.WAITS, Reason.LET_GO_WITH_GANG, True)


def test_while_some_of_its_jobs_run_nothing_of_a_gang_is_let_go() -> None:
    gang = a_gang(**FORMING, ran=True, held_since=NOW - 9 * HOUR, stuck_since=NOW - 9 * HOUR)
    after = decided(a_case(gang, Members(standing=standing(1), used=standing(1, 1), stuck=stuck(1, 2))))
    assert (after.forms, after.held_since, after.held_for(NOW)) == (True, None, timedelta(0))


@given(st.integers(1, 40), st.text(min_size=1))
def test_pauses_rise_to_an_hour_and_are_not_alike(tries: int, name: str) -> None:
    pause = pause_after(tries, GangKey(name))
    longest = min(5 * MINUTE * 2 ** min(tries - 1, 20), LONGEST_PAUSE)
    assert (1 - SPREAD) * longest <= pause <= (1 + SPREAD) * longest


def test_two_gangs_that_gave_up_together_do_not_come_back_together() -> None:
    assert pause_after(3, GangKey("uid-a/all")) != pause_after(3, GangKey("uid-b/all"))


gangs = st.builds(
    a_gang,
    state=st.sampled_from(GangState),
    ran=st.booleans(),
    since=st.sampled_from([NOW - 3 * HOUR, NOW - HOUR, NOW]),
    held_since=st.sampled_from([None, NOW - 5 * HOUR, NOW - 10 * MINUTE]),
    stuck_since=st.sampled_from([None, NOW - 2 * HOUR, NOW - MINUTE]),
    tries=st.integers(0, 3),
)
every_members = st.builds(
    Members,
    standing=st.integers(0, 2).map(standing),
    used=st.integers(0, 2).map(lambda count: standing(count, 10, hosts=some_hosts(occupants=(an_occupant(),)))),
    stuck=st.integers(0, 2).map(lambda count: stuck(count, 20)),
    made=st.integers(0, 2).map(lambda count: being_made(count, 30)),
)


@given(gangs, every_members, st.booleans(), st.booleans())
def test_a_decision_that_is_made_again_at_once_is_the_same(
    gang: Gang, members: Members, before: bool, silent: bool
) -> None:
    line = {GangKey("uid-gemma/all"): waiting_in_line()} if before else {}
    case = a_case(gang, members, line=line, silent=silent)
    once = decided(case)
    assert decided(replace(case, gang=once)) == once


@given(gangs, every_members, st.booleans())
def test_nothing_in_use_is_ever_let_go(gang: Gang, members: Members, before: bool) -> None:
    line = {GangKey("uid-gemma/all"): waiting_in_line()} if before else {}
    after = decided(a_case(gang, members, line=line))
    if members.used and not gang.waits:
        assert not after.waits
