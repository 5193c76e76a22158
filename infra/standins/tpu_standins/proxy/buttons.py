"""Buttons for people and tests: HTTP and JSON on a port of its own.

GET    /faults  those of requests that are in force, and how many watches are open
POST   /faults  {"fault": "answer", "resource": "pods", "verb": "list", "share": 0.1, "for": 60, "code": 503}: for the
                fields see `faults.Fault`; without a code, "seconds" delay the API server's own response
                {"fault": "close-watches", "resource": "pods"}: the open watches end; of one resource or, without it, of
                all. "silence-watches": they send nothing more, not even bookmarks, but stay open. "rewind-watches":
                they send all objects again, in older versions. "say-to-watches": they send "text" as it is, such as
                half an event
                {"fault": "cut"}: all connections that wait for an answer or watch are cut
DELETE /faults  clear all faults, and end the watches that were silenced

The response has the number of watches or connections that were affected.
"""

import json
import time
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from tpu_standins.proxy import faults
from tpu_standins.proxy.faults import NotAFault
from tpu_standins.proxy.forwarding import Forwarder
from tpu_standins.proxy.watches import SAID_BY_WATCHES


def application(forwarder: Forwarder) -> web.Application:
    """Return the HTTP application of a proxy's buttons."""

    async def shown(_: web.Request) -> web.Response:
        now = time.monotonic()
        in_force = faults.shown(faults.in_force(forwarder.faults, now), now)
        return web.json_response({"faults": in_force, "watches": forwarder.watches.count()})

    async def ordered(request: web.Request) -> web.Response:
        try:
            return web.json_response(press(forwarder, json.loads(await request.read())))
        except (NotAFault, TypeError, ValueError) as problem:
            return web.json_response({"error": str(problem)}, status=400)

    async def cleared(_: web.Request) -> web.Response:
        forwarder.faults = ()
        forwarder.watches.restore()
        return web.json_response({})

    buttons = web.Application()
    buttons.add_routes(
        [web.get("/faults", shown), web.post("/faults", ordered), web.delete("/faults", cleared)],
    )
    return buttons


def press(forwarder: Forwarder, given: Mapping[str, Any]) -> dict[str, int]:
    """Inject a fault. Raise NotAFault for one that does not exist."""
    name = given.get("fault")
    if name in SAID_BY_WATCHES:
        return {"watches": forwarder.watches.press(str(name), given.get("resource"), str(given.get("text", "")))}
    if name == "cut":
        return {"connections": forwarder.cut()}
    if name != "answer":
        raise NotAFault(f'there is no fault "{name}": answer, cut, {", ".join(SAID_BY_WATCHES)}')
    one = faults.fault({key: value for key, value in given.items() if key != "fault"}, time.monotonic())
    forwarder.faults = (*forwarder.faults, one)
    return {"watches": 0}
