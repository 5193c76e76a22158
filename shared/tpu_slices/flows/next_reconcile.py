"""The outbox of a JobSet, `due_at`: its slices are nudged, and only then it is cleared."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from tpu_slices.domain.model.workloads import JobSetRecord
from tpu_slices.flows.retrying import again
from tpu_slices.ports.deps import Desk
from tpu_slices.ports.errors import StaleRecord
from tpu_slices.ports.store import Change


def clear(nudged: JobSetRecord, desk: Desk) -> None:
    """Clear the outbox of a JobSet whose slices were nudged; what was put into it since stays."""
    with suppress(StaleRecord):  # then the sweep nudges once more, and clears
        again(lambda: _once(nudged, desk), desk.clock)


def _once(nudged: JobSetRecord, desk: Desk) -> None:
    stored = desk.store.jobsets(nudged.cluster, [nudged.uid]).get(nudged.uid)
    if stored is not None and stored.value.due_at == nudged.due_at is not None:
        desk.store.commit(Change(stored, replace(stored.value, due_at=None)))
