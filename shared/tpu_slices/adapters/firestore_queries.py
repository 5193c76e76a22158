"""Every query on the records, as data: `firestore` runs them, and infra/firestore.indexes.json has their indexes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tpu_slices.wire.documents import (
    CHIPS_BOUGHT,
    CHIPS_HELD,
    CHIPS_IDLE,
    CHIPS_LINE,
    DEMAND_DIGEST,
    DUE_QUEUE,
    GOES_AT,
    HEARS,
    HOSTS_DIGEST,
    HOSTS_RESERVED,
    MIRROR_DIGEST,
    OFFERS,
    OFFERS_TO_ANY,
    PAID_SINCE,
    REPORT_QUEUE,
    RESERVED_POOL,
    SLOT_POOL,
    SLOT_QUEUE,
    STANDING,
    TELLS,
    WANTS,
    WANTS_OF_ANY,
)

Operator = Literal["==", "in", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query of a collection; the values to compare with are passed when it is run."""

    collection: str
    where: tuple[tuple[str, Operator], ...] = ()
    order: str
    """The field that sorts the results, ascending; `__name__` is the document's own name."""
    then: tuple[str, ...] = ()
    """The fields that sort results with the same value of it, ascending."""

    @property
    def index(self) -> tuple[str, ...]:
        """Return the fields of the composite index that it needs, all ascending; none if automatic indexes suffice.

        Source: Firestore's guide to index types. The fields compared for equality come first, then the sort field,
        which a range must be on; every index ends with the document's name without listing it.
        """
        asked = dict.fromkeys((*(field for field, _ in self.where), self.order, *self.then))
        fields = tuple(field for field in asked if field != "__name__")
        return fields if len(fields) > 1 else ()

    @property
    def own(self) -> str:
        """Return the one field that it needs an index of; "" if it needs another index, or none."""
        asked = {*(field for field, _ in self.where), self.order, *self.then} - {"__name__"}
        return asked.pop() if len(asked) == 1 else ""


CLAIMED = Query(collection="slices", where=(("claimed_by", "in"),), order="claimed_by")
_DUE: tuple[tuple[str, Operator], ...] = (("cluster", "=="), ("next_reconcile_at", "<="))
TOLD_IN_CLUSTER = Query(
    collection="workloads", where=(("cluster", "=="), ("state", "in")), order=DEMAND_DIGEST, then=(STANDING,)
)
DEMAND = Query(collection="workloads", where=(("cluster", "=="), (DEMAND_DIGEST, ">")), order=DEMAND_DIGEST)
CHANGED_SLICES = Query(collection="slices", where=(("cluster", "=="), ("changed_at", ">")), order="changed_at")
DUE_SLICES = Query(collection="slices", where=_DUE, order="next_reconcile_at")
DUE_QUEUES = Query(
    collection="slices", where=(("cluster", "=="), (DUE_QUEUE, ">")), order=DUE_QUEUE, then=("next_reconcile_at",)
)
DUE_IN_NAMESPACE = Query(
    collection="slices",
    where=(("cluster", "=="), (DUE_QUEUE, "=="), ("next_reconcile_at", "<=")),
    order="next_reconcile_at",
)
REPORT_QUEUES = Query(
    collection="workloads",
    where=((REPORT_QUEUE, ">"), (REPORT_QUEUE, "<")),
    order=REPORT_QUEUE,
    then=("next_report_at",),
)
REPORTS_DUE = Query(collection="workloads", where=(("cluster", "=="), ("next_report_at", "<=")), order="next_report_at")
DUE_REPORTS = Query(
    collection="workloads", where=((REPORT_QUEUE, "=="), ("next_report_at", "<=")), order="next_report_at"
)
QUEUED_SLICES = Query(collection="slices", where=(("cluster", "=="), ("phase", "==")), order="since")
AWAITING_SLOT = Query(
    collection="slices",
    where=(("cluster", "=="), ("slot_awaited.number", "==")),
    order="slot_awaited.since",
)
DELETIONS_AWAITING_SLOT = Query(
    collection="slices",
    where=(("cluster", "=="), ("slot_awaited.operation", "=="), ("slot_awaited.number", "==")),
    order="slot_awaited.since",
)
CREATIONS_AWAITING_SLOT = Query(
    collection="slices",
    where=(("cluster", "=="), (SLOT_QUEUE, ">"), (SLOT_QUEUE, "<")),
    order=SLOT_QUEUE,
    then=("slot_awaited.since",),
)
CREATIONS_IN_QUEUE = Query(
    collection="slices",
    where=(("cluster", "=="), (SLOT_QUEUE, "=="), (SLOT_POOL, ">")),
    order=SLOT_POOL,
    then=("slot_awaited.since",),
)
CREATIONS_IN_POOL = Query(collection="slices", where=(("cluster", "=="), (SLOT_POOL, "==")), order="slot_awaited.since")
RESERVED = Query(collection="slices", where=(("cluster", "=="), (RESERVED_POOL, "==")), order=HOSTS_RESERVED)
KEPT_SLICES = Query(collection="slices", where=(("cluster", "=="), ("phase", "in")), order="__name__")
CLUSTERS_WITH_SLICES = Query(collection="slices", where=(("phase", "in"), ("cluster", ">")), order="cluster")
EVERY_SLICE = Query(collection="slices", where=(("cluster", "=="),), order="__name__")
LIVE_WORKLOADS = Query(collection="workloads", where=(("cluster", "=="), ("state", "in")), order="__name__")
UNCONFIRMED_IN_CLUSTER = Query(
    collection="slices",
    where=(("cluster", "=="), ("unconfirmed_end.counted", "=="), ("unconfirmed_end.found_at", ">=")),
    order="unconfirmed_end.found_at",
)
UNCONFIRMED_IN_NAMESPACE = Query(
    collection="slices",
    where=(("cluster", "=="), ("owner.namespace", "=="), ("unconfirmed_end.found_at", ">=")),
    order="unconfirmed_end.found_at",
)
SLOTS = Query(collection="slots", where=(("cluster", "=="),), order="number")
CLUSTERS_AT = Query(collection="clusters", where=(("path", "=="),), order="__name__")
CLUSTERS = Query(collection="clusters", order="__name__")
SLICES_IN_PHASE = Query(collection="slices", where=(("cluster", "=="), ("phase", "==")), order="__name__")
NAMESPACE_IN_PHASE = Query(
    collection="slices", where=(("cluster", "=="), ("owner.namespace", "=="), ("phase", "==")), order="__name__"
)
SLICES_FOR_REASONS = Query(collection="slices", where=(("cluster", "=="), ("reason", "in")), order="since")
WANTING = Query(collection="slices", where=((WANTS, "=="),), order="claim.waits_since")
WANTING_OF_ANY = Query(collection="slices", where=((WANTS_OF_ANY, "=="),), order="claim.waits_since")
OFFERED = Query(collection="slices", where=((OFFERS, "=="),), order=GOES_AT)
OFFERED_TO_ANY = Query(collection="slices", where=((OFFERS_TO_ANY, "=="),), order=GOES_AT)
AWAITING_CHIPS = Query(
    collection="workloads",
    where=((CHIPS_LINE, ">="), (CHIPS_LINE, "<")),
    order=CHIPS_LINE,
    then=("chips_awaited_since",),
)
HEARING = Query(collection="slices", where=((HEARS, "=="),), order="__name__")
TOLD_OF_WORKLOAD = Query(
    collection="slices",
    where=((TELLS, ">"), (TELLS, "<")),
    order=TELLS,
    then=("replicated_job", "job_index"),
)
TOLD_ALIKE = Query(collection="slices", where=((TELLS, "=="),), order="replicated_job", then=("job_index",))
PAID_SLICES = Query(collection="slices", where=(("cluster", "=="), (PAID_SINCE, ">")), order=PAID_SINCE)

BOUGHT_IN_CLUSTER = Query(collection="slices", where=(("cluster", "=="),), order=CHIPS_BOUGHT)
BOUGHT_IN_NAMESPACE = Query(
    collection="slices", where=(("cluster", "=="), ("owner.namespace", "==")), order=CHIPS_BOUGHT
)
HELD_IN_CLUSTER = Query(collection="slices", where=(("cluster", "=="),), order=CHIPS_HELD, then=(CHIPS_IDLE,))
HOSTS_IN_CLUSTER = Query(collection="slices", where=(("cluster", "=="),), order=HOSTS_DIGEST)
_SHOWN: tuple[tuple[str, Operator], ...] = (("cluster", "=="), (MIRROR_DIGEST, ">"))
SLICES_SHOWN = Query(collection="slices", where=_SHOWN, order=MIRROR_DIGEST)
WORKLOADS_SHOWN = Query(collection="workloads", where=_SHOWN, order=MIRROR_DIGEST)

QUERIES = (
    CLAIMED,
    TOLD_IN_CLUSTER,
    DEMAND,
    CHANGED_SLICES,
    DUE_SLICES,
    DUE_QUEUES,
    DUE_IN_NAMESPACE,
    REPORT_QUEUES,
    REPORTS_DUE,
    DUE_REPORTS,
    QUEUED_SLICES,
    AWAITING_SLOT,
    DELETIONS_AWAITING_SLOT,
    CREATIONS_AWAITING_SLOT,
    CREATIONS_IN_QUEUE,
    CREATIONS_IN_POOL,
    RESERVED,
    KEPT_SLICES,
    CLUSTERS_WITH_SLICES,
    EVERY_SLICE,
    LIVE_WORKLOADS,
    UNCONFIRMED_IN_CLUSTER,
    UNCONFIRMED_IN_NAMESPACE,
    SLOTS,
    CLUSTERS,
    CLUSTERS_AT,
    SLICES_IN_PHASE,
    NAMESPACE_IN_PHASE,
    SLICES_FOR_REASONS,
    PAID_SLICES,
    WANTING,
    WANTING_OF_ANY,
    OFFERED,
    OFFERED_TO_ANY,
    AWAITING_CHIPS,
    HEARING,
    TOLD_OF_WORKLOAD,
    TOLD_ALIKE,
    BOUGHT_IN_CLUSTER,
    BOUGHT_IN_NAMESPACE,
    HELD_IN_CLUSTER,
    HOSTS_IN_CLUSTER,
    SLICES_SHOWN,
    WORKLOADS_SHOWN,
)

EXPIRING = ("workloads", "slices", "rejected")
"""The collections whose documents Firestore deletes once their `expire_at` has passed."""

INDEXED: Mapping[str, tuple[str, ...]] = {
    "accepted": (),
    "clusters": ("path",),
    "limiters": (),
    "rejected": (),
    "slices": ("cluster", "claimed_by", "hears"),
    "workloads": ("owner",),
}
"""The fields with an index of their own, in collections where no other field has one.

Those of queries on one field, and `owner`, by which people look in the console. If all were indexed, as Firestore does
by itself, each change of a document would be written to an index for each of its fields, and for each entry of a map.
"""
