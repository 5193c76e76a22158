"""Pools that have our names and nothing on them says what they were made for. Pure.

| the record of the slice of its name               | the pool is                                                      |
|---------------------------------------------------|------------------------------------------------------------------|
| knows it as ours                                  | ours: its labels are put back once the slice is reconciled       |
| cannot be read                                    | unknown                                                          |
| knows nothing of it, or there is none             | unproven: told at each inventory check, and never touched        |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tpu_slices.domain.model.observations import PoolSeen
from tpu_slices.domain.model.slices import SliceId
from tpu_slices.domain.records.slices import SliceRecord


def unproven(
    pools: Iterable[PoolSeen], slices: Mapping[SliceId, SliceRecord], unreadable: frozenset[str]
) -> tuple[str, ...]:
    """Return the names of the pools that neither they themselves nor a record prove to be ours."""
    nameless = (pool for pool in pools if pool.job is None)
    unknown = (pool for pool in nameless if pool.id not in unreadable)
    return tuple(sorted(each.name for each in unknown if not is_known(slices.get(each.id))))


def is_known(record: SliceRecord | None) -> bool:
    """Return whether the record that has a pool knows it as ours."""
    return record is not None and record.current.ours_since is not None
