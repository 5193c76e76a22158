"""Reads the pods of Jobs and groups, as leaders or beside them, from Kubernetes' JSON. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from relay.hosts.job_pods import fields_of_pod
from relay.objects import Follower, Leader, Place
from relay.translate import group_leader, leader
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.wire.gangs import gates_of
from tpu_slices.wire.leaders import LeaderOf, member_of_a_group, member_of_a_job
from tpu_slices.wire.workloads import chips_of

Json = Mapping[str, Any]


def pod_of_a_job(obj: Json) -> Leader | Follower | None:
    """Return a v1 Pod of an Indexed Job as a leader, or as a pod beside it; None: it is neither.

    A pod beside a leader counts that has chips, or that is held as those of gangs are, be it by mistake.
    """
    return leader(obj) or _follower(obj, member_of_a_job)


def pod_of_a_group(obj: Json) -> Leader | Follower | None:
    """Return a v1 Pod of a LeaderWorkerSet likewise."""
    return group_leader(obj) or _follower(obj, member_of_a_group)


def _follower(obj: Json, member: Callable[[Json], LeaderOf | None]) -> Follower | None:
    found = member(obj) if chips_of(obj) or GANG in gates_of(obj) else None
    if found is None:
        return None
    return Follower(**fields_of_pod(obj, found), place=Place(found.asks.replicated_job, found.asks.job_index))
