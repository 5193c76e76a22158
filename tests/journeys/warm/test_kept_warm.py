"""A slice that is let go stays for as long as the settings say, and the next Job that waits for such gets it."""

from __future__ import annotations

from datetime import timedelta

from relay.events import summary
from tests.builders import MINUTE, a_request, settings
from tests.journeys.hosts.test_keys_of_hosts import closed, key, keys
from tests.journeys.serving import own_slice, reason, serving
from tests.world import World
from tpu_slices.domain.model.capacity import Across, Warm
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.records.mirror import slice_shown
from tpu_slices.domain.records.usage import Use
from tpu_slices.flows.budget import counted
from tpu_slices_simulator.fakes.backend import Verb

QUARTER = Warm(lasts=timedelta(minutes=15))


def warm_world(warm: Warm = QUARTER) -> World:
    return World(of_cluster=settings(warm=warm))


def orders(world: World) -> list[Verb]:
    return [call.verb for call in world.backend.calls if call.verb in {Verb.CREATE, Verb.DELETE}]


def test_a_slice_is_kept_for_as_long_as_the_settings_say_and_then_deleted() -> None:
    world, llama = serving("llama", warm_world())
    world.ends(llama)
    world.settle(minutes=2)
    record = world.record(llama)
    assert (record.reason, orders(world), len(closed(world))) == (Reason.WARM, [Verb.CREATE], 4)
    warm = record.current.warm
    assert warm is not None
    assert record.message == (
        f"Kept warm until {warm.until:%H:%M} UTC for the next slice of namespace research (at an unknown price)."
    )
    world.settle(minutes=12)
    assert (reason(world, llama), orders(world)) == (Reason.WARM, [Verb.CREATE])
    world.settle(minutes=5)
    assert orders(world) == [Verb.CREATE, Verb.DELETE]
    ordered = next(call.at for call in world.backend.calls if call.verb is Verb.DELETE)
    assert warm.until <= ordered <= warm.until + 2 * MINUTE
    assert world.record(llama).phase is Phase.GONE


def test_the_report_of_its_workload_and_the_mirror_say_so() -> None:
    world, llama = serving("llama", warm_world())
    world.ends(llama)
    world.settle(minutes=3)
    record = world.record(llama)
    told = summary(world.publisher.reports[-1][1])["message"]
    assert told == f"The JobSet completed; llama-slice-0 is k{record.message[1:]}"
    shown = slice_shown(record)
    assert shown is not None
    assert (shown.reason, shown.message, shown.chips) == (Reason.WARM, record.message, 16)


def test_chips_that_are_kept_are_held_and_not_idle() -> None:
    world, llama = serving("llama", warm_world())
    world.ends(llama)
    world.settle(minutes=3)
    count = counted(world.settings, world.deps)
    assert (count.chips_bought, count.chips_held, count.chips_idle) == (16, 16, 0)
    assert count.releasing_for == timedelta(0), "it is no release that takes too long"
    assert (world.record(llama).usages[-1].use, count.paid_slice) == (Use.WARM, None)


def test_the_next_job_gets_it_at_once() -> None:
    world, llama = serving("llama", warm_world())
    world.ends(llama)
    world.settle(minutes=5)
    gemma = world.jobset_appears("gemma")
    world.settle(minutes=5, until=lambda: gemma.bound == {0})
    record = world.record(gemma)
    assert (gemma.bound, orders(world), record.maker) == ({0}, [Verb.CREATE], own_slice(llama))
    world.settle(minutes=5)
    assert (keys(world), closed(world), reason(world, gemma)) == ({key(gemma)}, [], Reason.READY)
    assert "Got the slice that JobSet llama gave back at 12:0" in record.transitions[0].message


def test_the_same_workload_gets_its_own_when_it_is_resumed() -> None:
    world, llama = serving("llama", warm_world())
    world.suspends(llama)
    world.settle(minutes=5)
    assert reason(world, llama) is Reason.WARM
    world.resumes(llama)
    world.settle(minutes=3)
    assert (llama.bound, orders(world), reason(world, llama)) == ({0}, [Verb.CREATE], Reason.READY)


def test_a_slice_that_loses_a_host_is_given_to_nobody_and_let_go() -> None:
    world, llama = serving("llama", warm_world())
    world.ends(llama)
    world.settle(minutes=2)
    world.a_host_breaks()
    gemma = world.jobset_appears("gemma")
    world.settle(minutes=20)
    assert sorted(orders(world)) == [Verb.CREATE, Verb.CREATE, Verb.DELETE]
    assert gemma.bound == {0}
    assert world.record(gemma).maker == own_slice(gemma)


def test_a_slice_is_kept_until_an_hour_before_the_maintenance_of_a_host() -> None:
    world, llama = serving("llama", warm_world())
    world.ends(llama)
    world.settle(minutes=2)
    begins = world.clock.now() + timedelta(minutes=65)
    world.maintenance_is_announced(next(iter(world.cluster.nodes)), begins)
    world.settle(minutes=3)
    assert reason(world, llama) is Reason.WARM
    assert f"maintenance of its hosts from {begins:%H:%M} UTC" in world.record(llama).message
    world.settle(minutes=4)
    gemma = world.jobset_appears("gemma")
    world.settle(minutes=10)
    assert sorted(orders(world)) == [Verb.CREATE, Verb.CREATE, Verb.DELETE]
    assert (gemma.bound, world.record(gemma).maker) == ({0}, own_slice(gemma))


def test_a_slice_is_kept_on_if_the_maintenance_is_called_off() -> None:
    world, llama = serving("llama", warm_world())
    world.ends(llama)
    world.settle(minutes=2)
    name = next(iter(world.cluster.nodes))
    world.maintenance_is_announced(name, world.clock.now() + timedelta(minutes=65))
    world.settle(minutes=2)
    world.maintenance_is_announced(name, None)
    world.settle(minutes=8)
    assert (reason(world, llama), orders(world)) == (Reason.WARM, [Verb.CREATE])


def test_a_slice_whose_workload_is_only_missing_is_not_kept() -> None:
    world, llama = serving("llama", warm_world())
    world.api_server_loses([llama])
    world.settle(minutes=12)
    assert Reason.WARM not in {each.reason for each in world.record(llama).transitions}


def test_one_that_is_kept_for_its_workload_is_not_given_to_another() -> None:
    world, llama = serving("llama", warm_world(Warm(lasts=timedelta(minutes=15), across=Across.WORKLOAD)))
    world.ends(llama)
    world.settle(minutes=2)
    assert "for the next Job of JobSet llama" in world.record(llama).message
    gemma = world.jobset_appears("gemma")
    world.settle(minutes=20)
    assert orders(world).count(Verb.CREATE) == 2
    assert (gemma.bound, world.record(gemma).maker) == ({0}, own_slice(gemma))


def test_another_namespace_does_not_get_it() -> None:
    world, llama = serving("llama", warm_world())
    world.ends(llama)
    world.settle(minutes=2)
    gemma = world.jobset_appears("gemma", namespace="vision")
    world.settle(minutes=10)
    assert (gemma.bound, world.record(gemma).maker) == ({0}, own_slice(gemma))


def test_a_gang_that_forms_gets_what_is_kept_warm_and_buys_the_rest() -> None:
    world, llama = serving("llama", warm_world())
    world.ends(llama)
    world.settle(minutes=3)
    assert world.record(llama).reason is Reason.WARM
    gang = world.jobset_appears("gemma", 2, a_request(gang="all"))
    world.settle(minutes=15, until=lambda: gang.served)
    assert (gang.served, orders(world)) == (True, [Verb.CREATE, Verb.CREATE])
