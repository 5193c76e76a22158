"""Claims whose records are gone while another claim has the slice that was made for them."""

from __future__ import annotations

from tests.builders import CLUSTER
from tests.journeys.serving import STOCKOUT, crossed, own_slice
from tests.world import World
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.wire.documents import key_of
from tpu_slices_simulator.live import LiveWorkload


def forgets(world: World, record: SliceRecord) -> None:
    """Let Firestore delete the document of a slice, as it does some time after its end."""
    assert record.expire_at is not None
    world.store.remove_document(key_of(record))


def forgotten() -> tuple[World, LiveWorkload, LiveWorkload]:
    """Return a world in which llama has the slice that was made for gemma, whose claim is on record no more."""
    world, llama, gemma = crossed()
    assert world.record(llama).maker == own_slice(gemma)
    world.suspends(gemma)
    world.settle(minutes=30)
    forgets(world, world.record(gemma))
    assert len(world.pools) == 1
    return world, llama, gemma


def test_a_job_that_is_resumed_gets_a_slice_under_a_name_that_nothing_has() -> None:
    world, llama, gemma = forgotten()
    world.resumes(gemma)
    world.settle(minutes=20)
    assert (llama.bound, gemma.bound) == ({0}, {0})
    assert len(world.pools) == 2


def test_the_name_of_a_slice_that_is_gone_is_not_used_again_while_it_is_on_record() -> None:
    world, llama, gemma = crossed()
    world.suspends(llama)
    world.settle(minutes=30)
    forgets(world, world.record(llama))
    world.ends(gemma)
    world.settle(minutes=30)
    assert world.record(gemma).phase is Phase.GONE
    world.resumes(llama)
    world.settle(minutes=20)
    assert llama.bound == {0}


def test_a_job_that_comes_to_hosts_without_having_waited_makes_no_second_slice_under_a_name_that_is_used() -> None:
    world, _, gemma = forgotten()
    phi = world.jobset_appears("phi")
    world.settle(minutes=8)
    world.cluster.schedules = False
    world.leaves(phi)
    gemma.absent = True
    world.resumes(gemma)
    world.binds(gemma, own_slice(phi), attempt=1)
    world.settle(minutes=3)
    record = world.record(gemma)
    assert record.maker == own_slice(phi)
    assert record.with_next(None).id not in {each.id for each in world.records.values()}


def test_the_next_number_is_passed_over_if_another_claim_has_the_slice_that_was_made_with_it() -> None:
    world, llama, gemma = crossed()
    world.suspends(gemma)
    world.settle(minutes=30)
    forgets(world, world.record(gemma))
    second = world.record(llama).with_current(number=2)
    world.store.remove_document(key_of(world.record(llama)))
    world.store.put(second)
    world.backend.pools[second.pool] = world.backend.pools.pop(second.pool_of(1))
    world.resumes(gemma)
    world.steps()
    assert world.record(gemma).attempt == 1
    world.backend.fail(world.record(gemma).pool, STOCKOUT)
    world.settle(minutes=2)
    assert world.record(gemma).attempt == 3
    assert world.store.having(CLUSTER, [own_slice(gemma)]).unreadable == {}
