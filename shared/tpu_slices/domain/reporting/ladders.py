"""What is told of a workload on a ladder: why it asks for slices where it does, and what it passes over. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from tpu_slices.domain.model.reasons import SERVED
from tpu_slices.domain.model.texts import clock, shortened
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import WorkloadRecord

_LONG = 200
"""Characters of why a rung is passed over."""


def ladders_told(workload: WorkloadRecord, records: Iterable[SliceRecord], now: datetime) -> str:
    """Return why the slices of a workload that are waited for are asked for where they are; empty: as it began."""
    specs = [each.spec for each in records if each.reason not in SERVED and each.spec is not None]
    ladders = {each.ladder: each for each in specs if each.ladder}
    return " ".join(text for name, spec in sorted(ladders.items()) for text in _of(workload, name, spec.rungs, now))


def _of(workload: WorkloadRecord, name: str, rungs: tuple[object, ...], now: datetime) -> Iterator[str]:
    on = workload.ladders.get(name)
    if on is None:
        return
    if on.message:
        yield f"{on.message[0].upper()}{on.message[1:]}."
    for each in on.passed:
        if now < each.until and each.rung != on.rung and each.message not in on.message:
            told = f"Rung {each.rung + 1} of {len(rungs)} is passed over until {clock(each.until, now)}"
            yield f"{told}: {shortened(each.message, _LONG)}."
