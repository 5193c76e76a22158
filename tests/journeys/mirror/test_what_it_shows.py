"""The mirror in the cluster shows what is on record, and becomes whole again whatever was lost, without anybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from relay.mirror.objects import object_of
from relay.mirror.writer import LISTED_EVERY, MirrorWriter
from tests.builders import CLUSTER, MINUTE
from tests.relay.mirror.objects import FakeObjects
from tests.world import World
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.records.mirror import Mirrored, mirrored
from tpu_slices.ports.errors import Temporary
from tpu_slices.ports.publisher import MirrorListed
from tpu_slices.wire.documents import MIRROR_DIGEST
from tpu_slices_simulator.fakes.store import FakeStore
from tpu_slices_simulator.live import LiveWorkload


class MirroredWorld(World):
    """A world whose relay keeps a mirror; `deaf`: what is told of it does not arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.objects, self.deaf, self._taken = FakeObjects(), False, 0
        self.relay_starts()

    def relay_starts(self) -> None:
        self.mirror = MirrorWriter(CLUSTER, self.objects, self.clock.now)
        self._writes()

    def relay_writes(self) -> None:
        super().relay_writes()
        for told in self.publisher.mirror[self._taken :] if not self.deaf else ():
            self.mirror.put(told)
        self._taken = len(self.publisher.mirror)
        self._writes()

    def _writes(self) -> None:
        while self.mirror.turn():
            continue
        self.cluster.mirrored = self.mirror.digest

    @property
    def shown(self) -> Mapping[str, object]:
        """What the objects say once all that was told has arrived, without when they were told it."""
        self.relay_writes()
        return {name: _bare(obj) for (_, name), obj in self.objects.there.items()}

    @property
    def recorded(self) -> Mapping[str, object]:
        """What they are to say."""
        told = [mirrored(each.value) for each in self.store.kept_slices(CLUSTER)]
        told += [mirrored(each.value) for each in self.store.live_workloads(CLUSTER)]
        return {each.name: _bare(_object(each)) for each in told if each.digest}


def _object(told: Mirrored) -> Mapping[str, Mapping[str, object]]:
    return object_of(told, World().clock.now())


def _bare(obj: Mapping[str, Mapping[str, object]]) -> object:
    return {key: value for key, value in obj["status"].items() if key not in {"observedAt", "usdPerHour"}}


def serving() -> tuple[MirroredWorld, LiveWorkload]:
    world = MirroredWorld()
    jobset = world.jobset_appears("llama", slices=2)
    world.settle(minutes=5)
    return world, jobset


def test_a_jobset_and_its_slices_are_shown_from_the_first_wait_until_nothing_is_left() -> None:
    world = MirroredWorld()
    world.settle(minutes=2)
    jobset = world.jobset_appears("llama", slices=2)
    told = list[object]()
    for _ in range(6):
        world.settle(minutes=1)
        assert world.shown == world.recorded
        told.append(world.objects.there["TPUWorkload", "jobset-llama"]["status"]["slices"])
    assert (told[0], told[-1]) == ("0/2", "2/2")
    world.ends(jobset)
    world.settle(minutes=40)
    assert world.shown == world.recorded == {}


def test_while_nothing_changes_nothing_is_told_and_nothing_is_written() -> None:
    world, _ = serving()
    world.settle(minutes=10)
    writes, told = len(world.objects.writes), len([*filter(_changes, world.publisher.mirror)])
    world.settle(minutes=60)
    assert len(world.objects.writes) == writes
    assert len([*filter(_changes, world.publisher.mirror)]) == told


def _changes(told: object) -> bool:
    return type(told).__name__ != "MirrorConfirmed"


def loses_what_is_told(world: MirroredWorld) -> None:
    world.deaf = True
    world.jobset_appears("other", slices=3)
    world.settle(minutes=4)
    world.deaf = False


def loses_an_end(world: MirroredWorld) -> None:
    jobset = world.jobset_appears("other")
    world.settle(minutes=4)
    world.deaf = True
    world.ends(jobset)
    world.settle(minutes=20)
    world.deaf = False


def restarts_with_a_queue(world: MirroredWorld) -> None:
    world.jobset_appears("other", slices=3)
    world.steps()
    world.relay_starts()


def is_set_back(world: MirroredWorld) -> None:
    backup = world.store.backup()
    world.jobset_appears("other", slices=3)
    world.settle(minutes=4)
    world.store.set_back(backup)


def loses_its_objects(world: MirroredWorld) -> None:
    world.objects.there.clear()
    world.settle(minutes=int(LISTED_EVERY / MINUTE) + 1)


def was_recorded_by_an_earlier_release(world: MirroredWorld) -> None:
    for place, fields in world.store.backup().items():
        if MIRROR_DIGEST in fields:
            world.store.put_document(place, {name: it for name, it in fields.items() if name != MIRROR_DIGEST})


@pytest.mark.parametrize(
    "happens",
    [
        loses_what_is_told,
        loses_an_end,
        restarts_with_a_queue,
        is_set_back,
        loses_its_objects,
        was_recorded_by_an_earlier_release,
    ],
)
def test_it_becomes_whole_within_minutes(happens: Callable[[MirroredWorld], None]) -> None:
    world, _ = serving()
    happens(world)
    world.settle(minutes=15)
    assert world.shown == world.recorded
    assert world.mirror.digest == world.store.mirror_digest(CLUSTER)
    listed = len([each for each in world.publisher.mirror if isinstance(each, MirrorListed)])
    world.settle(minutes=30)
    assert len([each for each in world.publisher.mirror if isinstance(each, MirrorListed)]) == listed


def test_a_relay_that_keeps_no_mirror_is_told_nothing_of_it() -> None:
    world = World()
    world.jobset_appears("llama", slices=2)
    world.settle(minutes=20)
    assert world.publisher.mirror == []


def test_the_mirror_says_each_minute_that_it_is_right_and_no_more_once_nobody_knows() -> None:
    world, _ = serving()
    world.settle(minutes=5)
    confirmed = len(world.objects.confirmed)
    world.settle(minutes=10)
    assert len(world.objects.confirmed) - confirmed in range(8, 12)
    world.relay_is_dead = True
    confirmed = len(world.objects.confirmed)
    world.settle(minutes=10)
    assert len(world.objects.confirmed) <= confirmed + 1


def test_a_publisher_that_fails_fails_nothing_else() -> None:
    world, _ = serving()
    world.settle(minutes=3)
    jobset = world.jobset_appears("other")
    for _ in range(10):
        world.publisher.fail_next()
        world.settle(minutes=1)
    world.settle(minutes=30, until=lambda: jobset.bound == {0})
    assert jobset.bound == {0}


class WithoutIndex:
    """A store whose database has no index for the digests of the mirror yet."""

    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def mirror_digest(self, _: ClusterId) -> int:
        raise Temporary("the query requires an index")


def test_while_the_digests_cannot_be_added_up_the_relay_is_heard_all_the_same() -> None:
    world, jobset = serving()
    world.deps = replace(world.deps, store=cast("Any", WithoutIndex(world.store)))
    world.settle(minutes=10)
    heartbeat = world.store.heartbeat(CLUSTER)
    assert heartbeat is not None
    assert not heartbeat.value.relay.silent(world.clock.now())
    assert jobset.bound == {0, 1}
