"""What the records say of live workloads, to compare it with what the relay knows. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.slices import WorkloadUid


@dataclass(frozen=True, slots=True)
class Standing:
    """What a live workload's record says of it, as far as it takes to compare it with what the relay knows."""

    digest: str
    """See `standing`."""
    active: bool

    @classmethod
    def of(cls, state: object, queue: object, template_error: object, groups: object) -> Self:
        return cls(standing(state, queue, template_error, groups), state == WorkloadState.ACTIVE)


STANDING = ("state", "queue", "template_error", "groups")
"""The fields of a workload's record that make its standing."""


def standing(state: object, queue: object, template_error: object, groups: object) -> str:
    """Return a short digest of what a workload's last WorkloadChanged said, as the relay and the record know it."""
    told = "\n".join("" if each is None else str(each) for each in (state, queue, template_error, groups))
    return hashlib.sha256(told.encode()).hexdigest()[:8]


def digest_of(standings: Mapping[WorkloadUid, str]) -> str:
    """Return the digest of workloads and their standings: equal digests mean equal ones."""
    return hashlib.sha256("\n".join(f"{uid} {standings[uid]}" for uid in sorted(standings)).encode()).hexdigest()[:16]
