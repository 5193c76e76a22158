"""When a bootstrap token is asked for, for the hosts of a slice that are missing, and when it is taken away again."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.builders import (
    MINUTE,
    NOW,
    a_spec,
    a_token,
    heard,
    joining_by_kubeadm,
    self_managed,
    settings,
    some_hosts,
    with_fields,
)
from tests.domain.cases import OURS, STOCKOUT, observations, ready, requested, seen, unneeded
from tpu_slices.domain.model.joining import JoinAsked
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Busy,
    Creating,
    Failure,
    FailureKind,
    Observation,
    Refused,
    Running,
    Started,
    Unowned,
)
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import InstanceRequest
from tpu_slices.domain.reconciling.decide import decide
from tpu_slices.domain.reconciling.decisions import Action, AskJoin, Decision, EndJoin
from tpu_slices.domain.reconciling.joining import awaits
from tpu_slices.domain.reconciling.outcomes import acted
from tpu_slices.domain.records.slices import SliceRecord

KUBEADM = joining_by_kubeadm()
ASK, END = AskJoin(1, NOW), EndJoin(1)
AWAITS = Running(OURS.fingerprint, awaiting="ZONE_RESOURCE_POOL_EXHAUSTED: not enough resources.")
BUSY = Refused(Failure(FailureKind.BUSY, "2 of 4 instances do not exist yet"))


def asked(ago: timedelta = MINUTE, attempt: int = 1, failure: str = "") -> JoinAsked:
    return JoinAsked(attempt=attempt, at=NOW - ago, failure=failure)


def decided(record: SliceRecord, observation: Observation = OURS, at: datetime = NOW, **known: Any) -> Decision:
    return decide(record, seen(observation), at, KUBEADM, heard(**known))


def joins(decision: Decision) -> tuple[Action, ...]:
    return tuple(each for each in decision.actions if isinstance(each, AskJoin | EndJoin))


@pytest.mark.parametrize(
    ("record", "observation", "expected"),
    [
        pytest.param(requested(), OURS, (ASK,), id="nobody has joined"),
        pytest.param(requested(hosts=some_hosts(usable=3)), OURS, (ASK,), id="one is missing"),
        pytest.param(ready(hosts=some_hosts(usable=3)), OURS, (ASK,), id="one was lost"),
        pytest.param(requested(), Busy("repairing"), (ASK,), id="a host is made anew"),
        pytest.param(requested(), AWAITS, (), id="there are no hosts yet"),
        pytest.param(requested(), Begun("its policy"), (), id="there is no group yet"),
        pytest.param(requested(), Creating(), (), id="the group is being made"),
        pytest.param(requested(join_asked=asked()), OURS, (), id="asked lately"),
        pytest.param(requested(join_asked=asked(19 * MINUTE)), OURS, (), id="the token lives for a while"),
        pytest.param(requested(join_asked=asked(20 * MINUTE)), OURS, (ASK,), id="the token expires soon"),
        pytest.param(requested(join_asked=asked(MINUTE, failure="gone")), OURS, (ASK,), id="it was not handed on"),
        pytest.param(
            requested(join_asked=asked(MINUTE / 2, failure="gone")), OURS, (), id="it was not handed on just now"
        ),
        pytest.param(ready(join_asked=asked()), OURS, (END,), id="all have joined"),
        pytest.param(ready(), OURS, (), id="all have joined, and it was taken away"),
    ],
)
def test_a_token_is_asked_for_while_hosts_are_missing(
    record: SliceRecord, observation: Observation, expected: tuple[Action, ...]
) -> None:
    assert joins(decided(record, observation)) == expected


def test_a_question_is_remembered_and_repeated_before_the_token_expires() -> None:
    after = decided(requested()).record
    assert after.join_asked == JoinAsked(attempt=1, at=NOW)
    later = decided(after, at=NOW + 10 * MINUTE)
    assert joins(later) == ()
    assert later.record.next_reconcile_at == NOW + 20 * MINUTE
    again = NOW + 20 * MINUTE
    assert joins(decided(later.record, at=again)) == (AskJoin(1, again),)


@pytest.mark.parametrize("of_cluster", [settings(), self_managed()])
def test_where_hosts_join_by_themselves_nobody_is_asked(of_cluster: Any) -> None:
    assert joins(decide(requested(), seen(OURS), NOW, of_cluster, heard())) == ()


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        pytest.param(InstanceRequest(control_plane="10.0.0.9:6443", kubernetes="1.36"), (ASK,), id="as it says itself"),
        pytest.param(InstanceRequest(), (), id="it names no control plane"),
        pytest.param(InstanceRequest(template="projects/p/global/instanceTemplates/t"), (), id="a template of its own"),
    ],
)
def test_a_group_says_itself_whether_its_hosts_join(instance: InstanceRequest, expected: tuple[Action, ...]) -> None:
    assert joins(decided(requested(spec=a_spec(instance=instance)))) == expected


def test_settings_that_change_do_not_change_how_a_slice_joins() -> None:
    record = requested(pinned_settings=KUBEADM.pools)
    assert joins(decide(record, seen(OURS), NOW, self_managed(), heard())) == (ASK,)


def test_the_token_of_a_slice_that_goes_is_taken_away() -> None:
    decision = decided(unneeded(requested(join_asked=asked())))
    assert (decision.record.attempt, decision.record.goes) == (1, True)
    assert joins(decision) == (END,)


def test_the_token_of_a_slice_that_its_claim_has_no_more_is_taken_away_and_the_next_gets_its_own() -> None:
    decision = decided(requested(join_asked=asked()), Broken(STOCKOUT))
    assert (decision.record.attempt, decision.record.join_asked, joins(decision)) == (2, None, ())
    assert decision.let_go is not None
    assert joins(decided(decision.let_go)) == (END,)
    after = decided(with_fields(decision.record, create_requested_at=NOW - MINUTE))
    assert joins(after) == (AskJoin(2, NOW),)
    assert after.record.join_asked == JoinAsked(attempt=2, at=NOW)


def test_a_token_that_was_asked_for_another_attempt_is_taken_away_before_one_is_asked_for() -> None:
    decision = decided(requested(attempt=2, tried=2, join_asked=asked(), earlier=(1,)))
    assert joins(decision) == (END, AskJoin(2, NOW))
    assert decision.record.join_asked == JoinAsked(attempt=2, at=NOW)


def test_a_token_that_was_taken_away_is_forgotten() -> None:
    record = ready(join_asked=asked())
    assert acted(record, END, Started(None), NOW, KUBEADM).join_asked is None


def test_the_question_for_another_attempt_is_not_forgotten_with_it() -> None:
    record = requested(attempt=2, join_asked=asked(attempt=2))
    assert acted(record, END, Started(None), NOW, KUBEADM) == record


def test_a_token_that_could_not_be_taken_away_is_taken_away_later_until_it_expires() -> None:
    refused = Refused(Failure(FailureKind.BUSY, "fingerprint"))
    record = ready(join_asked=asked(), next_reconcile_at=None)
    after = acted(record, END, refused, NOW, KUBEADM)
    assert after.join_asked == record.join_asked
    assert after.next_reconcile_at == NOW + MINUTE
    assert acted(record, END, refused, NOW + 30 * MINUTE, KUBEADM).join_asked is None


def test_hosts_that_cannot_be_given_a_token_are_told_of() -> None:
    decision = decided(requested(join_asked=asked(failure="Required 'compute.instances.setMetadata' permission.")))
    assert decision.reason is Reason.HOSTS_JOINING
    assert decision.message.startswith("0 of 4 hosts are ready and offer their chips; they cannot be given the token")
    assert decision.message.endswith("setMetadata' permission.")


@pytest.mark.parametrize(
    ("handed_on_at", "told"),
    [
        (None, "the relay was asked at 11:59:00 UTC for a token to join with, and has not answered yet."),
        (NOW, "they have a token to join with since 12:00:00 UTC."),
    ],
)
def test_where_hosts_are_on_their_way_is_told(handed_on_at: datetime | None, told: str) -> None:
    message = decided(requested(join_asked=replace(asked(), handed_on_at=handed_on_at))).message
    assert message == f"0 of 4 hosts are ready and offer their chips; {told}"


@pytest.mark.parametrize(
    ("record", "token", "expected"),
    [
        pytest.param(requested(join_asked=asked()), a_token(), True, id="as asked"),
        pytest.param(requested(join_asked=asked()), a_token(attempt=2), False, id="of another attempt"),
        pytest.param(requested(attempt=2, join_asked=asked()), a_token(), False, id="of an earlier attempt"),
        pytest.param(requested(), a_token(), False, id="nobody asked"),
        pytest.param(requested(join_asked=asked()), a_token(expires_at=NOW), False, id="expired"),
        pytest.param(ready(join_asked=asked()), a_token(), False, id="all have joined"),
        pytest.param(unneeded(requested(join_asked=asked())), a_token(), False, id="not needed any more"),
    ],
)
def test_a_token_is_handed_on_only_while_it_is_awaited(record: SliceRecord, token: Any, expected: bool) -> None:
    assert awaits(record, token, NOW, KUBEADM) is expected


records = st.builds(
    requested,
    join_asked=st.none()
    | st.builds(
        JoinAsked,
        attempt=st.integers(1, 2),
        at=st.integers(0, 40).map(lambda minutes: NOW - minutes * MINUTE),
        failure=st.sampled_from(["", "gone"]),
    ),
    hosts=st.integers(0, 4).map(lambda usable: some_hosts(usable=usable)),
    attempt=st.integers(1, 2),
    tried=st.just(2),
).flatmap(lambda record: st.sampled_from([record, unneeded(record)]))


@given(records, observations)
@example(unneeded(requested(join_asked=asked())), Absent())
@example(requested(join_asked=asked()), Unowned("x"))
def test_while_hosts_can_join_their_token_is_never_older_than_its_life(
    record: SliceRecord, observation: Observation
) -> None:
    decision = decided(record, observation)
    after, ends = decision.record, [each for each in joins(decision) if isinstance(each, EndJoin)]
    if isinstance(observation, Running) and not observation.awaiting and after.attempt == record.attempt:
        missing = not after.goes and after.spec is not None and after.current.hosts.usable < after.spec.hosts
        if missing and after.current.create_requested_at is not None:
            assert after.join_asked is not None
            assert NOW - after.join_asked.at < 20 * MINUTE
            assert after.next_reconcile_at is not None
            assert after.next_reconcile_at <= after.join_asked.at + 20 * MINUTE
    if record.join_asked is not None and after.join_asked != record.join_asked:
        replaced = after.join_asked is not None and after.join_asked.attempt == record.join_asked.attempt
        of_let_go = decision.let_go is not None and decision.let_go.join_asked == record.join_asked
        assert replaced or of_let_go or ends, "a token that is not asked for any more is taken away"


@given(records, st.sampled_from([OURS, AWAITS, Busy("repairing")]))
def test_deciding_twice_asks_once(record: SliceRecord, observation: Observation) -> None:
    first = decided(record, observation)
    asks = [each for each in joins(decided(first.record, observation)) if isinstance(each, AskJoin)]
    assert not any(isinstance(each, AskJoin) for each in joins(first)) or asks == []


def test_nothing_is_asked_while_the_pool_is_gone() -> None:
    assert joins(decided(with_fields(requested(), create_requested_at=None), Absent())) == ()
