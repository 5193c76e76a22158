"""What the start of a gang uses of Google Cloud, beside that of as many slices by themselves.

The clock is advanced by the count alone, as in `usage`.
"""

from __future__ import annotations

from relay.agenda import Timing
from tests.bench.counted.counters import Counts
from tests.bench.counted.meter import MeteredWorld
from tests.bench.counted.usage import WARM_UP
from tests.builders import a_request
from tpu_slices.domain.model.reasons import Phase


def start(slices: int, gang: str = "") -> Counts:
    """Return the use of ten minutes in which a JobSet of so many slices gets them all in five; `gang`: as it says."""
    world = MeteredWorld()
    world.minutes(WARM_UP)
    with world.used() as counts:
        world.jobset_appears("llama", slices, a_request(gang=gang))
        world.look(tick=False)
        world.clock.advance(Timing().gather)  # that the relay waits for more leaders of a gang
        world.minutes(5)
        world.operations_end()
        world.minutes(5)
    assert {record.phase for record in world.records.values()} == {Phase.READY}
    return counts
