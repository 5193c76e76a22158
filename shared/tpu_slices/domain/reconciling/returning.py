"""What is known of hosts that are away and come back. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from tpu_slices.domain.model.observations import Busy, Cause, Running
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.vendors import GKE, Vendor
from tpu_slices.domain.reconciling.case import Situation
from tpu_slices.domain.records.returning import LATE_AFTER, Returning

_REASONS: Mapping[Cause, Reason] = MappingProxyType(
    {
        Cause.UPGRADE: Reason.GKE_UPGRADES,
        Cause.REPAIR: Reason.GKE_REPAIRS,
        Cause.WORK: Reason.POOL_BUSY,
        Cause.MAINTENANCE: Reason.UNDER_MAINTENANCE,
        Cause.PREEMPTED: Reason.PREEMPTED,
    }
)
AWAY = frozenset(_REASONS.values())
"""The reasons of slices whose hosts are known to come back."""


def reason_of(cause: Cause, vendor: Vendor) -> Reason:
    """Return the reason for a cause; on Compute Engine nothing is GKE's doing."""
    return Reason.POOL_BUSY if cause in {Cause.REPAIR, Cause.UPGRADE} and vendor is not GKE else _REASONS[cause]


def returning(case: Situation) -> Returning | None:
    """Return what is known of the way back of the current pool's hosts; None: none are away, or nothing is known.

    | the pool, some of whose hosts are not usable                         | who brings them back            |
    |----------------------------------------------------------------------|---------------------------------|
    | the vendor works on it                                               | the vendor: UPGRADE, REPAIR, or |
    |                                                                      | WORK if it does not say which   |
    | a host has the label of maintenance that goes on, or had it and its  | Google: MAINTENANCE             |
    | Node is gone since                                                   |                                 |
    | Nodes are gone, and the group still asks for spot hosts              | the group: PREEMPTED            |
    | Nodes are gone, and Compute Engine says that it goes on trying       | the group: WORK                 |
    | none of this, after one of these                                     | nobody any more: it is over     |
    """
    record, before = case.record, case.record.current.returning
    if record.made_as is None or case.whole or case.unfilled or not isinstance(case.seen.pool, Running | Busy):
        return None
    cause = _cause(case)
    if cause is None:
        return replace(before, over_at=before.over_at or case.now) if before is not None else None
    since = _since(case, cause)
    counts_from = before.counts_from if before is not None else since
    return Returning(cause=cause, since=since, counts_from=counts_from, late=case.now - since >= LATE_AFTER[cause])


def _since(case: Situation, cause: Cause) -> datetime:
    """Return since when there has been a cause, which may have been named only later."""
    before, seen = case.record.current.returning, case.seen.pool
    if isinstance(seen, Busy) and seen.began is not None:
        return min(seen.began, case.now)
    return before.since if before is not None and before.cause is cause and before.over_at is None else case.now


def _cause(case: Situation) -> Cause | None:
    record, seen = case.record, case.seen.pool
    before = record.current.returning
    known = before.cause if before is not None and before.over_at is None else None
    if isinstance(seen, Busy):
        return seen.work or (known if known in {Cause.UPGRADE, Cause.REPAIR} else Cause.WORK)
    assert isinstance(seen, Running)
    assert record.made_as is not None
    gone = record.current.hosts.joined < record.made_as.hosts
    if record.current.hosts.maintained or (gone and known is Cause.MAINTENANCE):
        return Cause.MAINTENANCE
    were_there = record.phase is Phase.READY or record.seen_as is Reason.HOSTS_LOST or before is not None
    if not (gone and were_there):
        return None
    if seen.refills:
        return Cause.PREEMPTED
    return Cause.WORK if seen.awaiting else None
