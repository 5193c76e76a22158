"""Faults of requests: an API server that is overloaded, being upgraded or slow. Pure; times in seconds of one clock.

`{"resource": "pods", "verb": "list", "code": 429, "retry_after": 2, "times": 3}`
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

REASONS: Mapping[int, str] = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}
"""Reasons of metav1.Status, by code."""


class NotAFault(ValueError):
    """What was asked for is not a fault; the message is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, as far as faults depend on it."""

    method: str
    path: str
    query: Mapping[str, str]
    authorization: str = ""

    @property
    def watches(self) -> bool:
        return self.method == "GET" and self.query.get("watch") in {"1", "true", "True"}

    @property
    def segments(self) -> list[str]:
        return self.path.split("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """The requests that a fault affects, how often, and the response. The first four fields match all if empty."""

    resource: str = ""
    """The plural name in the path."""
    verb: str = ""
    """`list`, `watch`, or the HTTP method."""
    continued: bool = False
    """Affects only pages of a list after the first."""
    unless: str = ""
    """Spares requests with this Authorization header."""
    times: int | None = None
    """None: until it is cleared, or until `until`."""
    until: float | None = None
    """Requested as `for`, in seconds from now."""
    share: float = 1.0
    """The fraction of the matching requests that is affected, evenly distributed."""
    met: int = 0
    """How many requests have matched."""
    seconds: float = 0.0
    """Delay before the response."""
    code: int = 0
    """HTTP status; 0: the API server itself responds, after the delay."""
    message: str = ""
    text: str | None = None
    """The body; None: a metav1.Status with the message."""
    retry_after: int = 0

    def meets(self, asked: Asked) -> bool:
        verbs = (asked.method, "watch" if asked.watches else "list")
        return (
            (not self.resource or self.resource in asked.segments)
            and (not self.verb or self.verb in verbs)
            and (not self.continued or "continue" in asked.query)
            and (not self.unless or asked.authorization != self.unless)
        )

    def status(self) -> dict[str, Any]:
        """Return the metav1.Status that it answers with."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": REASONS.get(self.code, ""),
            "code": self.code,
        }


def fault(given: Mapping[str, Any], now: float) -> Fault:
    """Parse a fault. Raise NotAFault for a field that does not exist."""
    known = {field.name for field in fields(Fault)} - {"until", "met"} | {"for"}
    if unknown := sorted(set(given) - known):
        raise NotAFault(f'a fault has no field "{unknown[0]}": {", ".join(sorted(known))}')
    lasts = given.get("for")
    until = None if lasts is None else now + float(lasts)
    return Fault(**{key: value for key, value in given.items() if key != "for"}, until=until)


def in_force(faults: tuple[Fault, ...], now: float) -> tuple[Fault, ...]:
    return tuple(each for each in faults if each.until is None or now < each.until)


def struck(faults: tuple[Fault, ...], asked: Asked) -> tuple[tuple[Fault, ...], Fault | None]:
    """Return the faults after a request, and the first one that affects it."""
    left: list[Fault] = []
    for position, each in enumerate(faults):
        if not each.meets(asked):
            left.append(each)
            continue
        counted = replace(each, met=each.met + 1)
        if int(counted.met * each.share) == int(each.met * each.share):
            left.append(counted)
            continue
        if counted.times is not None:
            counted = replace(counted, times=counted.times - 1)
        used_up = counted.times == 0
        return (*left, *(() if used_up else (counted,)), *faults[position + 1 :]), each
    return tuple(left), None


def shown(faults: tuple[Fault, ...], now: float) -> list[dict[str, Any]]:
    """Return the faults as JSON, with the seconds that they still last as `for`."""
    return [asdict(each) | {"until": None, "for": None if each.until is None else each.until - now} for each in faults]
