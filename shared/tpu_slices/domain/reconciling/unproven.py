"""Pools that have our names and nothing on them says what they were made for. Pure.

| the record of the slice that the name is of       | the pool is                                                      |
|---------------------------------------------------|------------------------------------------------------------------|
| knows it as ours, and its attempt is the current  | ours: its labels are put back once the slice is reconciled       |
| or a terminating one                              |                                                                  |
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
    nameless = (pool for pool in pools if pool.job is None and pool.slice_id not in unreadable)
    return tuple(sorted(pool.name for pool in nameless if not is_known(pool, slices.get(pool.slice_id))))


def is_known(pool: PoolSeen, record: SliceRecord | None) -> bool:
    """Return whether a record knows a pool as ours."""
    known = record.numbered(pool.attempt) if record is not None else None
    return known is not None and known.ours_since is not None
