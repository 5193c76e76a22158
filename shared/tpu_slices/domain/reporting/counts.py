"""What a cluster has, in numbers: the log line `cluster.counted`, of which metrics are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from tpu_slices.domain.model.reasons import EXPLAINED, Phase, Reason
from tpu_slices.domain.model.slices import ClusterId, SliceId

COUNTED_PHASES = tuple(phase for phase in Phase if phase is not Phase.GONE)
ON_HOLD = (Reason.HELD, Reason.PAUSED)
"""Of slices that are BLOCKED since an operator holds them or paused the cluster."""
HELD = (Reason.HELD,)
"""Of slices that an operator holds, and that are not needed, or for which nothing stands."""
RELEASED_NOW = tuple(each for each in Reason if each.phase is Phase.RELEASING and each not in EXPLAINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCount:
    """How many slices and chips a cluster has, and how they stand."""

    cluster: ClusterId
    phases: Mapping[Phase, int]
    """How many slices are in each of COUNTED_PHASES."""
    on_hold: int
    """How many of those that are BLOCKED have a reason of ON_HOLD."""
    warm: int
    """How many are kept warm."""
    spares: int
    """How many spares stand."""
    chips_bought: int
    """The chips of all pools that exist or may still come: what limits count."""
    chips_held: int
    """Those of hosts that stand, which are billed (`usage.use_of`)."""
    chips_idle: int
    """Those of them that are idle."""
    releasing_for: timedelta
    """How long the slice has been RELEASING that has been it longest, of those with a reason of RELEASED_NOW."""
    held_for: timedelta
    """How long the slice has had the reason HELD that has been so longest."""
    paid_for: timedelta
    """How long the slice has been paid for without use that has been it longest: see `spending.paid_since`."""
    paid_slice: SliceId | None
    """That slice; None: there is none."""

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers of the log line; `blocked` has only slices that nobody holds."""
        return {
            **{phase.value.lower(): count for phase, count in self.phases.items()},
            "blocked": max(0, self.phases[Phase.BLOCKED] - self.on_hold),
            "on_hold": self.on_hold,
            "warm": self.warm,
            "spares": self.spares,
            "chips_bought": self.chips_bought,
            "chips_held": self.chips_held,
            "chips_idle": self.chips_idle,
            "idle_percent": 100 * self.chips_idle / self.chips_held if self.chips_held else 0,
            "releasing_seconds": self.releasing_for.total_seconds(),
            "held_seconds": self.held_for.total_seconds(),
            "paid_seconds": self.paid_for.total_seconds(),
        }
