"""Which taints a pod tolerates (pure; core/v1 Toleration.ToleratesTaint)."""

from collections.abc import Mapping
from typing import Any

from infra.local.clients.objects import Object


def tolerates(pod: Object, taint: Mapping[str, Any]) -> bool:
    return bool(tolerating(pod, taint))


def tolerating(pod: Object, taint: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the pod's tolerations of this taint."""
    return [toleration for toleration in pod["spec"].get("tolerations") or () if _matches(toleration, taint)]


def _matches(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Return whether a toleration matches a taint; an empty key or effect of the toleration matches any."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")
