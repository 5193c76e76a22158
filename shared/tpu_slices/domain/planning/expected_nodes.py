"""Which nodes of a self-managed cluster are a slice's hosts, and what they are labelled with. Pure."""

from __future__ import annotations

from dataclasses import replace

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.node_groups import NodesExpected
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.planning.joining import labels_of_host
from tpu_slices.domain.records.slices import SliceRecord

_AWAITED = frozenset(
    {
        Reason.ADOPTED,
        Reason.AWAITING_CAPACITY,
        Reason.HOSTS_JOINING,
        Reason.HOSTS_LOST,
        Reason.PREEMPTED,
        Reason.UNDER_MAINTENANCE,
        Reason.POOL_BUSY,
    }
)


def nodes_expected(record: SliceRecord, settings: ClusterSettings) -> NodesExpected | None:
    """Return which nodes are to come, or come back; None: none are, or GKE labels them.

    A host that joined by our startup script has its labels from the start, any other gets them from the relay: those of
    an adopted slice, too. Where hosts may come to other namespaces their key and namespace change: these it gets apart.
    """
    spec = record.made_as
    if not settings.self_managed or spec is None or record.seen_as not in _AWAITED:
        return None
    spec = replace(spec, key="") if spec.crosses else spec
    pools = record.pinned_settings or settings.pools
    labels = labels_of_host(record.named_for, record.attempt, spec, pools, record.pool)
    project = settings.path.split("/")[1]
    return NodesExpected(
        slice_id=record.maker,
        attempt=record.attempt,
        instances=f"gce://{project}/{spec.zone}/{record.pool}-",
        labels=tuple(labels.items()),
    )
