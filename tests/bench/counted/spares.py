"""What a spare uses of Google Cloud while it waits, beside the same cluster without it.

The clock is advanced by the count alone, as in `usage`.
"""

from __future__ import annotations

from tests.bench.counted.counters import Counts
from tests.bench.counted.meter import MeteredWorld
from tests.bench.counted.usage import WARM_UP
from tests.builders import settings
from tpu_slices.domain.model.capacity import Place, Spare
from tpu_slices.domain.model.slices import CapacityKind

MINUTES = 60
LIST = Place(capacity=CapacityKind.ON_DEMAND, zones=("us-central2-b",))


def waiting(count: int) -> Counts:
    """Return the use of an hour in which so many spares wait, as their price is not known."""
    spare = Spare(accelerator="tpu-v6e-slice", topology="4x4", place="list", count=count, namespaces=("research",))
    world = MeteredWorld(of_cluster=settings(places={"list": LIST}, spares=(spare,), spares_most_usd_an_hour=1.0))
    world.minutes(WARM_UP)
    with world.used() as counts:
        world.minutes(MINUTES)
    return counts
