"""Injected faults: responses of an API server that is overloaded, being upgraded or unreachable. For tests.

`POST /local/faults {"fault": "answer", "resource": "pods", "verb": "list", "code": 429, "retry_after": 2, "times": 3}`
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from infra.local.cluster.errors import ApiError, FieldError, invalid

_REASONS: Mapping[int, str] = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


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
    """None: until it is healed, or until `until`."""
    until: float | None = None
    """By the event loop's clock; requested as `for`, in seconds."""
    share: float = 1.0
    """The fraction of the matching requests that is affected, evenly distributed."""
    met: int = 0
    """How many requests have matched."""
    seconds: float = 0.0
    """Delay before the response."""
    code: int = 0
    """HTTP status; 0: the server itself responds, after the delay."""
    message: str = ""
    text: str | None = None
    """The body; None: a metav1.Status with the message."""
    retry_after: int = 0

    def meets(self, request: Request) -> bool:
        params = request.query_params
        watches = params.get("watch") in {"1", "true", "True"}
        verbs = (request.method, "watch" if watches else "list")
        return (
            (not self.resource or self.resource in request.url.path.split("/"))
            and (not self.verb or self.verb in verbs)
            and (not self.continued or "continue" in params)
            and (not self.unless or request.headers.get("authorization") != self.unless)
        )

    def answer(self) -> Response:
        headers = {"Retry-After": str(self.retry_after)} if self.retry_after else None
        if self.text is not None:
            return PlainTextResponse(self.text, self.code, headers)
        status = ApiError(self.code, _REASONS.get(self.code, ""), self.message).status()
        return JSONResponse(status, self.code, headers)


class Faults:
    """The active faults. The first one that matches a request takes effect."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, wish: Mapping[str, Any]) -> int:
        """Add a fault. Raise ApiError 422 for a field that does not exist."""
        known = {field.name for field in fields(Fault)} - {"until", "met"} | {"for"}
        if unknown := sorted(set(wish) - known):
            cause = FieldError(unknown[0], "FieldValueForbidden", "no such field of a fault")
            raise invalid("Fault", "local", "", [cause])
        lasts = wish.get("for")
        until = None if lasts is None else asyncio.get_running_loop().time() + float(lasts)
        self._faults.append(Fault(**{**{key: value for key, value in wish.items() if key != "for"}, "until": until}))
        return 0

    def heal(self) -> int:
        self._faults.clear()
        return 0

    async def answer(self, request: Request) -> Response | None:
        """Wait and respond as a fault requires; return None if there is none, or if the server itself is to respond."""
        now = asyncio.get_running_loop().time()
        self._faults = [fault for fault in self._faults if fault.until is None or now < fault.until]
        fault = next((fault for fault in self._faults if fault.meets(request) and self._strikes(fault)), None)
        if fault is None:
            return None
        await asyncio.sleep(fault.seconds)
        return fault.answer() if fault.code else None

    def _strikes(self, fault: Fault) -> bool:
        """Count a request that matches a fault, and its uses; return whether this request is affected."""
        at = self._faults.index(fault)
        met = replace(fault, met=fault.met + 1)
        strikes = int(met.met * met.share) > int(fault.met * fault.share)
        if strikes and met.times is not None:
            met = replace(met, times=met.times - 1)
        self._faults[at : at + 1] = [] if met.times == 0 else [met]
        return strikes
