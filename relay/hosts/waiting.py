"""Which pods wait for hosts, for whose, and why some get none, from Kubernetes' JSON. Pure."""

from __future__ import annotations

from relay.objects import Unserved
from relay.pod_groups import awaited_group, is_untried, why_untried
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.model.reasons import OwnerReason
from tpu_slices.domain.planning.host_labels import GROUP_KEYS
from tpu_slices.wire.device_claims import claimed_chips, why_not_by_claims
from tpu_slices.wire.gangs import gates_of
from tpu_slices.wire.jobsets import condition, strings
from tpu_slices.wire.workloads import Json, chips_of, opted_out


def waits(pod: Json) -> bool:
    """Return whether a v1 Pod waits for hosts: the scheduler finds none, or nothing but its gang holds it."""
    return cannot_be_scheduled(pod) or (_has_no_node(pod) and gates_of(pod) == (GANG,))


def cannot_be_scheduled(pod: Json) -> bool:
    scheduled = condition(pod, "PodScheduled")
    unschedulable = (scheduled.get("status"), scheduled.get("reason")) == ("False", "Unschedulable")
    return unschedulable and _has_no_node(pod) and not gates_of(pod)


def _has_no_node(pod: Json) -> bool:
    pending = pod.get("status", {}).get("phase") == "Pending"
    return pending and not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]


def asks_us(pod: Json) -> bool:
    """Return whether a pod requests chips of hosts that nobody has said it waits for, as of a TPUNodeGroup."""
    waits_for_a_group = not GROUP_KEYS.isdisjoint(strings(pod["spec"], "nodeSelector"))
    return chips_of(pod) > 0 and not opted_out(pod) and not waits_for_a_group


def unserved(pod: Json) -> Unserved | None:
    """Return why a v1 Pod gets no slice or does not ask for one, whatever its workload is; None: that says it."""
    claims = claimed_chips(pod) if pod["spec"].get("resourceClaims") and not opted_out(pod) else ()
    if claims and (cannot_be_scheduled(pod) or is_untried(pod)):
        return Unserved(OwnerReason.NOT_SERVED, why_not_by_claims(claims))
    if (group := awaited_group(pod)) and asks_us(pod):
        return Unserved(OwnerReason.AWAITING_POD_GROUP, why_untried(pod, group))
    return None
