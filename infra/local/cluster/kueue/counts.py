"""The status of ClusterQueues and LocalQueues: pending Workloads, and quota reserved and used (pure).

Source: pkg/controller/core (clusterqueue_controller.go, localqueue_controller.go).
"""

from collections.abc import Sequence

from infra.local.cluster.kueue.quota import FlavorResource, Usage, held, nominal, together, written
from infra.local.cluster.kueue.workloads import is_active, is_admitted, is_finished, reserves_quota
from infra.local.cluster.objects import Object


def cluster_queue_counts(queue: Object, workloads: Sequence[Object]) -> Object:
    """Return the counts of a ClusterQueue's Workloads, and the quota that is reserved and used."""
    keys = list(nominal(queue))
    return _counts(workloads) | {
        "flavorsReservation": _usage(keys, _held(workloads, admitted=False), borrowed=True),
        "flavorsUsage": _usage(keys, _held(workloads, admitted=True), borrowed=True),
    }


def local_queue_counts(cluster_queue: Object | None, workloads: Sequence[Object]) -> Object:
    """Return the counts of a LocalQueue's Workloads, and their share of the ClusterQueue's quota."""
    keys = [] if cluster_queue is None else list(nominal(cluster_queue))
    return _counts(workloads) | {
        "flavorsReservation": _usage(keys, _held(workloads, admitted=False), borrowed=False),
        "flavorUsage": _usage(keys, _held(workloads, admitted=True), borrowed=False),
    }


def _counts(workloads: Sequence[Object]) -> Object:
    unfinished = [one for one in workloads if not is_finished(one)]
    return {
        "pendingWorkloads": sum(is_active(one) and not reserves_quota(one) for one in unfinished),
        "reservingWorkloads": sum(map(reserves_quota, unfinished)),
        "admittedWorkloads": sum(map(is_admitted, unfinished)),
    }


def _held(workloads: Sequence[Object], *, admitted: bool) -> Usage:
    counted = is_admitted if admitted else reserves_quota
    return together(held(one) for one in workloads if counted(one) and not is_finished(one))


def _usage(keys: Sequence[FlavorResource], usage: Usage, *, borrowed: bool) -> list[Object]:
    none = {"borrowed": "0"} if borrowed else {}
    return [
        {
            "name": name,
            "resources": [
                {"name": resource, "total": written(resource, usage.get((flavor, resource), 0))} | none
                for flavor, resource in keys
                if flavor == name
            ],
        }
        for name in dict.fromkeys(flavor for flavor, _ in keys)
    ]
