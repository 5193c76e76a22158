"""`python -m tests.bench.counted.scale`: what deployments of many clusters use, computed of what one is counted to use.

`docs/scale.md` has the table, what each limit is, and what breaks first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from infra.local import messaging
from tests.bench.counted import cost, counters, usage
from tests.bench.counted.counters import COUNTED, Counts

CHIPS_EACH = 16
"""Of a slice, such as v6e 4x4: four hosts."""
OPERATION_MINUTES = 5
"""Assumed: of a creation, and of a deletion."""
CLUSTERS_OF_A_PROJECT = 20
"""How many GKE clusters the condition of reconcile's role names (docs/iam.md)."""
CALLS_OF_A_LIFE = 5
HOUR = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """So many clusters under one set of functions, with all slices and their lives spread evenly over them."""

    clusters: int
    chips: int = 100_000
    lives: int = 5_000
    """Slices that are made, used and deleted in an hour."""

    @property
    def slices(self) -> float:
        return self.chips / CHIPS_EACH


DEPLOYMENTS = (Deployment(clusters=50), Deployment(clusters=200), Deployment(clusters=500))


@dataclass(frozen=True, slots=True)
class Counted:
    """What an hour uses: of a cluster, of a slice that is READY, and a life beyond these."""

    cluster: Counts
    ready: Mapping[str, float]
    life: Mapping[str, float]

    @classmethod
    def now(cls) -> Counted:
        idle, few, many = usage.idle_hour(), usage.ready_hour(usage.FEW), usage.ready_hour(usage.MANY)
        life, others = usage.life(), usage.MANY - usage.FEW
        return cls(
            cluster=idle,
            ready={each: (many[each] - few[each]) / others for each in COUNTED},
            life={each: life[each] - idle[each] for each in COUNTED},
        )

    def hour(self, of: Deployment) -> Mapping[str, float]:
        """Return what an hour of a deployment uses."""
        return {
            each: of.clusters * self.cluster[each] + of.slices * self.ready[each] + of.lives * self.life[each]
            for each in COUNTED
        }

    def calls(self, of: Deployment) -> float:
        """Return the calls of functions in a second."""
        hour = self.hour(of)
        return sum(hour[function] for function in (counters.RECEIVE, counters.RECONCILE, counters.SWEEP)) / HOUR

    def dollars(self, of: Deployment) -> float:
        """Return what a month costs at list price."""
        month = {each: cost.HOURS * used for each, used in self.hour(of).items()}
        units = {**cost.units(month), "Scheduler jobs": of.clusters + 1}
        return sum(price.of(units[name])[0] for name, price in cost.PRICES.items())


def topics(of: Deployment) -> float:
    names = messaging.read().topics
    own = sum("{cluster}" in name for name in names)
    return own * of.clusters + len(names) - own


def operations(of: Deployment) -> float:
    """Return how many operations a cluster has to have at a time."""
    return of.lives * 2 * OPERATION_MINUTES / 60 / of.clusters


def gke_calls(of: Deployment) -> float:
    """Return the calls of GKE's API in a minute, of as many clusters as one project has.

    Each minute a list of the operations of each cluster, and of each life five calls
    (`tests/bench/counted/test_usage.py`).
    """
    clusters = min(of.clusters, CLUSTERS_OF_A_PROJECT)
    return clusters + CALLS_OF_A_LIFE * of.lives / 60 * clusters / of.clusters


ROWS: Mapping[str, Callable[[Counted, Deployment], float]] = {
    "operations at a time in each cluster": lambda _, of: operations(of),
    "creations a second in each cluster": lambda _, of: of.lives / of.clusters / HOUR,
    "calls of functions a second": lambda counted, of: counted.calls(of),
    "sweeps that begin at once": lambda _, of: of.clusters,
    "Firestore reads a second": lambda counted, of: counted.hour(of)[counters.READS] / HOUR,
    "Firestore writes a second": lambda counted, of: counted.hour(of)[counters.WRITES] / HOUR,
    "GKE calls a minute of a project": lambda _, of: gke_calls(of),
    "topics, and subscriptions": lambda _, of: topics(of),
    "Scheduler jobs": lambda _, of: of.clusters + 1,
    "USD a month, at list price": lambda counted, of: counted.dollars(of),
}


def table(counted: Counted, deployments: Sequence[Deployment] = DEPLOYMENTS) -> Mapping[str, Sequence[float]]:
    return {name: [row(counted, each) for each in deployments] for name, row in ROWS.items()}


def main() -> None:
    found = table(Counted.now())
    print(f"{'':<40}" + "".join(f"{each.clusters:>10} clusters" for each in DEPLOYMENTS))
    for name, values in found.items():
        print(f"{name:<40}" + "".join(f"{value:>19,.2f}" for value in values))


if __name__ == "__main__":
    main()
