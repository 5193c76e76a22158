"""`python -m tests.bench.counted.usage`: what the provisioner uses of Google Cloud, counted on the world in memory.

The real handlers run on a clock that only the count advances: a minute is a tick of the sweep and four looks of the
relay. `docs/cost.md` has these numbers, and what they cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from tests.bench.counted import cost
from tests.bench.counted.counters import COUNTED, Counts
from tests.bench.counted.meter import MeteredWorld
from tpu_slices.domain.model.observations import Failure, FailureKind
from tpu_slices.domain.model.reasons import Phase, Reason

WARM_UP = 30
"""Minutes, until everything has its rhythm."""
HOUR = 60
FEW, MANY = 10, 100
STOCKOUT = Failure(FailureKind.STOCKOUT, "[GCE_STOCKOUT] The zone does not have enough resources available.")
STOCKOUT_MINUTES = 36
"""What GKE takes to give a creation up."""


def idle_hour() -> Counts:
    """Return the use of an hour of a cluster without any JobSet."""
    return _hour(MeteredWorld())


def life() -> Counts:
    """Return the use of an hour in which a slice is requested, created in 5 minutes, used, released and deleted."""
    world = MeteredWorld()
    world.minutes(WARM_UP)
    with world.used() as counts:
        jobset = world.jobset_appears()
        world.minutes(5)
        world.operations_end()
        world.minutes(45)
        assert world.record(jobset).phase is Phase.READY
        world.ends(jobset)
        world.minutes(4)
        world.operations_end()
        world.minutes(6)
        assert world.record(jobset).phase is Phase.GONE
    return counts


def ready_hour(slices: int) -> Counts:
    """Return the use of an hour of so many READY slices, each of a JobSet of its own."""
    world = MeteredWorld()
    jobsets = [world.jobset_appears(f"train-{number}") for number in range(slices)]
    for _ in range(slices):
        world.minutes(1)
        world.operations_end()
        if all(jobset.bound for jobset in jobsets):
            break
    counts = _hour(world)
    assert {record.phase for record in world.records.values()} == {Phase.READY}
    return counts


def stockout_hour() -> Counts:
    """Return the use of an hour of a slice whose creations all end for lack of hosts."""
    world = MeteredWorld()
    world.minutes(WARM_UP)
    jobset = world.jobset_appears()
    with world.used() as counts:
        world.minutes(STOCKOUT_MINUTES)
        world.creation_fails(world.record(jobset).pool, STOCKOUT)
        world.minutes(HOUR - STOCKOUT_MINUTES)
    assert world.record(jobset).claim.setbacks[Reason.STOCKOUT] == 1
    return counts


def stored_bytes() -> Mapping[str, int]:
    """Return the bytes of the documents of one slice that is READY, and of what a cluster has beside."""
    world = MeteredWorld()
    world.jobset_appears()
    world.minutes(5)
    world.operations_end()
    world.minutes(HOUR)
    sizes: Counter[str] = Counter()
    for place in world.store.places():
        sizes[place.collection] += world.store.size(place)
    return sizes


SCENARIOS: Mapping[str, Callable[[], Counts]] = {
    "idle": idle_hour,
    "a life": life,
    "stockout": stockout_hour,
    f"{FEW} READY": lambda: ready_hour(FEW),
    f"{MANY} READY": lambda: ready_hour(MANY),
}


def main() -> None:
    found = {name: count() for name, count in SCENARIOS.items()}
    print(f"{'in an hour':<28}" + "".join(f"{name:>12}" for name in found))
    for counted in COUNTED:
        print(f"{counted:<28}" + "".join(f"{counts[counted]:>12,}" for counts in found.values()))
    months = cost.months(found["idle"], found["a life"], (FEW, found[f"{FEW} READY"]), (MANY, found[f"{MANY} READY"]))
    for name, month in months.items():
        print(f"\n{'a month: ' + name:<46}{'units':>14}{'USD':>10}{'less free':>10}")
        for price, (units, listed, billed) in cost.bill(month).items():
            print(f"{price:<46}{units:>14,.1f}{listed:>10.2f}{billed:>10.2f}")
    print()
    for collection, size in sorted(stored_bytes().items()):
        print(f"{'bytes in ' + collection:<28}{size:>12,}")


def _hour(world: MeteredWorld) -> Counts:
    world.minutes(WARM_UP)
    with world.used() as counts:
        world.minutes(HOUR)
    return counts


if __name__ == "__main__":
    main()
