"""The binding of a pod to a node (pkg/registry/core/pod/storage: BindingREST; pure)."""

from datetime import datetime

from infra.local.embedded.store import errors
from infra.local.embedded.store.deletion import timestamp
from infra.local.embedded.store.kinds import Object


def bound(pod: Object, binding: Object, now: datetime) -> Object:
    """Return the pod on the node that a v1 Binding names. Raise ApiError 409 if it cannot be bound, 422 if none is."""
    name, target = pod["metadata"]["name"], binding.get("target")
    node = target.get("name") if isinstance(target, dict) and target.get("kind", "Node") == "Node" else None
    if not node:
        raise errors.invalid("Binding", "", name, [errors.required("target.name")])
    if why := _obstacle(pod):
        raise errors.conflict("pods/binding", "", name, why)
    kept = [each for each in pod["status"].get("conditions", []) if each["type"] != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": timestamp(now)}
    status = pod["status"] | {"conditions": [*kept, scheduled]}
    return pod | {"spec": pod["spec"] | {"nodeName": node}, "status": status}


def _obstacle(pod: Object) -> str:
    name, spec = pod["metadata"]["name"], pod["spec"]
    if "deletionTimestamp" in pod["metadata"]:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    return f"pod {name} has non-empty .spec.schedulingGates" if spec.get("schedulingGates") else ""
