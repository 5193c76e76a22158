"""A change as an object before and after: written as far as it differs."""

from tpu_standins.clients.kinds import KINDS
from tpu_standins.clients.objects import Object, Objects

_PLURALS = {kind.name: kind.plural for kind in KINDS.values()}


def write(objects: Objects, before: Object | None, after: Object) -> None:
    """Create `after` if there was nothing; else update it, or its status only, if that differs. Raise ApiError."""
    plural = _PLURALS[after["kind"]]
    if before is None:
        objects.create(plural, after)
    elif before != after:
        objects.update(plural, after, status=before["spec"] == after["spec"])
