"""Reads LeaderWorkerSets, and identifies their leader pods (sigs.k8s.io/lws api/leaderworkerset/v1, as of 0.8).

Each group is one slice: its leader, the pod of worker index 0, and its workers are the slice's hosts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tpu_slices.domain.model.facts import TemplateRequest, WaitingLeader, WorkloadState
from tpu_slices.domain.model.slices import SLICES_PER_WORKLOAD
from tpu_slices.domain.planning.host_labels import ACCELERATOR, TOPOLOGY
from tpu_slices.wire.jobsets import strings
from tpu_slices.wire.workloads import (
    Json,
    chips_of,
    is_count,
    leader_with,
    opted_out,
    reading,
    request_of_template,
)

NAME = "leaderworkerset.sigs.k8s.io/name"
GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"


def is_served(obj: Json) -> bool:
    """Return whether neither a LeaderWorkerSet nor a template of it has opted out."""
    return not any(opted_out(each) for each in (obj, *_templates(obj)))


def asks_for_tpu(obj: Json) -> bool:
    """Return whether a template requests chips; raise ValueError like `workloads.requests_of`."""
    with reading("spec.leaderWorkerTemplate"):
        return any(chips_of(template) for template in _templates(obj))


def groups_of(obj: Json) -> int:
    """Return the number of groups; raise ValueError like `workloads.requests_of`."""
    groups = obj["spec"].get("replicas", 1)
    if not isinstance(groups, int) or groups < 0:
        raise ValueError(f'spec.replicas: "{groups}" is not a valid number of groups')
    return groups


def not_ours(obj: Json) -> str:
    """Return why a group is not the hosts of one slice, as a clause with the remedy; empty if it may be.

    Raise ValueError like `workloads.requests_of`.
    """
    with reading("spec.leaderWorkerTemplate"):
        if obj["spec"]["leaderWorkerTemplate"].get("subGroupPolicy") is not None:
            return (
                "subGroupPolicy makes slices of subgroups, and a group gets one slice: remove it, or make a group of "
                "each subgroup"
            )
        leader, *workers = (_hardware(template) for template in _templates(obj))
        if not leader[0] and any(chips for chips, *_ in workers):
            return (
                "leaderTemplate requests no google.com/tpu, so that the leader is no host of its group's slice: "
                "give it the chips and selectors of the workers"
            )
        if any(worker != leader for worker in workers):
            return (
                "leaderTemplate and workerTemplate request other hardware, and a group gets one slice: give them the "
                f"same google.com/tpu, {ACCELERATOR} and {TOPOLOGY}"
            )
        return ""


def _hardware(template: Json) -> tuple[object, ...]:
    selector = strings(template["spec"], "nodeSelector")
    return chips_of(template), selector.get(ACCELERATOR), selector.get(TOPOLOGY)


def requests_of(obj: Json) -> tuple[TemplateRequest, ...]:
    """Return the request of each group, as its leader makes it; raise ValueError like `workloads.requests_of`."""
    with reading("spec.leaderWorkerTemplate"):
        leader = request_of_template(next(_templates(obj)))
    with reading("spec"):
        if (groups := groups_of(obj)) > SLICES_PER_WORKLOAD:
            raise ValueError(f"replicas: {groups} slices, at most {SLICES_PER_WORKLOAD} of a workload are supported")
    return (replace(leader, replicas=groups),)


def state_of(obj: Json) -> WorkloadState:
    """Return the state of a LeaderWorkerSet, which serves until it is deleted."""
    return WorkloadState.DELETED if "deletionTimestamp" in obj["metadata"] else WorkloadState.ACTIVE


def is_leader(pod: Json) -> bool:
    labels = strings(pod["metadata"], "labels")
    return labels.get(WORKER_INDEX) == "0" and NAME in labels and is_count(labels.get(GROUP_INDEX, ""))


def leader_of(pod: Json) -> WaitingLeader:
    """Return the leader of a group; raise ValueError like `workloads.requests_of`."""
    with reading("Pod"):
        return leader_with(pod, "", int(strings(pod["metadata"], "labels")[GROUP_INDEX]))


def _templates(obj: Json) -> Iterator[Json]:
    """Yield the pod template of the leader first, and the workers' if that is another."""
    template = obj["spec"]["leaderWorkerTemplate"]
    leader = template.get("leaderTemplate")
    yield from (each for each in (leader, template["workerTemplate"]) if each is not None)
