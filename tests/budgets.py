"""What the tests of each folder may spend, in seconds of a processor, and how a run is held to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from tests.usage import Usage

MARGIN = 4
"""Machines differ twofold in speed, and a processor that others use is slower still."""
LEAST = 15.0
"""Of folders that spend less nobody is told."""
BUDGETS: Mapping[str, Mapping[str, int]] = {
    "test": {
        "tests/bench/counted": 60,
        "tests/cli": 27,
        "tests/contracts": 50,
        "tests/domain/reconciling": 30,
        "tests/house": 20,
        "tests/infra/environments": 24,
        "tests/journeys": 45,
        "tests/journeys/brake": 30,
        "tests/journeys/crashes": 18,
        "tests/journeys/node_groups": 16,
        "tests/journeys/waits": 25,
        "infra/standins/tpu_standins/tests/compute": 21,
        "tests/local/demo": 45,
        "tests/relay/attack": 19,
        "tests/relay/telling": 20,
        "tests/simulation": 66,
        "tests/simulation/capacity": 16,
        "tests/wire": 25,
    },
    "real": {
        "tests/bench/counted": 40,
        "tests/browser": 34,
        "tests/chaos": 65,
        "tests/cluster": 150,
        "tests/examples": 200,
        "tests/examples/training": 34,
        "tests/functions": 30,
        "tests/infra/builds": 22,
        "tests/infra/gcloud": 84,
        "tests/kubernetes": 150,
        "tests/kubernetes/admission": 100,
        "tests/kubernetes/queues": 121,
        "tests/local/demo": 86,
        "tests/local/stack": 115,
        "tests/local/stack/capacity": 40,
        "tests/local/up": 87,
        "tests/relay": 25,
        "tests/relay/attack": 28,
    },
}
"""By suite and folder, as whole runs on two busy processors measured them; others spend less than LEAST."""


def by_folder(usages: Iterable[Usage]) -> Mapping[str, float]:
    """Return what the tests of each folder have spent, the dearest first."""
    spent = defaultdict[str, float](float)
    for each in usages:
        spent[each.folder] += each.cpu
    return dict(sorted(spent.items(), key=lambda each: -each[1]))


def over_budget(suite: str, usages: Iterable[Usage]) -> list[str]:
    """Return a line for each folder that has spent more than MARGIN times its budget in a run of a suite."""
    budgets, spent = BUDGETS.get(suite), by_folder(usages)
    if budgets is None:
        return []
    most = {folder: MARGIN * max(LEAST, budgets.get(folder, 0)) for folder in spent}
    return [
        f"{folder} spent {seconds:.0f} s of a processor: more than {MARGIN} times its budget (tests/budgets.py)"
        for folder, seconds in sorted(spent.items())
        if seconds > most[folder]
    ]
