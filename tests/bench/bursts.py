"""Bursts and long queues on the virtual clock: their make-span over the floor, and the processor time of a slice.

Simulated: everything but the production code; a slot that is free is handed on without a message's way.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

from tests.bench.counted.queue import Case, release_behind, serve
from tests.bench.measures import Measure, measure

SECONDS = timedelta(seconds=5)
CASES = (
    Case(jobsets=1, each=256, lasts=SECONDS),
    Case(jobsets=64, operations=9, lasts=SECONDS),
    Case(jobsets=256),
    Case(jobsets=256, operations=9),
    Case(jobsets=256, operations=9, silent=True),
    Case(jobsets=2_000, operations=9, lasts=timedelta(minutes=1)),
)
QUEUED = 5_000


def rows() -> Iterator[Measure]:
    """Yield the minutes until all slices stand, and until all are gone, each over its floor; and what a slice takes."""
    for case in CASES:
        began = time.process_time()
        served = serve(case)
        seconds, floor = (time.process_time() - began) / case.slices, [case.floor / timedelta(minutes=1)]
        sink = ", log sink silent" if case.silent else ""
        name = f"{case.jobsets} x {case.each}, {case.operations} slots, {case.lasts.total_seconds():g} s each{sink}"
        yield measure(f"{name}: stand", "min", [served.makespan / timedelta(minutes=1)], floor)
        yield measure(f"{name}: gone", "min", [served.emptied_in / timedelta(minutes=1)], floor)
        yield measure(f"{name}: of a slice", "ms", [seconds * 1e3])
    released = release_behind(QUEUED).total_seconds()
    yield measure(f"a slice released behind {QUEUED:,} queued", "s", [released])
