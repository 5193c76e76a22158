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
        "tests/adapters": 10,
        "tests/bench": 25,
        "tests/cli": 25,
        "tests/contracts": 40,
        "tests/domain/reconciling": 15,
        "tests/domain/reporting": 10,
        "tests/flows": 10,
        "tests/functions": 10,
        "tests/house": 10,
        "tests/infra": 15,
        "tests/journeys": 20,
        "tests/journeys/crashes": 15,
        "tests/local/compute": 15,
        "tests/relay": 30,
        "tests/simulation": 30,
        "tests/wire": 10,
    },
    "real": {
        "tests/browser": 40,
        "tests/chaos": 90,
        "tests/cluster": 120,
        "tests/examples": 200,
        "tests/examples/training": 25,
        "tests/infra/gcloud": 70,
        "tests/kubernetes": 220,
        "tests/local/demo": 60,
        "tests/local/stack": 60,
        "tests/local/up": 80,
        "tests/relay/attack": 30,
    },
}
"""By suite and folder; tests of folders that have none spend less than LEAST."""


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
