"""docs/scale.md has what deployments use, computed of what is counted, and what follows from the limits."""

from __future__ import annotations

import pytest

from infra.local import messaging
from tests.bench.counted import scale
from tests.house.sources import ROOT

PAGE = (ROOT / "docs" / "scale.md").read_text()
TOLERANCE = 0.2
"""As of docs/cost.md: the page need not be edited for every read more or less."""


@pytest.mark.slow
def test_the_page_has_what_deployments_use() -> None:
    lines = (line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("|"))
    told = {name.strip(): [float(each.replace(",", "")) for each in cells] for name, *cells in lines if _numbers(cells)}
    found = scale.table(scale.Counted.now())
    assert told.keys() == found.keys()
    assert told == {name: pytest.approx(values, rel=TOLERANCE, abs=0.01) for name, values in found.items()}


def _numbers(cells: list[str]) -> bool:
    return bool(cells) and all(each.strip().replace(",", "").replace(".", "").isdigit() for each in cells)


def test_a_cluster_has_six_topics_of_its_own_and_the_project_three() -> None:
    assert scale.topics(scale.Deployment(clusters=1)) == len(messaging.read().topics)
    assert scale.topics(scale.Deployment(clusters=11)) == 6 * 11 + 3


def test_operations_follow_from_lives_and_are_spread_over_the_clusters() -> None:
    one = scale.Deployment(clusters=1, lives=30)
    assert scale.operations(one) == 5
    assert scale.operations(scale.Deployment(clusters=10, lives=300)) == 5


def test_gke_calls_of_a_project_are_those_of_as_many_clusters_as_it_has() -> None:
    few, many = scale.Deployment(clusters=10, lives=600), scale.Deployment(clusters=40, lives=2_400)
    assert (scale.gke_calls(few), scale.gke_calls(many)) == (10 + 50, 20 + 100)
