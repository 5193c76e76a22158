"""What records say of chip-hours is what GKE would bill, and what pods used, whatever happens to slices."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.builders import settings as cluster_settings
from tests.simulation.drawn import a_plot
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.slices import PoolName
from tpu_slices.domain.records.usage import Use
from tpu_slices.domain.reporting.timeline import held, totals
from tpu_slices_cli.simulate.telling import as_json
from tpu_slices_simulator.fakes.gke import FakePool
from tpu_slices_simulator.outcome import CountedSimulation
from tpu_slices_simulator.story import Fault, Kind, Plot, Story

MINUTE = timedelta(minutes=1)
NOTICED_WITHIN = MINUTE
"""How far records and this count may be apart when hosts or pods come or go: it counts a minute as a whole."""
GIVEN_UP_WITHIN = Limits().hosts_timeout + 5 * MINUTE
"""For how long hosts that came and went before anybody told of them count as if they were on their way."""
SHARES = {
    Kind.STOCKOUT: 1.0,
    Kind.QUOTA: 0.5,
    Kind.CREATIONS_FAIL: 0.5,
    Kind.DELETIONS_FAIL: 0.5,
    Kind.OPERATIONS_SLOW: 0.5,
    Kind.HOSTS_UNUSABLE: 0.5,
    Kind.POOLS_REPAIRED: 0.02,
    Kind.POOLS_UPGRADED: 0.02,
    Kind.POOLS_DELETED: 0.01,
    Kind.HOSTS_PREEMPTED: 0.02,
    Kind.HOSTS_DIE: 0.02,
    Kind.HOSTS_TAKEN_BACK: 0.02,
    Kind.LEADERS_LEAVE: 0.02,
}
"""Faults of GKE, of machines and of Jobs; while the relay is silent, records cannot know better."""


class Metered(CountedSimulation):
    """A simulation that counts minute by minute what stands in GKE, and what of it has pods."""

    def __init__(self, story: Story) -> None:
        super().__init__(story)
        self.held, self.useful, self.unsure = timedelta(), timedelta(), timedelta()
        self._before: Mapping[PoolName, tuple[int, bool]] = {}
        self._long: frozenset[PoolName] = frozenset()
        """The pools whose hosts have stood for more than a minute."""

    def _a_minute(self) -> None:
        super()._a_minute()
        used = {name.rpartition("-")[0] for name in self.cluster.used_nodes()}
        now = {pool.name: (chips(pool), pool.name in used) for pool in self.backend.pools.values() if chips(pool)}
        self.held += sum(count for count, _ in now.values()) * MINUTE
        self.useful += sum(count for count, is_used in now.values() if is_used) * MINUTE
        changed = now.items() ^ self._before.items()
        self.unsure += sum(count for _, (count, _) in changed) * NOTICED_WITHIN
        brief = self._before.keys() - now.keys() - self._long
        self.unsure += sum(self._before[each][0] for each in brief) * GIVEN_UP_WITHIN
        self._long = frozenset(now.keys() & self._before.keys())
        self._before = now


def chips(pool: FakePool) -> int:
    """Return the chips of a pool's hosts that stand."""
    if not pool.hosts_joined or pool.order is None or pool.order.spec is None:
        return 0
    return pool.order.spec.chips


def a_story(seed: int, plots: tuple[Plot, ...], faults: tuple[Fault, ...], minutes: int = 240) -> Story:
    return Story(seed=seed, minutes=minutes, settings=cluster_settings(), jobsets=plots, faults=faults)


@st.composite
def stories(draw: st.DrawFn) -> Story:
    plots = tuple(
        a_plot(
            f"job-{number}",
            draw(st.integers(0, 90)),
            slices=draw(st.integers(1, 2)),
            spot=kind == "spot",
            flex_start=kind == "flex",
            runs=draw(st.none() | st.integers(10, 120)),
            ends=draw(st.none() | st.integers(100, 200)),
        )
        for number, kind in enumerate(draw(st.lists(st.sampled_from(["", "spot", "flex"]), min_size=1, max_size=3)))
    )
    faults = tuple(
        Fault(kind=kind, at=draw(st.integers(0, 150)), lasts=draw(st.integers(10, 90)), share=SHARES[kind])
        for kind in draw(st.lists(st.sampled_from(sorted(SHARES)), max_size=3))
    )
    return a_story(draw(st.integers(0, 10_000)), plots, faults)


OUT_OF_STOCK = a_story(1, (a_plot("job", 0, runs=60),), (Fault(kind=Kind.STOCKOUT, at=0, lasts=150),))
PREEMPTED = a_story(2, (a_plot("job", 0, spot=True),), (Fault(kind=Kind.HOSTS_PREEMPTED, at=30, lasts=30, share=0.2),))
BRIEF = a_story(
    266,
    (a_plot("preempted", 8, spot=True), a_plot("job", 0)),
    (Fault(kind=Kind.HOSTS_PREEMPTED, at=0, lasts=11, share=0.02),),
)
"""Hosts that are preempted in the minute in which they join."""


@pytest.mark.slow
@settings(max_examples=12)
@given(stories())
@example(OUT_OF_STOCK)
@example(PREEMPTED)
@example(BRIEF)
def test_records_have_the_chip_hours_that_gke_would_bill_and_that_pods_used(story: Story) -> None:
    simulation = Metered(story)
    simulation.play()
    sums = totals(simulation.courses)
    assert not any(each.uncounted for each in simulation.courses)
    assert abs(held(sums) - simulation.held) <= simulation.unsure, (held(sums), simulation.held)
    assert abs(sums[Use.USEFUL] - simulation.useful) <= simulation.unsure, (sums[Use.USEFUL], simulation.useful)


def test_creations_that_end_for_lack_of_hosts_hold_nothing() -> None:
    simulation = Metered(a_story(1, OUT_OF_STOCK.jobsets, OUT_OF_STOCK.faults, minutes=150))
    simulation.play()
    sums = totals(simulation.courses)
    assert held(sums) == simulation.held == timedelta()
    assert sums[Use.WAITING] > 140 * 16 * MINUTE


def test_a_simulation_tells_of_all_workloads_what_it_tells_of_each() -> None:
    simulation = Metered(OUT_OF_STOCK)
    simulation.play()
    told = as_json(simulation)
    assert told["chip_hours"] == told["workloads"][0]["chip_hours"]
    assert told["chip_hours"]["held"] > told["chip_hours"]["useful"] >= 15
