"""A story played on the whole system in memory, minute by minute.

Production code runs unchanged, through its ports. What the story does not say is drawn by its seed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from relay.objects import Kind as Watched
from tpu_slices.domain.model.facts import Answer, Fact, HostsChanged, SlicesWanted, WorkloadChanged
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.ports.errors import StaleRecord, Temporary
from tpu_slices.wire.cluster_settings import accepted_key, encode_settings
from tpu_slices.wire.documents import Fields, Key
from tpu_slices_simulator.fakes.clock import FakeClock
from tpu_slices_simulator.fakes.gke import FakeOperation
from tpu_slices_simulator.fakes.reservations import FakeReservation
from tpu_slices_simulator.fakes.troubles import ORDERS, Trouble, Verb
from tpu_slices_simulator.fuse import EFFECTS, Crash, Fuse
from tpu_slices_simulator.intruders import Intruders
from tpu_slices_simulator.live import LiveWorkload
from tpu_slices_simulator.operators import Operators
from tpu_slices_simulator.pools import Pools
from tpu_slices_simulator.scene import Scene
from tpu_slices_simulator.story import Kind, Reserved, Story
from tpu_slices_simulator.system import MINUTE, STEP
from tpu_slices_simulator.users import Users

START = datetime(2026, 11, 1, 12, tzinfo=UTC)
RELAY_LIVES = 2
"""Minutes, in a story whose relays are flapping."""
SET_BACK_BY = 10
"""Minutes, in a story whose database is set back."""
READS = frozenset({"together", "workloads", "having", "slices"})
"""Of records by their names."""
TRIES = 3
"""Within how many tries a contended commit succeeds."""
READ_EVERY = 16
"""How many of the revisions that the functions write are decoded when they are read: one of so many."""


def _there(reserved: Reserved) -> FakeReservation:
    """Return a reservation of a story as it is in memory."""

    def at(minute: int | None) -> datetime | None:
        return None if minute is None else START + minute * MINUTE

    return FakeReservation(
        name=reserved.name,
        hosts=reserved.hosts,
        others=reserved.others,
        starts_at=at(reserved.begins),
        ends_at=at(reserved.ends),
    )


class SkewedClock:
    """A clock that an instance reads ahead of the true one, or behind it."""

    def __init__(self, inner: FakeClock) -> None:
        self._inner = inner
        self.skew = timedelta()

    def now(self) -> datetime:
        return self._inner.now() + self.skew

    def pause(self, at_most: float) -> None:
        self._inner.pause(at_most)


class Meddled:
    """A port, what happens before and after each call that has an effect, and before each read of records by name."""

    def __init__(self, inner: object, before: Callable[[str], None], after: Callable[[str], None]) -> None:
        self._inner, self._before, self._after = inner, before, after

    def __getattr__(self, name: str) -> Any:
        """Return a method, and keep it; that of an effect finds what it calls with each call: others may replace it."""

        def called(*args: Any, **kwargs: Any) -> Any:
            self._before(name)
            result = getattr(self._inner, name)(*args, **kwargs)
            if name in EFFECTS:
                self._after(name)
            return result

        method = called if name in EFFECTS or name in READS else getattr(self._inner, name)
        setattr(self, name, method)
        return method


class Simulation(Scene):
    """`until` a minute; what happens in it is the story's, or drawn."""

    def __init__(self, story: Story, fuse: Fuse | None = None) -> None:
        super().__init__(story, START, fuse)
        self._called = 0
        self._nested = False
        self._deployed_at: int | None = None
        """When the cluster that was made again is put on record."""
        self._from_sweep: set[int] = set()
        """The places of its requests among all."""
        self._told: set[object] = set()
        """What facts have said."""
        self._hanging: dict[Watched, int] = {}
        """By watch that shows nothing, until when."""
        self._ended_first: dict[tuple[WorkloadUid, int], int] = {}
        """By Job whose leader ended first, when its other pods do, and it starts again."""
        self._backups: deque[Mapping[Key, Fields]] = deque(maxlen=SET_BACK_BY)
        """What the database was in each of the last minutes."""
        self.was_set_back_at: int | None = None
        self._skewed = SkewedClock(self.clock)
        self.deps = replace(
            self.deps,
            store=cast("Any", Meddled(self.store, self._before_store, self._after_effect)),
            backend=cast("Any", Meddled(self.backend, lambda _: None, self._after_effect)),
            publisher=cast("Any", Meddled(self.publisher, self._before_publisher, self._after_effect)),
            clock=self._skewed,
        )
        self.store.read_every = READ_EVERY
        self.cluster.scheduler.crosses = story.crosses or story.policy_off is not None
        self.cluster.scheduler.slow = story.slow_scheduler
        self.store.put_document(accepted_key(self.settings.cluster), encode_settings(self.settings))
        if story.reservations:
            self.reservations.has(*(_there(each) for each in story.reservations))
        self.machines, self.users, self.intruders = Pools(self), Users(self), Intruders(self)
        self.operators = Operators(self)

    @property
    def hours(self) -> float:
        return self.minute / 60

    # time

    def until(self, minute: int) -> None:
        while self.minute < minute:
            self._a_minute()

    def calms(self) -> None:
        """End every fault."""
        self.on = self.story.on(self.story.minutes)
        self.cluster.is_pinned_by(self.story.pinning(self.story.minutes))
        self.store.unavailable = False
        self.relay_is_dead = False
        self.backend.show()
        self._hanging = {}
        if self._deployed_at is not None:
            self._deploys()
        self.edits_settings(valid=True)
        self.machines.calm_down()
        self.intruders.calm_down()
        self.operators.calm_down()

    def _a_minute(self) -> None:
        minute, self.minute = self.minute, self.minute + 1
        self._sets_the_scene(minute)
        self.users.act(minute)
        self.intruders.act(minute)
        self.operators.act(minute)
        self._leaders(minute)
        self.machines.have_troubles(minute)
        if self.users.are_restless(minute):
            self._passes_by_seconds(minute)
        else:
            self.steps()
            self.machines.work(minute)
            self.clock.advance(MINUTE - 2 * STEP)
        self.sweeps()

    def _passes_by_seconds(self, minute: int) -> None:
        """Let a minute pass in which users do things within seconds."""
        for second in range(60):
            acted, at = self.users.act_in_second(minute, second), timedelta(seconds=second)
            if acted or at in (STEP, 2 * STEP):
                self.cluster_lives()
                self.deliver()
            if at == 2 * STEP:
                self.machines.work(minute)
            self.clock.advance(timedelta(seconds=1))

    def _sets_the_scene(self, minute: int) -> None:
        before, self.on = self.on, self.story.on(minute)
        self._keeps_a_backup(minute)
        self.store.unavailable = self.strikes(Kind.STORE_DOWN, minute)
        if self.settings.gke_id and self.strikes(Kind.CLUSTER_RECREATED, minute):
            self._recreates_cluster(minute)
        if minute == self._deployed_at:
            self._deploys()
        self.cluster.is_pinned_by(self.story.pinning(minute))
        self._runs_relays(minute)
        if (Kind.SETTINGS_INVALID in self.on) != (Kind.SETTINGS_INVALID in before):
            self.edits_settings(valid=Kind.SETTINGS_INVALID in before)
        for kind, trouble, verbs in (
            (Kind.GKE_UNAVAILABLE, Trouble.UNAVAILABLE, Verb),
            (Kind.GKE_FORBIDS, Trouble.FORBIDDEN, Verb),
            (Kind.GKE_ANSWERS_LOST, Trouble.ANSWER_LOST, ORDERS),
        ):
            if self.strikes(kind, minute):
                self.backend.trouble(trouble, *verbs, lasts=MINUTE)
        if self.strikes(Kind.REQUESTS_OLD, minute):
            past = self.publisher.requests[:: max(1, len(self.publisher.requests) // 5)]
            self.publisher.requests.extend(past[-5:])

    def _keeps_a_backup(self, minute: int) -> None:
        """Set the database back in the minute in which the story says so, and keep what it was until then."""
        if self.story.set_back is None or self.was_set_back_at is not None:
            return
        if minute == self.story.set_back and self._backups:
            self.was_set_back_at = minute
            self.store.set_back(self._backups[0])
            self._backups.clear()
            self.intruders.repeat(minute)
            self.operators.repeat()
        else:
            self._backups.append(self.store.backup())

    def _recreates_cluster(self, minute: int) -> None:
        """Let the cluster be another one, with the same workloads; it is deployed to within half an hour."""
        self.backend.lose_everything()
        self.backend.cluster_gke_id = f"made-at-{minute}"
        self.machines.forget()
        self._with_nodes.clear()
        self.cluster.is_made_again()
        self.users.make_all_again()
        self._deployed_at = minute + self.chance.between(1, 30, "deployed", minute)

    def _deploys(self) -> None:
        """Put the cluster that there is on record."""
        self._deployed_at = None
        self.puts_settings(replace(self.settings, gke_id=self.backend.cluster_gke_id))

    def _runs_relays(self, minute: int) -> None:
        down, doubled = Kind.RELAY_DOWN in self.on, Kind.RELAY_DOUBLED in self.on
        self.struck[Kind.RELAY_DOWN] += down
        self.struck[Kind.RELAY_DOUBLED] += doubled
        self.cluster.runs_relays(0 if down else 1 + doubled)
        self.relay_is_earlier = Kind.RELAY_EARLIER in self.on
        self.struck[Kind.RELAY_EARLIER] += self.relay_is_earlier
        flaps = self.story.flapping and minute < self.story.minutes and minute % RELAY_LIVES == 0
        if self.cluster.relays and (self.strikes(Kind.RELAY_RESTARTS, minute) or flaps):
            self.cluster.restart_relay()
        for kind in Watched if Kind.WATCHES_HANG in self.on else ():
            if self.strikes(Kind.WATCHES_HANG, minute, kind):
                self._hanging[kind] = minute + self.chance.between(1, 5, "hangs", minute, kind)
        hanging = frozenset(kind for kind, until in self._hanging.items() if minute < until)
        for relay in self.cluster.relays:
            relay.hangs(hanging)

    def _leaders(self, minute: int) -> None:
        slowly = self.strikes(Kind.PODS_END_SLOWLY, minute)
        self.cluster.grace = MINUTE * self.chance.between(1, 10, "grace", minute) if slowly else timedelta(0)
        for key in [key for key, ends in self._ended_first.items() if minute >= ends]:
            del self._ended_first[key]
            uid, index = key
            if uid in self.workloads and index in self.workloads[uid].bound:
                self.leaves(self.workloads[uid], index)
        if not self.on.keys().isdisjoint({Kind.LEADERS_LEAVE, Kind.LEADERS_EVICTED, Kind.LEADERS_END_FIRST}):
            for jobset in self.workloads.values():
                for index in sorted(jobset.bound):
                    self._leader_goes(jobset, index, minute)

    def _leader_goes(self, jobset: LiveWorkload, index: int, minute: int) -> None:
        key = (jobset.ref.owner.uid, index)
        if key in self._ended_first:
            return
        if self.strikes(Kind.LEADERS_LEAVE, minute, *key):
            self.leaves(jobset, index)
        elif self.strikes(Kind.LEADERS_EVICTED, minute, *key):
            self.cluster.evicts_leader(jobset, index)
            self.relay_publishes()
        elif self.strikes(Kind.LEADERS_END_FIRST, minute, *key):
            self._ended_first[key] = minute + self.chance.between(1, 30, "ends first", minute, *key)
            self.cluster.leader_succeeds(jobset, index)
            self.relay_publishes()

    # messages

    def publish(self, fact: Fact) -> None:
        """Send a fact; some are lost, late or doubled."""
        self._called += 1
        key = (self.minute, self._called)
        if self.strikes(Kind.MESSAGES_LOST, key) or (self._is_news(fact) and self.strikes(Kind.NEWS_LOST, key)):
            return
        if self.strikes(Kind.MESSAGES_LATE, key):
            late = self.chance.between(1, 120, "late", key) * MINUTE
            self._late.append((self.clock.now() + late, self.clock.now(), fact))
            return
        super().publish(fact)
        if self.strikes(Kind.MESSAGES_DOUBLED, key):
            super().publish(fact)

    def _is_news(self, fact: Fact) -> bool:
        """Return whether no fact before has said this; lists and signs of life are no news."""
        if not isinstance(fact, SlicesWanted | WorkloadChanged | HostsChanged | Answer):
            return False
        said = replace(fact, sequence=0, answers=None) if isinstance(fact, HostsChanged) else fact
        is_news = said not in self._told
        self._told.add(said)
        return is_news

    def told_after(self, ended: FakeOperation) -> Iterator[timedelta]:
        """Yield when GKE's log tells of an operation: mostly once and soon, else late, twice or never."""
        for time in range(self.chance.between(0, 2, "told", ended.pool, ended.name)):
            late = self.chance.happens(0.3, "told late", ended.pool, ended.name, time)
            yield (self.chance.between(1, 90, "told after", ended.pool, ended.name, time) if late else 0) * MINUTE

    def loses_request(self) -> bool:
        self._called += 1
        key = (self.minute, self._called)
        swept = self._taken_requests - 1 in self._from_sweep
        return self.strikes(Kind.REQUESTS_LOST, *key) or (not swept and self.strikes(Kind.NEWS_LOST, *key))

    def _sweep(self) -> object:
        before = len(self.publisher.requests)
        try:
            return super()._sweep()
        finally:
            self._from_sweep.update(range(before, len(self.publisher.requests)))

    # instances

    def _survive(self, step: Callable[[], object]) -> bool:
        self._called += 1
        key = (self.minute, self._called)
        before = self._skewed.skew
        skewed = self.strikes(Kind.CLOCKS_DIFFER, key)
        self._skewed.skew = timedelta(minutes=self.chance.between(-20, 20, "skew", key)) if skewed else timedelta()
        try:
            return super()._survive(step)
        finally:
            self._skewed.skew = before

    def _before_store(self, name: str) -> None:
        if name != "commit" and (name not in READS or Kind.FUNCTIONS_OVERLAP not in self.on):
            return
        self._called += 1
        key = (self.minute, self._called)
        if name == "commit" and self._called % TRIES and self.strikes(Kind.STORE_CONTENDED, key):
            raise StaleRecord("somebody else wrote it first")
        if not self._nested and self.strikes(Kind.FUNCTIONS_OVERLAP, key):
            with self._meanwhile():
                self.deliver()

    def _before_publisher(self, _: str) -> None:
        if self.strikes(Kind.PUBLISHER_DOWN, self.minute):
            raise Temporary("Pub/Sub is unavailable")

    def _after_effect(self, name: str) -> None:
        self._called += 1
        key = (self.minute, self._called)
        if self.strikes(Kind.FUNCTIONS_CRASH, key):
            raise Crash
        self.fuse.burn()
        if name == "commit" and not self._nested and self.strikes(Kind.FUNCTIONS_STALL, key):
            with self._meanwhile():
                self.until(self.minute + self.chance.between(1, 8, "stall", key))

    @contextmanager
    def _meanwhile(self) -> Iterator[None]:
        """Let others go on while an instance waits."""
        self._nested = True
        skew, self._skewed.skew = self._skewed.skew, timedelta()
        try:
            yield
        finally:
            self._nested, self._skewed.skew = False, skew
