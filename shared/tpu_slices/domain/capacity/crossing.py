"""Whether a slice that is kept warm may come to a claim of another namespace. Pure.

Two things are decided: when it is made, whether its hosts may ever come to another namespace; and when it is warm,
whether a claim gets it. The first is written into the labels of its pool, so that no later setting, relay or record
lets other slices change namespaces (`planning.keys`).
"""

from __future__ import annotations

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.records.heartbeats import RelayHeard
from tpu_slices.domain.records.slices import SliceRecord


def crosses(record: SliceRecord, settings: ClusterSettings, relay: RelayHeard) -> bool:
    """Return whether the hosts of a slice that is to be made may come to other namespaces later.

    | the slice                                                                        | they may |
    |----------------------------------------------------------------------------------|----------|
    | is of a namespace whose slices no setting keeps for all                          | no       |
    | is a spare, or that of a TPUNodeGroup or a LeaderWorkerSet                       | no       |
    | is warm for nobody: on flex-start hosts, or labelled for one Job                 | no       |
    | has no key, or the relay does not say on hosts for which namespace they are, or  | no       |
    | nothing pins pods                                                                | no       |
    | else                                                                             | yes      |
    """
    warm, _ = settings.warm_in(record.owner.namespace)
    spec = record.spec
    if warm is None or not warm.is_for_all or spec is None or record.owner.kind.stays:
        return False
    keeps = spec.capacity.max_run_duration is None and not spec.is_flex_start and not spec.exclusive_nodes
    return keeps and bool(spec.key) and relay.hands_across


def may_cross(claim: SliceRecord, slice_: SliceRecord, settings: ClusterSettings) -> bool:
    """Return whether a slice that is kept warm may come to a claim of another namespace, as both were planned."""
    spec, made_as = claim.spec, slice_.made_as
    warm, _ = settings.warm_in(slice_.owner.namespace)
    return bool(spec and made_as and spec.takes and made_as.crosses and warm and warm.is_for_all)
