"""The life cycle of Jobs and JobSets: suspended, ended, expired (pure)."""

from datetime import datetime, timedelta

from infra.local.clients.conditions import is_true, since
from infra.local.clients.objects import Object


def suspended(obj: Object) -> bool:
    return bool(obj["spec"].get("suspend", False))


def has_ended(obj: Object, kinds: tuple[str, ...]) -> bool:
    """Return whether one of these conditions, which are all final, is true."""
    return any(is_true(obj, kind) for kind in kinds)


def expiry(obj: Object, kinds: tuple[str, ...]) -> datetime | None:
    """Return when a finished object is to be deleted (ttlSecondsAfterFinished); None: never."""
    seconds = obj["spec"].get("ttlSecondsAfterFinished")
    end = next((since(obj, kind) for kind in kinds if is_true(obj, kind)), None)
    return None if seconds is None or end is None else end + timedelta(seconds=seconds)
