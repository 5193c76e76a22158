"""Injected faults, and GKE's error messages for them."""

import re
from collections.abc import Collection
from dataclasses import replace
from types import MappingProxyType

from google.cloud.container_v1 import NodePool, StatusCondition

from tpu_standins.cloud import faults
from tpu_standins.gke.codes import Code
from tpu_standins.gke.paths import parse_cluster
from tpu_standins.gke.rules import Refusal
from tpu_standins.gke.state import Failure, Fault, Kind, Pool, State

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


def take(
    state: State, kinds: Collection[Kind], method: str, pool: str, zones: tuple[str, ...]
) -> tuple[State, Fault | None]:
    """Return the first fault of these kinds that affects this call, and the state in which its use is counted."""

    def meant(fault: Fault) -> bool:
        return (
            fault.is_of(kinds, method)
            and (fault.zone is None or fault.zone in zones)
            and re.fullmatch(fault.pools, pool) is not None
        )

    after, taken = faults.take(state.faults, meant)
    return replace(state, faults=after), taken


def refused(fault: Fault, method: str, cluster: str, pool: str) -> Refusal:
    code, words = _WORDS[fault.kind]
    permission = f"container.clusters.{'get' if method.startswith(('Get', 'List')) else 'update'}"
    message = words.format(permission=permission, cluster=cluster, pool=pool)
    return Refusal(code=code, message=message, rule=f"fault-{fault.kind.value}")


def stockout(pool: Pool, instance: str, seconds: float) -> Failure:
    """Return GKE's failure for a stockout.

    Wording: akka/akka-core#32992. Code: RESOURCE_EXHAUSTED, as for quota; unverified for stockouts.
    """
    project = _project(pool)
    reason = (
        f"Instance '{instance}' creation failed: The zone 'projects/{project}/zones/{pool.zones[0]}' does not have "
        "enough resources available to fulfill the request. '(resource type:compute)'."
    )
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
