"""Every query on the records, as data: `firestore` runs them, and infra/firestore.indexes.json has their indexes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tpu_slices.wire.documents import CHIPS_HELD

Operator = Literal["==", "in", "<="]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query of a collection; the values to compare with are passed when it is run."""

    collection: str
    where: tuple[tuple[str, Operator], ...] = ()
    order: str
    """The field that sorts the results, ascending; `__name__` is the document's own name."""

    @property
    def index(self) -> tuple[str, ...]:
        """Return the fields of the composite index that it needs, all ascending; none if automatic indexes suffice.

        Source: Firestore's guide to index types. The fields compared for equality come first, then the sort field,
        which a range must be on; every index ends with the document's name without listing it.
        """
        asked = dict.fromkeys((*(field for field, _ in self.where), self.order))
        fields = tuple(field for field in asked if field != "__name__")
        return fields if len(fields) > 1 else ()


DUE_SLICES = Query(collection="slices", where=(("next_reconcile_at", "<="),), order="next_reconcile_at")
DUE_WORKLOADS = Query(collection="workloads", where=(("next_reconcile_at", "<="),), order="next_reconcile_at")
DUE_REPORTS = Query(collection="workloads", where=(("next_report_at", "<="),), order="next_report_at")
QUEUED_SLICES = Query(collection="slices", where=(("cluster", "=="), ("phase", "==")), order="since")
KEPT_SLICES = Query(collection="slices", where=(("cluster", "=="), ("phase", "in")), order="__name__")
EVERY_SLICE = Query(collection="slices", where=(("cluster", "=="),), order="__name__")
LIVE_WORKLOADS = Query(collection="workloads", where=(("cluster", "=="), ("state", "in")), order="__name__")
SLOTS = Query(collection="slots", where=(("cluster", "=="),), order="number")
CLUSTERS = Query(collection="clusters", order="__name__")

HELD_IN_CLUSTER = Query(collection="slices", where=(("cluster", "=="),), order=CHIPS_HELD)
HELD_IN_NAMESPACE = Query(collection="slices", where=(("cluster", "=="), ("owner.namespace", "==")), order=CHIPS_HELD)

QUERIES = (
    DUE_SLICES,
    DUE_WORKLOADS,
    DUE_REPORTS,
    QUEUED_SLICES,
    KEPT_SLICES,
    EVERY_SLICE,
    LIVE_WORKLOADS,
    SLOTS,
    CLUSTERS,
    HELD_IN_CLUSTER,
    HELD_IN_NAMESPACE,
)

EXPIRING = ("workloads", "slices", "rejected")
"""The collections whose documents Firestore deletes once their `expire_at` has passed."""

UNINDEXED: Mapping[str, tuple[str, ...]] = {
    "accepted": ("limits", "pod_to_node_labels", "policy", "pools", "reservation_zones"),
    "clusters": ("limits", "note", "pod_to_node_labels", "policy", "pools", "reservation_zones"),
    "limiters": ("shortages",),
    "workloads": ("report", "demand"),
    "rejected": ("data", "error"),
    "slices": ("terminating", "note", "occupants", "pinned_settings", "message", "spec", "transitions", "refusal"),
    "heartbeats": ("uids",),
}
"""Fields that no query uses, by collection.

If they were indexed, each entry of a map or an array would cost index writes with every change of its document.
"""
