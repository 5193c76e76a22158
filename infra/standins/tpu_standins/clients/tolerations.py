"""Which taints a toleration is of (core/v1 ToleratesTaint)."""

from tpu_standins.clients.objects import Object


def matches(toleration: Object, taint: Object) -> bool:
    """Return whether a toleration is of this taint; an empty key or effect is of any."""
    same = all((toleration.get(field) or taint[field]) == taint[field] for field in ("key", "effect"))
    equal = toleration.get("key") and toleration.get("value", "") == taint.get("value", "")
    return bool(same and (equal or toleration.get("operator") == "Exists"))
