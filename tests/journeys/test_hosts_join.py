"""From a JobSet to hosts that joined a self-managed cluster with a token, and what is left of the token."""

from __future__ import annotations

import pytest

from tests.builders import joining_by_kubeadm
from tests.world import World
from tpu_slices.domain.model.joining import JoinToken
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices_simulator.fakes.backend import Trouble, Verb


def a_world() -> World:
    return World(of_cluster=joining_by_kubeadm())


def given(world: World) -> list[JoinToken]:
    """Return the tokens that hosts were given."""
    return [token for _, token in world.backend.joins if token is not None]


def test_hosts_join_with_a_token_that_is_gone_once_they_have() -> None:
    world = a_world()
    jobset = world.jobset_appears()
    world.settle(minutes=6)
    record = world.record(jobset)
    assert record.phase is Phase.READY
    [token] = given(world)
    assert world.backend.joins == [(record.pool, token), (record.pool, None)]
    assert world.cluster.bootstrap.secrets == {}
    assert record.join_asked is None


def test_hosts_that_exist_late_get_the_token_once_they_do() -> None:
    world = a_world()
    world.backend.refuses_joins = Failure(FailureKind.BUSY, "4 of 4 instances do not exist yet.")
    jobset = world.jobset_appears()
    world.settle(minutes=5)
    record = world.record(jobset)
    assert record.reason is Reason.HOSTS_JOINING
    assert record.message.endswith("4 of 4 instances do not exist yet.")
    world.backend.refuses_joins = None
    world.settle(minutes=4)
    assert world.record(jobset).phase is Phase.READY


def test_a_relay_that_cannot_make_tokens_is_asked_again() -> None:
    world = a_world()
    jobset = world.jobset_appears()
    world.settle(minutes=1)
    world.relay_is_dead = True
    world.settle(minutes=2)
    world.relay_is_dead = False
    world.settle(minutes=6)
    assert world.record(jobset).phase is Phase.READY


def test_hosts_that_take_an_hour_to_boot_never_have_an_expired_token() -> None:
    world = a_world()
    jobset = world.jobset_appears()
    world.cluster.unusable_hosts = 1
    world.settle(minutes=28)
    tokens = given(world)
    assert len(tokens) >= 2
    assert tokens[-1].expires_at > world.clock.now()
    assert world.record(jobset).join_asked is not None


def test_a_host_that_is_made_anew_gets_another_token() -> None:
    world = a_world()
    jobset = world.jobset_appears()
    world.settle(minutes=6)
    world.a_host_breaks()
    world.settle(minutes=3)
    assert world.record(jobset).reason is Reason.HOSTS_LOST
    first, second = given(world)
    assert first.token != second.token


def test_the_token_goes_with_its_slice() -> None:
    world = a_world()
    jobset = world.jobset_appears()
    world.cluster.unusable_hosts = 1
    world.settle(minutes=5)
    assert len(world.cluster.bootstrap.secrets) == 1
    world.ends(jobset)
    world.settle(minutes=10)
    assert world.cluster.bootstrap.secrets == {}
    assert world.record(jobset).phase is Phase.GONE
    assert world.pools == []


@pytest.mark.parametrize("calls", [1, 3])
def test_calls_that_fail_are_made_up_for(calls: int) -> None:
    world = a_world()
    jobset = world.jobset_appears()
    world.settle(minutes=1)
    world.backend.trouble(Trouble.UNAVAILABLE, Verb.JOIN, calls=calls)
    world.settle(minutes=50)
    assert world.record(jobset).phase is Phase.READY
    assert world.cluster.bootstrap.secrets == {}
    assert world.backend.joins[-1][1] is None
