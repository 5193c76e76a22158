"""Failures, preemption and maintenance of VMs, and how they progress. Pure; times in seconds since 1970."""

from collections.abc import Iterator
from dataclasses import replace

from google.cloud.container_v1 import NodePool

from tpu_standins.gke.paths import instance_names
from tpu_standins.gke.state import Ailment, Host, Pool, State


def fall_ill(state: State, host: Host, ailment: Ailment, now: float) -> State:
    return state.with_hosts(replace(host, ails=ailment, fell_ill=now))


def heal(state: State, pool: str) -> State:
    return state.with_hosts(*(replace(host, ails=None) for host in state.hosts_of(pool)))


def preempt(state: State, pool: str, back: float | None, now: float) -> State:
    """Preempt all VMs of a pool: a slice is preempted as a whole [doc:concepts/spot-vms, concepts/tpus].

    They have `Pace.shutdown` to stop their pods. `back`: seconds after that until their managed instance group has
    replaced them under the same names; None: never.
    """
    stops = now + state.pace.shutdown
    returns = None if back is None else stops + back + state.pace.join
    told = (replace(host, stops=stops, returns=returns) for host in state.hosts_of(pool) if host.stops is None)
    return state.with_hosts(*told)


def plan_maintenance(state: State, pool: str, at: float) -> State:
    """Announce when all VMs of a pool will be stopped and recreated [skills gke-ai-troubleshooting]."""
    return state.with_hosts(*(replace(host, maintenance=at) for host in state.hosts_of(pool)))


def pass_time(state: State, now: float) -> State:
    """Start maintenance that is due, then stop the VMs whose notice period is over."""
    for pool in {host.pool for host in state.hosts.values() if _is_due(host, now)}:
        state = preempt(state, pool, state.pace.repair, now)
    over = [host for host in state.hosts.values() if host.stops is not None and host.stops <= now]
    return state.with_hosts(*map(_next_vm, over)) if over else state


def _is_due(host: Host, now: float) -> bool:
    return host.maintenance is not None and host.maintenance <= now and host.stops is None


def _next_vm(host: Host) -> Host:
    return replace(host, life=host.life + 1, boots=host.returns, ails=None, maintenance=None, stops=None, returns=None)


def made_anew(state: State, pool: str, boots: float) -> State:
    """Replace the VMs by new ones with the same names, as a managed instance group does."""
    return state.with_hosts(*(_next_vm(replace(host, returns=boots)) for host in state.hosts_of(pool)))


def replaced(state: State, pool: Pool, boots: float) -> State:
    """Replace the VMs by new ones with new names."""
    before = state.hosts_of(pool.path)
    names = {host.name for host in before}
    fresh = [name for name in instance_names(pool.stem, 2 * len(before)) if name not in names][: len(before)]
    new = (replace(_next_vm(replace(old, returns=boots)), name=name) for old, name in zip(before, fresh, strict=True))
    return replace(state, hosts={name: host for name, host in state.hosts.items() if name not in names}).with_hosts(
        *new
    )


def to_be_repaired(state: State, now: float) -> Iterator[Pool]:
    """Yield the running pools that GKE repairs now: a Node was unhealthy for too long [doc:node-auto-repair]."""
    for path in sorted({host.pool for host in state.hosts.values() if _repair_due(host, state) <= now}):
        pool = state.pools[path]
        running = pool.status in (NodePool.Status.RUNNING, NodePool.Status.RUNNING_WITH_ERROR)
        if running and repairs_itself(pool, state) and state.running_on(path) is None:
            yield pool


def repairs_itself(pool: Pool, state: State) -> bool:
    """Return whether auto-repair is on: as requested, else if the cluster has a release channel."""
    if "management" in pool.spec:
        return bool(pool.spec.management.auto_repair)
    return state.clusters[pool.cluster].release_channel is not None


def _repair_due(host: Host, state: State) -> float:
    return float("inf") if host.ails is None else host.fell_ill + state.pace.unhealthy


def milestones(state: State) -> Iterator[float]:
    """Yield the times at which a VM changes without a request."""
    for host in state.hosts.values():
        yield from (at for at in (host.maintenance, host.stops) if at is not None)
        if host.ails is not None:
            yield _repair_due(host, state)
