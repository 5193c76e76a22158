"""What changes each second is held back: in the end it is served, hosts go when nobody uses them, and nobody asks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.builders import MINUTE
from tests.journeys.seconds import Seconds
from tests.world import World
from tpu_slices.domain.model.facts import SlicesWanted, WorkloadChanged, WorkloadState
from tpu_slices.domain.model.observations import Running
from tpu_slices.domain.model.questions import ListQuestion, Question
from tpu_slices.domain.model.slices import OwnerKind

SLICES = 3


class Flapping:
    """A world in which a JobSet runs on its slices, and in which from then on something happens each second."""

    def __init__(self, kind: OwnerKind = OwnerKind.JOBSET, operation: timedelta = MINUTE) -> None:
        self.world = World()
        by_itself = kind is not OwnerKind.JOBSET
        self.jobset = self.world.other_appears(kind, SLICES) if by_itself else self.world.jobset_appears(slices=SLICES)
        self.time = Seconds(self.world, operation=operation, relay=1)
        self.runs(300, until=lambda: len(self.jobset.bound) == SLICES)
        self.runs(100)
        self.told = 0
        self._publish = self.world.publish
        self.world.publish = self._counted  # type: ignore[method-assign]
        self.world.publisher.questions.clear()
        self.world._taken_questions = 0

    def _counted(self, fact: object) -> None:
        self.told += isinstance(fact, WorkloadChanged | SlicesWanted)
        self._publish(fact)  # type: ignore[arg-type]

    def runs(self, seconds: int, until: Callable[[], bool] = lambda: False) -> None:
        for _ in range(seconds):
            if until():
                return
            self.time.run(1)
            self.looks()

    def looks(self) -> None:
        """Fail if a pool that pods run on is gone."""
        hosts = {pod.node for pod in self.world.cluster.pods.values() if pod.node is not None}
        assert hosts <= self.world.cluster.nodes.keys()

    def flaps(self, seconds: int, flip: Callable[[int], object]) -> None:
        for second in range(seconds):
            flip(second)
            self.runs(1)

    def flips(self, second: int) -> None:
        if second % 2:
            self.world.resumes(self.jobset)
        else:
            self.world.suspends(self.jobset)

    @property
    def asked(self) -> list[object]:
        """The lists, and the workloads, that the functions asked for."""
        questions = (question for _, question in self.world.publisher.questions)
        return [each for each in questions if isinstance(each, ListQuestion | Question)]

    @property
    def served(self) -> bool:
        return len(self.jobset.bound) == SLICES == self.stand

    @property
    def stand(self) -> int:
        return sum(isinstance(pool.seen, Running) for pool in self.world.backend.pools.values())


@pytest.mark.parametrize("seconds", [2, 40, 200])
def test_who_was_suspended_and_resumed_each_second_is_served_in_the_end(seconds: int) -> None:
    begun = Flapping()
    begun.flaps(seconds, begun.flips)
    begun.runs(1_200, until=lambda: begun.served)
    begun.runs(300)
    assert begun.served


def test_while_it_flaps_without_slices_few_facts_are_told_and_nobody_asks_for_lists() -> None:
    begun = Flapping(operation=120 * MINUTE)
    assert begun.stand == 0
    begun.flaps(600, begun.flips)
    assert begun.told < 50
    assert begun.asked == []


def test_while_it_flaps_on_its_hosts_each_suspension_is_told_and_nobody_asks_for_lists() -> None:
    begun = Flapping()
    begun.flaps(200, begun.flips)
    assert 100 <= begun.told < 150
    assert begun.asked == []


def test_who_is_suspended_in_the_end_has_no_slice_in_the_end() -> None:
    begun = Flapping()
    begun.flaps(201, begun.flips)
    assert begun.jobset.state is WorkloadState.SUSPENDED
    begun.runs(900, until=lambda: not begun.world.pools)
    assert begun.world.pools == []


def test_who_ends_in_the_hold_has_no_slice_in_the_end() -> None:
    begun = Flapping()
    begun.flaps(200, begun.flips)
    begun.world.ends(begun.jobset, WorkloadState.FAILED)
    begun.runs(600, until=lambda: not begun.world.pools)
    assert begun.world.pools == []


def test_a_jobset_that_is_made_anew_in_the_hold_is_served_at_once() -> None:
    begun = Flapping()
    begun.flaps(200, begun.flips)
    begun.world.ends(begun.jobset, WorkloadState.DELETED)
    begun.jobset = begun.world.jobset_appears(slices=SLICES)
    begun.runs(180, until=lambda: begun.served)
    assert begun.served


def test_a_relay_that_starts_in_the_hold_tells_at_once_what_its_predecessor_held_back() -> None:
    begun = Flapping()
    begun.flaps(200, begun.flips)
    told = begun.told
    begun.world.relay_restarts()
    begun.runs(6)
    assert begun.told > told
    begun.runs(300, until=lambda: begun.served)
    assert begun.served


def a_group_less(begun: Flapping, second: int) -> None:
    begun.world.scales(begun.jobset, SLICES if second % 2 else 1)


def a_leader_is_deleted(begun: Flapping, second: int) -> None:
    begun.world.leaves(begun.jobset, second % SLICES)


@pytest.mark.parametrize("seconds", [40, 200])
@pytest.mark.parametrize(
    ("kind", "flip"),
    [(OwnerKind.LEADER_WORKER_SET, a_group_less), (OwnerKind.JOBSET, a_leader_is_deleted)],
    ids=["groups come and go", "leaders are deleted"],
)
def test_whatever_else_flaps_is_served_in_the_end(
    kind: OwnerKind, flip: Callable[[Flapping, int], None], seconds: int
) -> None:
    begun = Flapping(kind)
    begun.flaps(seconds, lambda second: flip(begun, second))
    begun.runs(1_200, until=lambda: begun.served)
    begun.runs(300)
    assert begun.served


def test_a_resumption_that_was_told_and_lost_is_found_by_a_list_as_ever() -> None:
    begun = Flapping()
    begun.world.suspends(begun.jobset)
    begun.runs(30)
    with begun.world.loses(WorkloadChanged), begun.world.loses(SlicesWanted):
        begun.world.resumes(begun.jobset)
        begun.runs(5)
    begun.runs(900, until=lambda: begun.served)
    assert begun.served
    assert begun.asked != []
