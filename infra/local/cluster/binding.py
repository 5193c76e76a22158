"""pods/binding: the only way to assign a pod to a node over HTTP (pkg/registry/core/pod/storage: BindingREST)."""

from datetime import datetime
from typing import Any

from infra.local.cluster import errors
from infra.local.cluster.objects import Objects, timestamp
from infra.local.cluster.validation import POD_UPDATE, required


def bind(objects: Objects, now: datetime, pod: dict[str, Any], binding: dict[str, Any]) -> None:
    """Bind a pod to the node in the Binding. Raise ApiError 409 if the pod cannot be bound, 422 without a target."""
    name = pod["metadata"]["name"]
    said = binding.get("target")
    target: dict[str, Any] = said if isinstance(said, dict) else {}
    node = target.get("name", "")
    if not node or target.get("kind", "Node") != "Node":
        raise errors.invalid("Binding", "", name, [required("target.name")])
    if why := _obstacle(pod):
        raise errors.conflict("pods/binding", "", name, why)
    pod["spec"]["nodeName"] = node
    bound = objects.update("pods", pod)
    bound["status"]["conditions"] = [
        *(c for c in bound["status"].get("conditions", []) if c["type"] != "PodScheduled"),
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": timestamp(now),
        },
    ]
    objects.update("pods", bound, status=True)


def _obstacle(pod: dict[str, Any]) -> str:
    name, spec = pod["metadata"]["name"], pod["spec"]
    if "deletionTimestamp" in pod["metadata"]:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def refuse_rebinding(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Refuse an update that sets the node name: over HTTP only a Binding may do that."""
    if old["spec"].get("nodeName") != new.get("spec", {}).get("nodeName"):
        cause = errors.FieldError("spec", "FieldValueForbidden", POD_UPDATE)
        raise errors.invalid("Pod", "", old["metadata"]["name"], [cause])
