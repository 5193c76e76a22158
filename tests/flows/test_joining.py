"""How a token comes to the hosts that it is for, and what is kept of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import CLUSTER, MINUTE, NOW, a_token, joining_by_kubeadm, with_fields
from tests.domain.cases import requested
from tests.world import World
from tpu_slices.domain.model.joining import JoinAsked, JoinToken
from tpu_slices.domain.model.observations import Failure, FailureKind, Refused, Running, Started
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.joining import hand_on
from tpu_slices.flows.orders import order_of
from tpu_slices.flows.receive import receive
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices_simulator.fakes.backend import FakePool, Trouble, Verb

SETTINGS = joining_by_kubeadm()
LATE = Failure(FailureKind.BUSY, "2 of 4 instances do not exist yet.")


def a_world(**changes: Any) -> World:
    """Return a world with a slice whose hosts wait for a token."""
    world = World(of_cluster=SETTINGS)
    fields: dict[str, Any] = {"join_asked": JoinAsked(attempt=1, at=NOW), "next_reconcile_at": NOW + 20 * MINUTE}
    record = requested(**{**fields, **changes})
    world.store.put(record)
    order = order_of(record, SETTINGS)
    world.backend.pools[order.name] = FakePool(name=order.name, order=order, seen=Running(), operation=None)
    return world


def the_record(world: World) -> SliceRecord:
    [record] = world.records.values()
    return record


def test_a_token_that_the_relay_made_is_sent_to_reconcile() -> None:
    world = World(of_cluster=SETTINGS)
    receive(a_token(), CLUSTER, world.deps)
    assert world.publisher.joins == [(CLUSTER, a_token())]


def test_a_token_is_handed_on_to_the_hosts_that_wait_for_it() -> None:
    world = a_world()
    before = the_record(world)
    done = hand_on(a_token(), CLUSTER, world.deps)
    assert done.outcome == Started(None)
    assert world.backend.joins == [(before.pool, a_token())]
    assert the_record(world).join_asked == JoinAsked(attempt=1, at=NOW, handed_on_at=NOW)


@pytest.mark.parametrize("token", [a_token(attempt=2), a_token(expires_at=NOW)])
def test_a_token_that_nobody_waits_for_is_dropped(token: JoinToken) -> None:
    world = a_world()
    assert hand_on(token, CLUSTER, world.deps).outcome is None
    assert world.backend.joins == []


def test_a_token_for_a_slice_that_does_not_exist_is_dropped() -> None:
    world = World(of_cluster=SETTINGS)
    assert hand_on(a_token(), CLUSTER, world.deps).outcome is None


def test_a_token_of_an_unknown_cluster_is_permanent() -> None:
    with pytest.raises(Permanent, match="no settings"):
        hand_on(a_token(), ClusterId("other"), World().deps)


def test_hosts_that_cannot_be_given_it_are_remembered_and_asked_for_soon() -> None:
    world = a_world()
    world.backend.refuses_joins = LATE
    assert hand_on(a_token(), CLUSTER, world.deps).outcome == Refused(LATE)
    after = the_record(world)
    assert after.join_asked == JoinAsked(attempt=1, at=NOW, failure=LATE.message)
    assert after.next_reconcile_at == NOW + MINUTE


def test_a_failure_is_forgotten_once_they_have_it() -> None:
    world = a_world(join_asked=JoinAsked(attempt=1, at=NOW, failure=LATE.message))
    hand_on(a_token(), CLUSTER, world.deps)
    assert the_record(world).join_asked == JoinAsked(attempt=1, at=NOW, handed_on_at=NOW)


def test_a_token_that_comes_twice_is_written_once() -> None:
    world = a_world()
    hand_on(a_token(), CLUSTER, world.deps)
    before = the_record(world)
    world.clock.advance(MINUTE)
    hand_on(a_token(), CLUSTER, world.deps)
    assert the_record(world) == before


def test_an_unknown_outcome_lets_the_request_come_again() -> None:
    world = a_world()
    world.backend.trouble(Trouble.UNAVAILABLE, Verb.JOIN, calls=1)
    with pytest.raises(Temporary):
        hand_on(a_token(), CLUSTER, world.deps)
    hand_on(a_token(), CLUSTER, world.deps)
    assert len(world.backend.joins) == 1


def test_nothing_is_written_of_a_token() -> None:
    world = a_world()
    world.backend.refuses_joins = LATE
    hand_on(a_token(), CLUSTER, world.deps)
    assert a_token().token not in repr([*world.store.places()]) + repr(world.records)


def test_an_order_is_about_the_attempt_that_the_slice_has() -> None:
    record = with_fields(requested(), attempt=3)
    assert order_of(record, SETTINGS).name == record.pool
