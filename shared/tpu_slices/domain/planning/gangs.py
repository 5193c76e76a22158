"""What excludes that the slices of a gang ever stand together. Pure.

| a gang                                | why                                                             |
|---------------------------------------|-----------------------------------------------------------------|
| on flex-start hosts                   | GKE adds them only for pods that are not held                   |
| that has more chips than a limit      | they have to stand together, whoever holds how many             |
| that is to be held for longer than    | what is held is paid for and used by nobody                     |
| `limits.gang_hold_at_most`            |                                                                 |

What a workload says in its annotation is read, and refused, by `wire.gangs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from tpu_slices.domain.model.clusters import Limits, Policy
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.domain.model.gangs import GANG, GANG_HOLD_FOR
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.texts import duration
from tpu_slices.domain.planning.host_labels import FLEX_START
from tpu_slices.domain.planning.obstacles import Obstacle, does_not_fit


@dataclass(frozen=True, slots=True)
class GangSize:
    """What all claims of a gang request."""

    slices: int
    chips: int

    @property
    def needs(self) -> str:
        need = "its slice needs" if self.slices == 1 else f"its {self.slices} slices need"
        return f"{need} {self.chips} chips"


def not_by_flex_start(request: TemplateRequest) -> Iterator[Obstacle]:
    """Yield why the pods of a gang get no flex-start hosts."""
    if request.gang:
        yield does_not_fit(
            f"{GANG}: the pods of a gang are held until all of its slices stand, and GKE adds flex-start hosts "
            f"({FLEX_START}) only for pods that are not held: remove one of them"
        )


def held_for_longer(request: TemplateRequest, limits: Limits) -> Iterator[Obstacle]:
    """Yield that slices of a gang are to be held for longer than the settings allow."""
    hold_for, at_most = timedelta(seconds=request.gang_hold_for), limits.gang_hold_at_most
    if hold_for > at_most:
        yield Obstacle(
            Reason.NOT_ALLOWED,
            f"{GANG_HOLD_FOR}: its slices would be held for {duration(hold_for)}, and limits.gang_hold_at_most is "
            f"{duration(at_most)}: write that, or less",
        )


def beyond_limits(gang: GangSize, namespace: str, policy: Policy) -> Iterator[str]:
    """Yield which limits a gang exceeds, whatever others hold: the setting, the chips and what is allowed."""
    for setting, most in policy.limits(namespace).items():
        if gang.chips > most:
            yield f"policy.{setting}: {gang.needs} together, and at most {most} are allowed"
