"""Buttons for faults of hosts. Each acts on one pool and takes a JSON object. Pure.

POST /hosts/break    {"pool": NAME, "host": NAME or null, "how": "not-ready"}: one host (by default the first) becomes
                     NotReady; "silent": it stops posting its status. GKE repairs the pool after a while.
POST /hosts/heal     {"pool": NAME}: all hosts become Ready again
POST /hosts/repair   {"pool": NAME, "for": SECONDS}: GKE recreates all hosts of the pool; it is RECONCILING meanwhile,
                     for that many seconds (if absent: as the pace says)
POST /hosts/upgrade  {"pool": NAME, "for": SECONDS}: the same by an upgrade; the hosts come back under new names
POST /hosts/preempt  {"pool": NAME, "back": SECONDS or null}: all hosts get a termination notice and stop; they are
                     replaced after that many seconds (if absent: after the pace's), or with null never
POST /hosts/maintain {"pool": NAME, "in": 10}: the same, announced that many seconds before
POST /hosts/fill     {"pool": NAME}: GKE adds all hosts to an empty pool of flex-start
POST /hosts/end      {"pool": NAME}: GKE takes the hosts of flex-start back, as at the end of their max_run_duration
"""

from collections.abc import Callable, Mapping
from typing import Any

from tpu_standins.cloud.buttons import UnknownThingError
from tpu_standins.cloud.timed import Moment
from tpu_standins.gke import lifecycle, outages
from tpu_standins.gke.flex import filling
from tpu_standins.gke.state import Ailment, Pool, State

Body = Mapping[str, Any]
HostButton = Callable[[State, Body, Moment], State]


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
    return lifecycle.begin_repair(state, _pool(state, body).path, moment, _lasts(body))[0]


def _upgrade(state: State, body: Body, moment: Moment) -> State:
    return lifecycle.begin_upgrade(state, _pool(state, body).path, moment, _lasts(body))[0]


def _lasts(body: Body) -> float | None:
    return None if body.get("for") is None else _seconds(body["for"])


def _preempt(state: State, body: Body, moment: Moment) -> State:
    back = body.get("back", state.pace.repair)
    return outages.preempt(state, _pool(state, body).path, None if back is None else _seconds(back), moment.now)


def _maintain(state: State, body: Body, moment: Moment) -> State:
    return outages.plan_maintenance(state, _pool(state, body).path, moment.now + _seconds(body.get("in", 10)))


def _fill(state: State, body: Body, moment: Moment) -> State:
    pool = _pool(state, body)
    if not filling.is_empty(state, pool):
        raise UnknownThingError(f"{pool.name} is no empty pool of flex-start")
    return filling.fill(state, pool, moment.now)


def _end(state: State, body: Body, moment: Moment) -> State:
    pool = _pool(state, body)
    if not pool.spec.config.flex_start:
        raise UnknownThingError(f"{pool.name} is no pool of flex-start")
    return filling.take_back(state, pool, moment.now)


def _seconds(given: Any) -> float:
    """Parse a number of seconds. Raise UnknownThingError if it is not a number between 0 and 10**9."""
    seconds = float(given) if isinstance(given, int | float) else float("nan")
    if not 0 <= seconds <= 10**9:
        raise UnknownThingError(f"not a number of seconds: {given}")
    return seconds


def _pool(state: State, body: Body) -> Pool:
    name = str(body.get("pool", ""))
    found = next((pool for pool in state.pools.values() if pool.name == name), None)
    if found is None:
        raise UnknownThingError(f"no such pool: {name}")
    if busy := state.running_on(found.path):
        raise UnknownThingError(f"{name} has a running operation: {busy.name}")
    return found


HOST_BUTTONS: Mapping[str, HostButton] = {
    "/hosts/break": _break,
    "/hosts/heal": _heal,
    "/hosts/repair": _repair,
    "/hosts/upgrade": _upgrade,
    "/hosts/preempt": _preempt,
    "/hosts/maintain": _maintain,
    "/hosts/fill": _fill,
    "/hosts/end": _end,
}
