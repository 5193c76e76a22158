"""Stories of tenants who do, by mistake or not, what would cost others much: what each may cost, and what it may have.

| story        | a tenant                                                    | the others                           |
|--------------|-------------------------------------------------------------|--------------------------------------|
| flips        | suspends and resumes a JobSet each second                   | are served; a minute costs 120       |
|              |                                                             | messages, 240 reads, 120 writes      |
| refused      | asks for far more slices than the limit of chips lets it    | are served; a minute costs what it   |
|              | have                                                        | costs without it                     |
| reservations | names a reservation of its own in each of many JobSets      | get a slot as if it named none       |
| anew         | deletes a JobSet and makes it anew every 45 s               | are served; no more than two slices  |
|              |                                                             | stand for it                         |

None runs on more chips than its namespace may hold.
"""

from __future__ import annotations

from typing import Any

from tests.simulation.drawn import a_plot, a_story
from tpu_slices_simulator.story import Costs, Plot, Restless, Story

CHIPS = 32
"""What a namespace may hold: two slices."""
MANY = 40
"""Far more slices than that."""
SOON = 8
"""Minutes: a slot is free again as soon as GKE has made what is being made."""


def flips(drawn: Story) -> Story:
    restless = Restless(since=15, until=26, every=1)
    costs = Costs(since=16, until=26, messages=120, reads=240, writes=120)
    many = a_plot("flips", 1, slices=MANY, restless=restless)
    return _story(drawn, many, *_honest(20, 25), costs=costs)


def refused(drawn: Story) -> Story:
    costs = Costs(since=30, until=60, messages=3, reads=80, writes=2)
    many = (a_plot(f"refused-{number}", 1 + number, slices=MANY) for number in range(4))
    return _story(drawn, *many, *_honest(3, 8), costs=costs)


def reservations(drawn: Story) -> Story:
    many = (a_plot(f"hog-{number}", 1, reservation=f"reservation-{number}", ends=59) for number in range(MANY))
    return _story(drawn, *many, *_honest(2, 10), operations=2, chips_per_namespace=None)


def anew(drawn: Story) -> Story:
    restless = Restless(since=10, until=50, every=45, remakes=True)
    return _story(drawn, a_plot("anew", 1, slices=2, restless=restless), *_honest(5, 20), chips_per_namespace=None)


STORIES = (flips, refused, reservations, anew)


def _honest(*at: int) -> tuple[Plot, ...]:
    """Return JobSets of a namespace that does nothing of the kind, by the minutes in which they are made."""
    others: dict[str, Any] = {"namespace": "vision", "begins_within": SOON}
    return tuple(a_plot(f"honest-{minute}", minute, ends=minute + 20, **others) for minute in at)


def _story(drawn: Story, *jobsets: Plot, **more: Any) -> Story:
    """Return a story of the seed of another, in which nothing goes wrong; leaders take a moment to come to hosts."""
    fields = {"chips_per_namespace": CHIPS, "slow_scheduler": True, "jobsets": jobsets}
    return a_story(seed=drawn.seed, minutes=60, **{**fields, **more})
