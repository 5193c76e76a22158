"""How each kind of workload is read from the API server's JSON: one row per kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tpu_slices.domain.model.facts import TemplateRequest, WorkloadRef, WorkloadState
from tpu_slices.domain.model.node_groups import NodeGroup
from tpu_slices.domain.model.slices import Owner, OwnerKind, WorkloadUid
from tpu_slices.domain.planning.sharing import slices_of
from tpu_slices.wire import gangs, jobs, jobsets, leader_worker_sets, node_groups, pods, workloads
from tpu_slices.wire.capacity.ladders import with_ladder
from tpu_slices.wire.workloads import OPTED_OUT, Json, opted_out

OUT = f'opted out: label or annotation {OPTED_OUT} is "true": remove it to get slices'
"""What an object did that gets no slices."""


def elsewhere(manager: str) -> str:
    """Return why a workload gets no slices that another controller runs."""
    return f'spec.managedBy is "{manager}": it gets its slices where that controller runs it'


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads objects of a kind. What depends on tenants' fields raises ValueError like `workloads.requests_of`."""

    kind: OwnerKind
    asks_for_tpu: Callable[[Json], bool]
    requests: Callable[[Json], tuple[TemplateRequest, ...]]
    state: Callable[[Json], WorkloadState]
    request_of_pod: Callable[[Json], TemplateRequest]
    """That of a leader pod without its workload."""
    is_served: Callable[[Json], bool]
    """Whether it is managed by the kind's own controller and has not opted out."""
    not_ours: Callable[[Json], str] = lambda _: ""
    """Why its pods are not the hosts of one slice each, as a clause with the remedy; empty if they may be."""
    may_have_asked: Callable[[Json], bool] = lambda _: False
    """Whether one that asks for no slice may have asked for some, before it was edited under its pods."""
    groups: Callable[[Json], int | None] = lambda _: None
    succeeded: Callable[[Json], Mapping[str, int]] = lambda _: {}
    """How many Jobs have succeeded, by replicatedJob, where some have."""
    declared: Callable[[Json], NodeGroup | None] = lambda _: None
    """What an object declares that is the demand for a slice itself; None: pods are."""

    def why_unserved(self, obj: Json, requests: Sequence[TemplateRequest]) -> str:
        """Return why none of the slices is made that a workload requests, as a clause; empty: they may be.

        | the workload                                    | why                                       |
        |-------------------------------------------------|-------------------------------------------|
        | opted out, or the only pod templates with chips | it did, or they did                       |
        | is run by another controller than its kind's    | which one is                              |
        | makes other pods than the hosts of slices       | what to change (`not_ours`)               |
        | has no replicas of what requests chips          | that it has none                          |

        Raise ValueError like `workloads.requests_of`.
        """
        if self.kind.declares or opted_out(obj):
            return "" if self.kind.declares else f"it {OUT}"
        if not self.is_served(obj):
            manager = obj["spec"].get("managedBy")
            return elsewhere(manager) if manager else f"its pod template {OUT}"
        if why := self.not_ours(obj):
            return why
        if not requests and self.asks_for_tpu(obj):
            return f"every replicatedJob with TPU {OUT}"
        return "it has 0 replicas" if requests and not any(map(slices_of, requests)) else ""

    def ref(self, obj: Json) -> WorkloadRef:
        """Return the workload at this version; only Kubernetes writes what is read."""
        metadata = obj["metadata"]
        owner = Owner(
            kind=self.kind, namespace=metadata["namespace"], name=metadata["name"], uid=WorkloadUid(metadata["uid"])
        )
        return WorkloadRef(
            owner=owner,
            generation=metadata.get("generation", 0),
            resource_version=metadata["resourceVersion"],
            groups=self._groups(obj),
        )

    def _groups(self, obj: Json) -> int | None:
        try:
            return self.groups(obj)
        except ValueError:  # its requests say why
            return None


def reader_of(obj: Json) -> Reader | None:
    """Return how an object is read, by kind and API group; None for other kinds. Raise ValueError for a version.

    None for a pod, too: whether it is a workload by itself is not known by its kind.
    """
    reader = next((each for each in READERS.values() if each.kind == obj["kind"] and each.kind != OwnerKind.POD), None)
    version = str(obj["apiVersion"])
    if reader is None or version.partition("/")[0] != reader.kind.api_version.partition("/")[0]:
        return None
    if version != reader.kind.api_version:
        raise ValueError(f"apiVersion: {version} is not supported, only {reader.kind.api_version}")
    return reader


READERS: Mapping[OwnerKind, Reader] = {
    each.kind: each
    for each in (
        Reader(
            OwnerKind.JOBSET,
            workloads.asks_for_tpu,
            with_ladder(gangs.of_a_jobset(workloads.requests_of)),
            jobsets.jobset_state,
            workloads.request_of_pod,
            jobsets.is_served,
            succeeded=jobsets.succeeded_of,
        ),
        Reader(
            OwnerKind.JOB,
            jobs.asks_for_tpu,
            with_ladder(gangs.of_a_job(jobs.requests_of)),
            jobs.state_of,
            jobs.request_of_pod,
            jobs.is_served,
            jobs.not_ours,
            jobs.may_have_asked,
        ),
        Reader(
            OwnerKind.LEADER_WORKER_SET,
            leader_worker_sets.asks_for_tpu,
            with_ladder(gangs.of_groups(leader_worker_sets.requests_of)),
            leader_worker_sets.state_of,
            leader_worker_sets.request_of_pod,
            leader_worker_sets.is_served,
            leader_worker_sets.not_ours,
            lambda _: True,
            leader_worker_sets.groups_of,
        ),
        Reader(
            OwnerKind.POD,
            pods.asks_for_tpu,
            pods.requests_of,
            pods.state_of,
            pods.request_of_pod,
            pods.is_served,
            pods.not_ours,
        ),
        Reader(
            OwnerKind.TPU_NODE_GROUP,
            asks_for_tpu=lambda _: True,
            requests=lambda _: (),
            state=node_groups.state_of,
            request_of_pod=workloads.request_of_pod,
            is_served=lambda _: True,
            declared=node_groups.group_of,
        ),
    )
}
