"""A story played on the whole system in memory, minute by minute.

Production code runs unchanged, through its ports. What the story does not say is drawn by its seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

from tpu_slices.domain.model.facts import Fact, WorkloadRef, WorkloadState
from tpu_slices.domain.model.slices import Owner, OwnerKind, WorkloadUid
from tpu_slices.ports.errors import StaleRecord, Temporary
from tpu_slices.wire.cluster_settings import accepted_key, encode_settings, settings_key
from tpu_slices_simulator.cluster import LiveWorkload
from tpu_slices_simulator.fakes.clock import FakeClock
from tpu_slices_simulator.fakes.troubles import ORDERS, Trouble, Verb
from tpu_slices_simulator.fuse import EFFECTS, Crash, Fuse
from tpu_slices_simulator.pools import Pools
from tpu_slices_simulator.scene import Scene
from tpu_slices_simulator.story import Kind, Plot, Story
from tpu_slices_simulator.system import MINUTE

START = datetime(2026, 11, 1, 12, tzinfo=UTC)
TRIES = 3
"""Within how many tries a contended commit succeeds."""


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
    """A port, and what happens before and after each call of its methods."""

    def __init__(self, inner: object, before: Callable[[str], None], after: Callable[[str], None]) -> None:
        self._inner, self._before, self._after = inner, before, after

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        def called(*args: Any, **kwargs: Any) -> Any:
            self._before(name)
            result = method(*args, **kwargs)
            self._after(name)
            return result

        return called


class Simulation(Scene):
    """`until` a minute; what happens in it is the story's, or drawn."""

    def __init__(self, story: Story, fuse: Fuse | None = None) -> None:
        super().__init__(story, START, fuse)
        self.plots: dict[str, LiveWorkload] = {}
        """The workloads that there are or were, by the IDs of their plots."""
        self.served: Counter[str] = Counter()
        """By workload, in how many minutes it had all of its slices."""
        self._called = 0
        self._nested = False
        self._skewed = SkewedClock(self.clock)
        self.deps = replace(
            self.deps,
            store=cast("Any", Meddled(self.store, self._before_store, self._after_effect)),
            backend=cast("Any", Meddled(self.backend, lambda _: None, self._after_effect)),
            publisher=cast("Any", Meddled(self.publisher, self._before_publisher, self._after_effect)),
            clock=self._skewed,
        )
        self.cluster.crosses = story.crosses
        self.store.put_document(accepted_key(self.settings.cluster), encode_settings(self.settings))
        self.machines = Pools(self)

    @property
    def hours(self) -> float:
        return self.minute / 60

    # time

    def until(self, minute: int) -> None:
        while self.minute < minute:
            self._a_minute()

    def calms(self) -> None:
        """End every fault."""
        self.on = {}
        self.store.unavailable = False
        self.relay_is_dead = False
        self.backend.show()
        self._edits_settings(valid=True)
        self.machines.calm_down()

    def _a_minute(self) -> None:
        minute, self.minute = self.minute, self.minute + 1
        self._sets_the_scene(minute)
        self._people(minute)
        self._leaders(minute)
        self.machines.have_troubles(minute)
        self.steps()
        self.machines.work(minute)
        self.clock.advance(MINUTE - timedelta(seconds=12))
        self.sweeps()

    def _sets_the_scene(self, minute: int) -> None:
        before, self.on = self.on, self.story.on(minute)
        self.store.unavailable = self.strikes(Kind.STORE_DOWN, minute)
        self.relay_is_dead = Kind.RELAY_DOWN in self.on
        self.struck[Kind.RELAY_DOWN] += self.relay_is_dead
        if self.strikes(Kind.RELAY_RESTARTS, minute):
            self.cluster.restart_relay()
        if (Kind.SETTINGS_INVALID in self.on) != (Kind.SETTINGS_INVALID in before):
            self._edits_settings(valid=Kind.SETTINGS_INVALID in before)
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

    def _edits_settings(self, *, valid: bool) -> None:
        self.struck[Kind.SETTINGS_INVALID] += not valid
        document = encode_settings(self.settings)
        self.store.put_document(settings_key(self.settings.cluster), document if valid else {**document, "zone": 5})

    # the story's people

    def _people(self, minute: int) -> None:
        for plot in self.story.jobsets:
            if minute == plot.at:
                self._creates(plot, 0)
            for since, until in plot.suspended:
                if minute == since and self._is(plot, WorkloadState.ACTIVE):
                    self.suspends(self.plots[plot.id])
                elif minute == until and self._is(plot, WorkloadState.SUSPENDED):
                    self.resumes(self.plots[plot.id])
            if minute == plot.ends and not self.plots[plot.id].state.ended:
                self.ends(self.plots[plot.id], WorkloadState.DELETED if plot.deleted else WorkloadState.COMPLETED)
            if plot.again and plot.ends is not None and minute == plot.ends + 1:
                self._creates(plot, 1)
            if plot.runs is not None and minute >= plot.at:
                self._runs(plot, plot.runs)

    def _runs(self, plot: Plot, needed: int) -> None:
        """Let a workload work for a minute, if it can; it goes on where it was, and completes when it has done all."""
        workload = self.plots[plot.id]
        if workload.state is WorkloadState.ACTIVE and workload.served:
            self.served[plot.id] += 1
            if self.served[plot.id] >= needed:
                self.ends(workload)

    def _is(self, plot: Plot, state: WorkloadState) -> bool:
        return self.plots[plot.id].state is state

    def _creates(self, plot: Plot, life: int) -> None:
        owner = Owner(
            kind=plot.kind,
            namespace=plot.namespace,
            name=plot.name,
            uid=WorkloadUid(str(uuid5(NAMESPACE_URL, f"{plot.id}/{life}"))),
        )
        groups = plot.slices if plot.kind is OwnerKind.LEADER_WORKER_SET else None
        ref = WorkloadRef(owner=owner, generation=1, resource_version="100", groups=groups)
        self.plots[plot.id] = LiveWorkload(ref, plot.requests)
        self.cluster.puts(self.plots[plot.id])

    def _leaders(self, minute: int) -> None:
        for jobset in self.workloads.values():
            for index in sorted(jobset.bound):
                if self.strikes(Kind.LEADERS_LEAVE, minute, jobset.ref.owner.uid, index):
                    self.leaves(jobset, index)

    # messages

    def publish(self, fact: Fact) -> None:
        """Send a fact; some are lost, late or doubled."""
        self._called += 1
        key = (self.minute, self._called)
        if self.strikes(Kind.MESSAGES_LOST, key):
            return
        if self.strikes(Kind.MESSAGES_LATE, key):
            late = self.chance.between(1, 120, "late", key) * MINUTE
            self._late.append((self.clock.now() + late, self.clock.now(), fact))
            return
        super().publish(fact)
        if self.strikes(Kind.MESSAGES_DOUBLED, key):
            super().publish(fact)

    def loses_request(self) -> bool:
        self._called += 1
        return self.strikes(Kind.REQUESTS_LOST, self.minute, self._called)

    # instances

    def _survive(self, step: Callable[[], object]) -> bool:
        self._called += 1
        key = (self.minute, self._called)
        before = self._skewed.skew
        skewed = self.strikes(Kind.CLOCKS_DIFFER, key)
        self._skewed.skew = timedelta(seconds=self.chance.between(-20, 20, "skew", key)) if skewed else timedelta()
        try:
            return super()._survive(step)
        finally:
            self._skewed.skew = before

    def _before_store(self, name: str) -> None:
        if name != "commit":
            return
        self._called += 1
        key = (self.minute, self._called)
        if self._called % TRIES and self.strikes(Kind.STORE_CONTENDED, key):
            raise StaleRecord("somebody else wrote it first")
        if not self._nested and self.strikes(Kind.FUNCTIONS_OVERLAP, key):
            with self._meanwhile():
                self.deliver()

    def _before_publisher(self, name: str) -> None:
        if name in EFFECTS and self.strikes(Kind.PUBLISHER_DOWN, self.minute):
            raise Temporary("Pub/Sub is unavailable")

    def _after_effect(self, name: str) -> None:
        if name not in EFFECTS:
            return
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
