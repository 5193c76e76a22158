"""The live table: a row for each slice, a line for each step, and what changed between two moments. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from infra.local.demo.steps import Progress
from infra.local.demo.view import View
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.records.slices import SliceRecord

COLUMNS = ("workload", "slice", "phase", "reason", "hosts", "elapsed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A slice; `hosts` as usable/needed, `elapsed` from the record's creation until GONE."""

    workload: str
    slice_id: str
    phase: Phase
    reason: str
    hosts: str
    elapsed: str

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.workload, self.slice_id, self.phase.value, self.reason, self.hosts, self.elapsed)

    @property
    def state(self) -> tuple[str, ...]:
        """Return every cell but the elapsed time."""
        return self.cells[:-1]


def rows(view: View, now: datetime) -> tuple[Row, ...]:
    ordered = sorted(view.slices, key=lambda record: (record.created_at, record.id))
    return tuple(_row(record, now) for record in ordered)


def _row(record: SliceRecord, now: datetime) -> Row:
    end = record.since if record.phase is Phase.GONE else now
    needed = record.spec.hosts if record.spec else None
    return Row(
        workload=record.owner.name,
        slice_id=record.name,
        phase=record.phase,
        reason=record.reason.value,
        hosts=f"{record.current.hosts.usable}/{needed}" if needed else "-",
        elapsed=f"{max(0.0, (end - record.created_at).total_seconds()):.0f} s",
    )


def changed(before: Sequence[Row], after: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows that are new or have changed, apart from the elapsed time."""
    known = {row.slice_id: row.state for row in before}
    return tuple(row for row in after if known.get(row.slice_id) != row.state)


def status(progress: Progress) -> str:
    """Return the status of a step in one line."""
    step = f"({progress.step.letter}) {progress.step.title}"
    if progress.failure is not None:
        return f"✗ {step}: {progress.failure}"
    if progress.over:
        return f"✓ {step}"
    return f"· {step}: waiting until {progress.waits_for}" if progress.waits_for else f"· {step}"


def news(before: Sequence[Progress], after: Sequence[Progress], started: float) -> Iterator[str]:
    """Yield what happened in the steps between two moments, each item once; times since `started`."""
    for old, new in zip(before, after, strict=True):
        letter = new.step.letter
        for at, what in new.seen[len(old.seen) :]:
            yield f"{at - started:5.1f} s  ({letter}) {what}".replace("\n", f"\n{'':9}")
        if new.happened and not old.happened:
            yield f"{new.since - started:5.1f} s  ({letter}) ✓ {new.step.title}"
        if new.failure is not None and old.failure is None:
            yield f"         ({letter}) ✗ {new.failure}"
