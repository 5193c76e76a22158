"""What becomes of a story: nothing, or the promise that it breaks; and the shortest story that breaks the same one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from tests.simulation.calm import Calm
from tests.simulation.capacity import spares
from tests.simulation.capacity.booked import Reservations
from tests.simulation.capacity.ladders import Ladders
from tests.simulation.drawn import remade
from tests.simulation.gangs import Gangs
from tests.simulation.promises import Broken, Promise
from tests.simulation.tenancy import Tenancy
from tests.simulation.warm import Warmths, minutes_of
from tests.simulation.watch import Watch
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.flows.brakes import confirm
from tpu_slices_simulator.fuse import Fuse
from tpu_slices_simulator.simulation import Simulation
from tpu_slices_simulator.story import Fault, Kind, Plot, Story

CALM = 150
"""Minutes without faults: more than any timeout, pause or silence lasts."""
QUIET = 30
"""The last of them, in which next to nothing may be done."""
END = 60
"""Minutes in which everything that is left must go, unless there are more turns than these have."""
TURN = 12
"""Minutes of a deletion at most: of an instance group, then of what is beside it, each end found by a sweep."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Played:
    seed: int
    hours: float
    promise: Promise | None = None
    """Which it broke."""
    seen: str = ""
    struck: Counter[Kind] = field(default_factory=Counter)
    """How often each kind of fault had an effect."""
    timeline: tuple[str, ...] = ()
    """What became of each slice, if a promise was broken."""


class Watched(Simulation):
    """A simulation whose promises are watched."""

    def __init__(self, story: Story, fuse: Fuse | None = None) -> None:
        super().__init__(story, fuse)
        self.watch, self.calm, self.tenancy, self.gangs = Watch(self), Calm(self), Tenancy(self), Gangs(self)
        self.warmths, self.ladders = Warmths(self), Ladders(self)
        self.reserved = Reservations(self)

    def _a_minute(self) -> None:
        super()._a_minute()
        self.calm.each_minute()
        self.tenancy.each_minute()
        self.gangs.each_minute()
        self.warmths.each_minute()
        self.ladders.each_minute()
        self.reserved.each_minute()

    def play(self) -> None:
        """Play the story to its end, then some time of calm, then the end of all workloads. Raise Broken."""
        self.until(self.story.minutes)
        self.calms()
        looks = 0
        for left in range(CALM, 0, -10):  # an operator looks after it
            if left == QUIET:
                self.calm.begins()
                looks = len(self.reservations.reads)
            self.until(self.minute + 10)
            confirm(self.settings.cluster, self.deps)
        self.calm.costs_little()
        self.reserved.looked_at_seldom(len(self.reservations.reads) - looks)
        self.calm.in_calm()
        spares.stand(self)
        self.calm.reports()
        self.puts_settings(replace(self.settings, spares=()))
        self.users.end_all()
        end = self.minute + minutes_to_go(self.story)
        while self.minute < end:
            self.until(self.minute + 1)
            self.calm.after_a_sweep()
        self.calm.when_all_ended()


def minutes_to_go(story: Story) -> int:
    """Return in which time everything goes that a story has at most, so many at a time as may be deleted."""
    slices = sum(each.slices for each in story.jobsets)
    return max(END, TURN * (1 + -(-slices // story.settings.limits.operations))) + minutes_of(story)


def played(story: Story, fuse: Fuse | None = None) -> Played:
    """Play a story to its end."""
    simulation = Watched(story, fuse)
    try:
        simulation.play()
    except Broken as broken:
        timeline = tuple(_timeline(simulation))
        return Played(story.seed, simulation.hours, broken.promise, str(broken), simulation.struck, timeline)
    return Played(story.seed, simulation.hours, struck=simulation.struck)


def _timeline(simulation: Simulation) -> Iterator[str]:
    """Yield the transitions of all slices, oldest first."""
    told = ((record.name, each) for record in simulation.records.values() for each in record.transitions)
    for slice_, each in sorted(told, key=lambda it: (it[1].at, it[0])):
        yield f"{each.at:%d %H:%M:%S}  {slice_}  {each.phase}  {each.reason}: {each.message}"


def shrunk(story: Story, breaks: Callable[[Story], bool]) -> Story:
    """Return a story of as few JobSets and faults as still breaks it, each as plain and short as it can be."""
    while True:
        smaller = next((each for each in _smaller(story) if breaks(each)), None)
        if smaller is None:
            return story
        story = smaller


def _smaller(story: Story) -> Iterator[Story]:
    """Yield stories with less in them, those with much less first."""
    yield from (replace(story, faults=faults) for faults in _fewer(story.faults))
    yield from (replace(story, jobsets=jobsets) for jobsets in _fewer(story.jobsets))
    for index, fault in enumerate(story.faults):
        yield from (replace(story, faults=_with(story.faults, index, each)) for each in _plainer_fault(fault))
    for number, plot in enumerate(story.jobsets):
        yield from (replace(story, jobsets=_with(story.jobsets, number, each)) for each in _plainer_plot(plot))
    plainer: dict[str, Any] = {"crosses": False, "slow_scheduler": False, "operated": False, "flapping": False}
    plainer |= {"policy_off": None, "set_back": None}
    yield from (replace(story, **{name: plain}) for name, plain in plainer.items() if getattr(story, name) != plain)
    if story.settings.policy.chips_per_cluster is not None:
        yield replace(story, settings=_without_limit(story.settings))
    last = max([1, *(each.at + each.lasts for each in story.faults), *(plot.at for plot in story.jobsets)])
    if last < story.minutes:
        yield replace(story, minutes=last)


def _without_limit(settings: ClusterSettings) -> ClusterSettings:
    return replace(settings, policy=replace(settings.policy, chips_per_cluster=None))


def _fewer(parts: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    """Yield the parts without half of them, without a quarter..., without one."""
    size = len(parts)
    while size > 1:
        size //= 2
        for start in range(0, len(parts), size):
            yield parts[:start] + parts[start + size :]
    if len(parts) == 1:
        yield ()


def _with(parts: tuple[T, ...], index: int, part: T) -> tuple[T, ...]:
    return (*parts[:index], part, *parts[index + 1 :])


def _plainer_fault(fault: Fault) -> Iterator[Fault]:
    if fault.lasts > 1:
        yield replace(fault, lasts=fault.lasts // 2)
        yield replace(fault, at=fault.at + fault.lasts // 2, lasts=fault.lasts - fault.lasts // 2)


def _plainer_plot(plot: Plot) -> Iterator[Plot]:
    plainer = [
        remade(plot, slices=1),
        remade(plot, flex_start=False),
        remade(plot, shape="4x4"),
        replace(plot, namespace="research"),
        replace(plot, again=0),
        replace(plot, again=plot.again // 2),
        replace(plot, suspended=()),
        *([] if plot.again else [replace(plot, deleted=False), replace(plot, ends=None)]),
    ]
    yield from (each for each in plainer if each != plot)
