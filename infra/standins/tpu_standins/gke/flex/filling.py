"""Pools of flex-start: empty until GKE fills them, and again at the end of their hosts' time. Pure.

GKE fills a pool for pods that wait for it, whenever it has the capacity. Here each empty pool is filled `Pace.fill`
seconds after it was made or emptied, whether pods wait or not, or once a stockout that lasts is over. All hosts of a
slice come at once [CA ResizeRequest].
"""

from collections.abc import Iterator
from dataclasses import replace

from google.cloud.container_v1 import NodePool

from tpu_standins.gke import faults, outages
from tpu_standins.gke.state import Host, Pool, State


def is_empty(state: State, pool: Pool) -> bool:
    """Return whether a pool of flex-start runs without hosts."""
    running = pool.spec.config.flex_start and pool.status == NodePool.Status.RUNNING
    return running and all(host.boots is None for host in state.hosts_of(pool.path))


def fill(state: State, pool: Pool, now: float) -> State:
    """Add all hosts of a pool: their Nodes are registered after `Pace.join`."""
    boots = now + state.pace.join
    hosts = (replace(host, boots=boots) for host in state.hosts_of(pool.path))
    return state.with_pool(replace(pool, fills=None)).with_hosts(*hosts)


def take_back(state: State, pool: Pool, now: float) -> State:
    """Stop all hosts of a pool, with a notice as at a preemption; the pool is filled again later."""
    emptied = replace(pool, fills=now + state.pace.shutdown + state.pace.fill)
    return outages.preempt(state.with_pool(emptied), pool.path, None, now)


def pass_time(state: State, now: float) -> State:
    """Fill the pools that are due, and take back the hosts whose time is over."""
    for pool in tuple(state.pools.values()):
        if is_empty(state, pool) and pool.fills is not None and pool.fills <= now and not faults.is_short(state, pool):
            state = fill(state, pool, now)
        elif any(end <= now for end in _ends(state, pool)):
            state = take_back(state, pool, now)
    return state


def milestones(state: State) -> Iterator[float]:
    """Yield the times at which a pool of flex-start changes without a request."""
    for pool in state.pools.values():
        yield from _ends(state, pool)
        if pool.fills is not None:
            yield pool.fills


def _ends(state: State, pool: Pool) -> Iterator[float]:
    """Yield when the time of each running host is over, unless it already has its notice."""
    if not pool.spec.config.flex_start:
        return
    runs = min(pool.spec.config.max_run_duration.total_seconds(), state.pace.run)
    yield from (_start(host) + runs for host in state.hosts_of(pool.path) if host.boots is not None and not host.stops)


def _start(host: Host) -> float:
    return host.boots or 0.0
