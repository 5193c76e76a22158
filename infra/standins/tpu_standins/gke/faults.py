"""Injected faults, and GKE's error messages for them."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from google.cloud.container_v1 import NodePool, StatusCondition

from tpu_standins.cloud import faults
from tpu_standins.gke.codes import Code
from tpu_standins.gke.paths import parse_cluster
from tpu_standins.gke.rules import Ask, Refusal
from tpu_standins.gke.state import Failure, Fault, Kind, Pool, State, size

AT_ONCE = frozenset({Kind.PERMISSION, Kind.UNAVAILABLE, Kind.INTERNAL, Kind.RESERVATION})
LATER = frozenset(
    {Kind.STOCKOUT, Kind.QUOTA, Kind.NEVER_JOINS, Kind.SLOW, Kind.SLOW_END, Kind.HELD, Kind.DELETE_FAILS},
)
ANSWER = frozenset({Kind.LOST_ANSWER})

_WORDS = MappingProxyType(
    {
        # 'Required "container.clusters.get" permission(s) for "projects/P/locations/L/clusters/C".' is GKE's
        Kind.PERMISSION: (
            Code.PERMISSION_DENIED,
            'Required "{permission}" permission(s) for "{cluster}".',
        ),
        Kind.UNAVAILABLE: (Code.UNAVAILABLE, "The service is currently unavailable."),
        Kind.INTERNAL: (Code.INTERNAL, "Internal error encountered."),
        # GoogleCloudPlatform/gsutil#1000: GKE itself checks the reservation, and refuses with 429
        Kind.RESERVATION: (
            Code.RESOURCE_EXHAUSTED,
            'Reservation does not have enough resources for the request: insufficient for node pool "{pool}".',
        ),
        Kind.LOST_ANSWER: (Code.UNAVAILABLE, "The service is currently unavailable."),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a call is about: a pool that is there or would be. The default is of calls that are about none."""

    pool: str = ""
    zones: tuple[str, ...] = ()
    capacity: str = ""
    hosts: int = 0


def about(ask: Ask) -> About:
    """Return what a call about a pool is about; of an unknown cluster's there is only the name."""
    if ask.cluster_path not in ask.state.clusters:
        return About(pool=ask.name)
    pool = ask.state.pools.get(ask.pool_path)
    if pool is not None:
        return about_pool(pool)
    return About(pool=ask.name, zones=ask.zones, capacity=_capacity(ask.spec), hosts=size(ask.spec, ask.zones))


def about_pool(pool: Pool) -> About:
    return About(pool=pool.name, zones=pool.zones, capacity=_capacity(pool.spec), hosts=pool.size)


def later(ask: Ask) -> frozenset[Kind]:
    """Return the kinds that affect how an operation goes; a creation of flex-start needs no hosts yet."""
    return LATER - {Kind.STOCKOUT} if ask.spec.config.flex_start else LATER


def _capacity(spec: NodePool) -> str:
    """Return one of CAPACITIES."""
    config = spec.config
    if config.flex_start:
        return "flex-start"
    if config.spot or config.preemptible:
        return "spot"
    return "reservation" if config.reservation_affinity.values else "on-demand"


def take(state: State, kinds: Collection[Kind], method: str, what: About) -> tuple[State, Fault | None]:
    """Return the first fault of these kinds that affects this call, and the state in which its use is counted."""
    after, taken = faults.take(state.faults, lambda fault: _meant(fault, kinds, method, what))
    return replace(state, faults=after), taken


def is_short(state: State, pool: Pool) -> bool:
    """Return whether a stockout that lasts keeps GKE from adding hosts to a pool."""
    what = about_pool(pool)
    return any(each.times is None and _meant(each, {Kind.STOCKOUT}, "CreateNodePool", what) for each in state.faults)


def _meant(fault: Fault, kinds: Collection[Kind], method: str, what: About) -> bool:
    return (
        fault.is_of(kinds, method)
        and (fault.zone is None or fault.zone in what.zones)
        and fault.takes(what.capacity, what.hosts)
        and re.fullmatch(fault.pools, what.pool) is not None
    )


def refused(fault: Fault, method: str, cluster: str, pool: str) -> Refusal:
    code, words = _WORDS[fault.kind]
    permission = f"container.clusters.{'get' if method.startswith(('Get', 'List')) else 'update'}"
    message = words.format(permission=permission, cluster=cluster, pool=pool)
    return Refusal(code=code, message=message, rule=f"fault-{fault.kind.value}")


def stockout(pool: Pool, instance: str, seconds: float, available: Sequence[str] = ()) -> Failure:
    """Return GKE's failure for a stockout.

    Wording: akka/akka-core#32992. Code: RESOURCE_EXHAUSTED, as for quota; unverified for stockouts. `available`: zones
    that have stock, in Compute Engine's words; that GKE passes those on is unverified, too.
    """
    zone = pool.zones[0]
    why = (
        faults.elsewhere(pool.machine.name, zone, available)
        if available
        else f"The zone 'projects/{_project(pool)}/zones/{zone}' does not have enough resources available to fulfill "
        "the request. '(resource type:compute)'."
    )
    reason = f"Instance '{instance}' creation failed: {why}"
    message = f"Google Compute Engine: {_not_all_running(pool, seconds)} [GCE_STOCKOUT]: {reason}"
    return Failure(
        code=Code.RESOURCE_EXHAUSTED,
        message=message,
        detail=message,
        condition=StatusCondition.Code.GCE_STOCKOUT,
        pool_status=NodePool.Status.ERROR,
    )


def quota(pool: Pool, instance: str, seconds: float) -> Failure:
    """Return GKE's failure for exhausted quota.

    Wording and code: kubernetes-sigs/sig-storage-local-static-provisioner#526. There the bracketed code appears in
    `detail` only; Operation.error.message is the bare message.
    """
    region = pool.zones[0].rpartition("-")[0]
    reason = f"Instance '{instance}' creation failed: Quota 'TPU_CHIPS' exceeded.  Limit: 0.0 in region {region}."
    detail = (
        f"Insufficient quota to satisfy the request: {_not_all_running(pool, seconds)} [GCE_QUOTA_EXCEEDED]: {reason}"
    )
    return Failure(
        code=Code.RESOURCE_EXHAUSTED,
        message=reason,
        detail=detail,
        condition=StatusCondition.Code.GCE_QUOTA_EXCEEDED,
        pool_status=NodePool.Status.ERROR,
    )


def not_registered(pool: Pool, registered: int) -> Failure:
    """Return GKE's failure for unregistered nodes: GKE's wording, our code; RUNNING_WITH_ERROR as in tf#10823."""
    message = (
        f"All cluster resources were brought up, but: only {registered} nodes out of {pool.size} have registered; "
        "cluster may be unhealthy."
    )
    return Failure(
        code=Code.INTERNAL,
        message=message,
        detail=message,
        condition=StatusCondition.Code.UNKNOWN,
        pool_status=NodePool.Status.RUNNING_WITH_ERROR,
    )


def not_deleted(*, usable: bool) -> Failure:
    """Return the failure of a deletion. Code, message and both statuses are unverified."""
    message = "Google Compute Engine: the instance group manager could not be deleted."
    return Failure(
        code=Code.INTERNAL,
        message=message,
        detail=message,
        condition=StatusCondition.Code.UNKNOWN,
        pool_status=NodePool.Status.RUNNING if usable else NodePool.Status.ERROR,
    )


def cancelled() -> Failure:
    """Return the failure of a cancelled creation.

    Code, message and status are unverified: GKE is documented to cancel none. An operation is DONE if "either cancelled
    or completed", and a creation's pool "may be partially created" [py-gke Operation].
    """
    message = "The operation was cancelled."
    return Failure(
        code=Code.CANCELLED,
        message=message,
        detail=message,
        condition=StatusCondition.Code.UNKNOWN,
        pool_status=NodePool.Status.ERROR,
    )


def _not_all_running(pool: Pool, seconds: float) -> str:
    return (
        f"Not all instances running in IGM after {seconds:.9f}s. Expected {pool.size}, running 0, "
        f"transitioning {pool.size}. Current errors:"
    )


def _project(pool: Pool) -> str:
    path = parse_cluster(pool.cluster)
    return path.project if path else ""
