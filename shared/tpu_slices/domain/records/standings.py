"""What the records say of live workloads, to compare it with what the relay knows. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.slices import WorkloadUid
from tpu_slices.domain.model.texts import digest


@dataclass(frozen=True, slots=True)
class Standing:
    """What a live workload's record says of it, as far as it takes to compare it with what the relay knows."""

    digest: int
    """See `standing`."""
    active: bool

    @classmethod
    def of(cls, digest: Any, state: object) -> Self:
        """Return what these fields of a document say; `digest`: None if it has none."""
        return cls(digest or 0, state == WorkloadState.ACTIVE)


def standing(uid: WorkloadUid, *told: object, notify: str = "") -> int:
    """Return a digest of what a workload's last WorkloadChanged said, as the relay and the record know it.

    `told`: its state, queue, template error and groups. An annotation `notify` that is not there counts for nothing: an
    earlier relay tells of none.
    """
    parts = (uid, *told, *([notify] if notify else []))
    return digest("\n".join("" if each is None else str(each) for each in parts)) or 1
