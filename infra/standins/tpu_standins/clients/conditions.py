"""Conditions in an object's status, and their transition times (pure)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tpu_standins.clients.objects import Object, timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    type: str
    status: bool = True
    reason: str = ""
    message: str = ""


def of(obj: Object) -> list[Object]:
    """Return the conditions of an object, which may have no status yet."""
    found: list[Object] = obj.get("status", {}).get("conditions") or []
    return found


def find(conditions: Iterable[Object], kind: str) -> Object | None:
    return next((condition for condition in conditions if condition["type"] == kind), None)


def is_true(obj: Object, kind: str) -> bool:
    found = find(of(obj), kind)
    return found is not None and found["status"] == "True"


def since(obj: Object, kind: str) -> datetime | None:
    """Return when the condition got its current status."""
    found = find(of(obj), kind)
    return moment(found["lastTransitionTime"]) if found and found.get("lastTransitionTime") else None


def moment(stamp: str) -> datetime:
    """Parse a metav1.Time as a timezone-aware datetime."""
    return datetime.fromisoformat(stamp)


def with_condition(conditions: Sequence[Object], new: Condition, now: datetime) -> list[Object]:
    """Return the conditions with `new`, replacing its type; the transition time changes only with the status."""
    old = find(conditions, new.type)
    status = "True" if new.status else "False"
    kept = old.get("lastTransitionTime") if old and old["status"] == status else None
    entry = {"type": new.type, "status": status, "lastTransitionTime": kept or timestamp(now)}
    entry |= {key: text for key, text in (("reason", new.reason), ("message", new.message)) if text}
    if old is None:
        return [*conditions, entry]
    return [entry if condition is old else condition for condition in conditions]
