"""Stories in which slices are kept warm, and for how long they are."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

from tests.simulation.drawn import a_plot
from tests.simulation.promises import Promise, broken
from tpu_slices.domain.model.capacity import Across, Warm
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import SliceId
from tpu_slices_simulator.simulation import Simulation
from tpu_slices_simulator.story import Story

KEPT = Warm(lasts=timedelta(minutes=15), most_chips=48)
LATE = 3
"""Minutes in which nothing goes wrong and a slice is still warm whose time is over."""


def in_warm(story: Story) -> Story:
    """Return a story in a cluster that keeps slices: by every second seed for claims of any namespace."""
    kept = replace(KEPT, across=Across.CLUSTER) if _is_for_all(story) else KEPT
    return replace(story, settings=replace(story.settings, warm=kept))


def _is_for_all(story: Story) -> bool:
    return story.seed % 2 == 1


def minutes_of(story: Story) -> int:
    """Return for how many minutes slices are kept."""
    warm = story.settings.warm
    return int(warm.lasts.total_seconds() / 60) if warm is not None else 0


class Warmths:
    """Raises Broken if a slice is kept for longer than the settings say, by what is seen of it from outside."""

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self._since: dict[SliceId, int] = {}
        """In which minute slices were first seen to be warm, since no claim needed them."""
        self._late: Counter[SliceId] = Counter()

    def each_minute(self) -> None:
        world = self._world
        going = {each.id: each for each in world.records.values() if each.goes and each.current.create_requested_at}
        self._since = {id_: since for id_, since in self._since.items() if id_ in going}
        kept = bool(world.on) or world.operators.paused is not None or world.story.flapping
        for id_, record in going.items():
            if record.reason is not Reason.WARM or record.hold:
                self._late.pop(id_, None)
                continue
            since = self._since.setdefault(id_, world.minute)
            if not kept and world.minute - since > minutes_of(world.story):
                self._late[id_] += 1
            if self._late[id_] > LATE:
                broken(Promise.WARMTH_ENDS, f"{id_} has been warm since minute {since}", world)


def queued(story: Story) -> Story:
    """Return a story of Jobs of one shape that follow each other, with the troubles of this one: slices go round."""
    namespaces = ("research", "vision" if _is_for_all(story) else "research")
    lives = [
        (number % 2, f"line-{line}-{number}", 2 + 13 * number + 3 * line) for line in range(2) for number in range(8)
    ]
    jobsets = tuple(
        a_plot(name, at, ends=at + 9, deleted=bool(at % 2), namespace=namespaces[turn]) for turn, name, at in lives
    )
    return in_warm(replace(story, jobsets=jobsets, minutes=max(story.minutes, 130)))
