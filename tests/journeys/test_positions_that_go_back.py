"""The API server's versions go back, as after a restore of etcd: the relay is believed again within minutes."""

from __future__ import annotations

import pytest

from tests.builders import MINUTE, a_heartbeat, a_list, compared
from tests.journeys.serving import crossed, deletions, own_slice, reason, serving
from tests.world import World
from tpu_slices.domain.model.facts import Family, HostsChanged
from tpu_slices.domain.model.reasons import Reason
from tpu_slices_simulator.live import LiveWorkload


def etcd_is_restored(world: World) -> None:
    """Let versions be lower than those that the relay has reported, and let it list everything."""
    world.relay_is_dead = True
    world.cluster._version = 5
    world.relay_is_dead = False


def leaves_unseen(world: World, jobset: LiveWorkload) -> None:
    """Let a leader leave while etcd is restored."""
    jobset.absent = True
    world.relay_is_dead = True
    world.cluster.removes_pod(jobset, 0)
    etcd_is_restored(world)


def test_a_leader_that_left_while_etcd_was_restored_is_on_the_hosts_no_more() -> None:
    world, llama = serving()
    leaves_unseen(world, llama)
    world.settle(minutes=15)
    assert world.record(llama).current.hosts.occupants == ()


def test_it_is_so_after_a_time_in_which_every_report_of_hosts_was_lost() -> None:
    world, llama = serving()
    with world.loses(HostsChanged):
        leaves_unseen(world, llama)
        world.settle(minutes=20)
    world.settle(minutes=15)
    assert world.record(llama).current.hosts.occupants == ()


def test_hosts_that_went_while_etcd_was_restored_are_replaced_and_the_new_ones_known() -> None:
    world, llama = serving()
    pool = world.record(llama).pool
    world.backend.vanish(pool)
    world.relay_is_dead = True
    world._nodes_go()
    etcd_is_restored(world)
    world.settle(minutes=30, until=lambda: llama.bound == {0})
    world.settle(minutes=15)
    assert reason(world, llama) is Reason.READY


def test_a_job_that_moves_after_a_restore_is_known_where_it_runs() -> None:
    world, llama, gemma = crossed()
    etcd_is_restored(world)
    world.leaves(llama)
    llama.bound.add(0)
    world.ends(gemma)
    world.binds(llama, own_slice(llama), attempt=1)
    world.settle(minutes=15)
    record = world.record(llama)
    assert (record.maker, record.reason) == (own_slice(llama), Reason.READY)
    assert str(record.pool) not in deletions(world)


def test_a_pool_that_lost_its_hosts_before_the_restore_is_deleted_after_it() -> None:
    world, llama = serving()
    pool = world.record(llama).pool
    world.backend.pools[pool].hosts_joined = False
    world.settle(minutes=3)
    etcd_is_restored(world)
    world.ends(llama)
    world.settle(minutes=15)
    assert world.pools == []


@pytest.mark.parametrize("when", ["it was not asked for", "the records have agreed since", "it was asked for long ago"])
def test_a_list_that_is_late_lowers_no_position(when: str) -> None:
    world, llama = serving()
    now, known = world.clock.now(), world.record(llama)
    asked, agreed = {
        "it was not asked for": (None, now - 4 * MINUTE),
        "the records have agreed since": (now - MINUTE, now),
        "it was asked for long ago": (now - 10 * MINUTE, now - 14 * MINUTE),
    }[when]
    world.store.put(a_heartbeat(received_at=now, **compared(Family.HOSTS, agreed, asked)))
    world.publish(a_list(Family.HOSTS, {}, sequence=1, asked_at=asked or now))
    world.deliver()
    assert world.record(llama).current.hosts == known.current.hosts


def test_a_count_that_overtook_the_list_of_hosts_keeps_them() -> None:
    world, llama = serving()
    now, known = world.clock.now(), world.record(llama)
    world.store.put(a_heartbeat(received_at=now, **compared(Family.HOSTS, now - 9 * MINUTE, now - MINUTE)))
    world.publish(a_list(Family.HOSTS, {}, sequence=1, asked_at=now - MINUTE))
    world.deliver()
    assert (world.record(llama).current.hosts.occupants, reason(world, llama)) == (
        known.current.hosts.occupants,
        Reason.READY,
    )
    world.settle(minutes=10)
    assert (reason(world, llama), deletions(world)) == (Reason.READY, [])
