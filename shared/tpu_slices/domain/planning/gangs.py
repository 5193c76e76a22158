"""What excludes that the slices of a gang ever stand together. Pure.

| a gang                                | why                                                             |
|---------------------------------------|-----------------------------------------------------------------|
| on flex-start hosts                   | GKE adds them only for pods that are not held                   |
| that has more chips than a limit      | they have to stand together, whoever holds how many             |

What a workload says in its annotation is read, and refused, by `wire.gangs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tpu_slices.domain.model.clusters import Policy
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.planning.host_labels import FLEX_START
from tpu_slices.domain.planning.obstacles import Obstacle, does_not_fit


@dataclass(frozen=True, slots=True)
class GangSize:
    """What all claims of a gang request."""

    slices: int
    chips: int


def not_by_flex_start(request: TemplateRequest) -> Iterator[Obstacle]:
    """Yield why the pods of a gang get no flex-start hosts."""
    if request.gang:
        yield does_not_fit(
            f"{GANG}: the pods of a gang are held until all of its slices stand, and GKE adds flex-start hosts "
            f"({FLEX_START}) only for pods that are not held: remove one of them"
        )


def beyond_limits(gang: GangSize, namespace: str, policy: Policy) -> Iterator[str]:
    """Yield which limits a gang exceeds, whatever others hold: the setting, the chips and what is allowed."""
    for setting, most in policy.limits(namespace).items():
        if gang.chips > most:
            needs = f"its {gang.slices} slices need {gang.chips} chips together"
            yield f"policy.{setting}: {needs}, and at most {most} are allowed"
