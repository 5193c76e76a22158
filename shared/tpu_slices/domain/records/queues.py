"""The queues in which slices wait: for a slot, and to be looked at; and workloads: for a report, and for chips.

Their names are derived, and stored for queries.
"""

from __future__ import annotations

from tpu_slices.domain.model.slices import ClusterId, SliceSpec
from tpu_slices.domain.records.awaited import PoolOperation
from tpu_slices.domain.records.limiters import CapacityPool
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.workloads import ReportQueue

SHORT = "~"
"""How the names of queues begin whose capacity pools were short when it was last tried. No namespace begins so."""
_BEHIND_ALL = "\uffff"
FIRST_QUEUES, SHORT_QUEUES = ("", SHORT), (SHORT, f"{SHORT}{_BEHIND_ALL}")
"""Between these are the names of all queues of a kind."""


def capacity_pool_of(spec: SliceSpec) -> CapacityPool:
    return CapacityPool(f"{spec.zone}/{spec.accelerator}/{spec.capacity.reservation or spec.capacity.kind}")


def slot_queue(record: SliceRecord) -> str | None:
    """Return the queue in which a creation waits for a slot; None: it has one, or waits for none.

    | a creation                                          | waits in the queue |
    |-----------------------------------------------------|--------------------|
    | that lacks a slot alone                             | `NAMESPACE`        |
    | that waits for its turn, as its capacity pool is    | `~NAMESPACE`       |
    | short: it hides none that could start               |                    |
    """
    if slot_pool(record) is None or record.slot_awaited is None:
        return None
    return f"{SHORT if record.slot_awaited.shortage else ''}{record.owner.namespace}"


def slot_pool(record: SliceRecord) -> CapacityPool | None:
    """Return the capacity pool of a creation that waits for a slot; None: it has one, or waits for none."""
    awaited = record.slot_awaited
    if awaited is None or awaited.operation is not PoolOperation.CREATE or awaited.number is not None:
        return None
    return capacity_pool_of(record.spec) if record.spec else None


def reserved_pool(record: SliceRecord) -> CapacityPool | None:
    """Return the capacity pool of a slice that has hosts of a reservation, or is to have some; None: it has none."""
    made = record.made_as
    return capacity_pool_of(made) if made and made.capacity.reservation and record.chips_bought else None


def hosts_reserved(record: SliceRecord) -> int:
    """Return how many hosts of its reservation a slice has, or is to have."""
    return record.made_as.hosts if record.made_as and reserved_pool(record) else 0


def due_queue(record: SliceRecord) -> str | None:
    """Return the queue in which a slice waits to be looked at: its namespace; None: it is settled."""
    return record.owner.namespace if record.next_reconcile_at is not None else None


def queue_name(queue: ReportQueue) -> str:
    """Return the queue as it is stored: sorted, first reports of a cluster come before renewed ones."""
    return f"{queue.cluster}/{'first' if queue.first else 'renewed'}/{queue.namespace}"


def chips_line(cluster: ClusterId, namespace: str) -> str:
    """Return what sorts the workloads that wait for chips: by namespace within a cluster."""
    return f"{cluster} {namespace}"


def queue_named(name: str) -> ReportQueue:
    cluster, _, rest = name.partition("/")
    kind, _, namespace = rest.partition("/")
    return ReportQueue(ClusterId(cluster), namespace, first=kind == "first")


def queues_of(cluster: ClusterId) -> tuple[str, str]:
    """Return the bounds between which the names of the cluster's queues are."""
    return f"{cluster}/", f"{cluster}/\uffff"
