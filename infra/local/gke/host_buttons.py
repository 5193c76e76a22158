"""Buttons for what befalls hosts. Each is for one pool and takes a JSON object. Pure.

POST /hosts/break    {"pool": NAME, "host": NAME or null, "how": "not-ready"}: one host (the first, if not named) is
                     NotReady; "silent": it says nothing any more. GKE repairs the pool after a while.
POST /hosts/heal     {"pool": NAME}: all are Ready again
POST /hosts/repair   {"pool": NAME}: GKE recreates all hosts of the pool; RECONCILING meanwhile
POST /hosts/preempt  {"pool": NAME, "back": SECONDS or null}: all are told that they stop, and do; others come after
                     that many seconds (not said: the pace's own), or never
POST /hosts/maintain {"pool": NAME, "in": 10}: the same, announced so many seconds before
"""

from collections.abc import Callable, Mapping
from typing import Any

from infra.local.gke import lifecycle, outages
from infra.local.gke.lifecycle import Moment
from infra.local.gke.state import Ailment, Pool, State

Body = Mapping[str, Any]
HostButton = Callable[[State, Body, Moment], State]


class UnknownThingError(Exception):
    """A button was pressed for something that is not there, or in no state for it. Text for a person."""


def _break(state: State, body: Body, moment: Moment) -> State:
    hosts = state.hosts_of(_pool(state, body).path)
    wanted = body.get("host") or (hosts[0].name if hosts else "")
    host = next((host for host in hosts if host.name == wanted), None)
    if host is None:
        raise UnknownThingError(f"no such host: {wanted}")
    return outages.fall_ill(state, host, Ailment(body.get("how", Ailment.NOT_READY.value)), moment.now)


def _heal(state: State, body: Body, _: Moment) -> State:
    return outages.heal(state, _pool(state, body).path)


def _repair(state: State, body: Body, moment: Moment) -> State:
    return lifecycle.begin_repair(state, _pool(state, body).path, moment)[0]


def _preempt(state: State, body: Body, moment: Moment) -> State:
    back = body.get("back", state.pace.repair)
    return outages.preempt(state, _pool(state, body).path, None if back is None else _seconds(back), moment.now)


def _maintain(state: State, body: Body, moment: Moment) -> State:
    return outages.plan_maintenance(state, _pool(state, body).path, moment.now + _seconds(body.get("in", 10)))


def _seconds(given: Any) -> float:
    """Read a number of seconds. UnknownThingError for what is none that can be waited for."""
    seconds = float(given) if isinstance(given, int | float) else float("nan")
    if not 0 <= seconds <= 10**9:
        raise UnknownThingError(f"no number of seconds: {given}")
    return seconds


def _pool(state: State, body: Body) -> Pool:
    name = str(body.get("pool", ""))
    found = next((pool for pool in state.pools.values() if pool.name == name), None)
    if found is None:
        raise UnknownThingError(f"no such pool: {name}")
    if busy := state.running_on(found.path):
        raise UnknownThingError(f"{name} is under {busy.name}")
    return found


HOST_BUTTONS: Mapping[str, HostButton] = {
    "/hosts/break": _break,
    "/hosts/heal": _heal,
    "/hosts/repair": _repair,
    "/hosts/preempt": _preempt,
    "/hosts/maintain": _maintain,
}
