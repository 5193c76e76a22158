"""Reads LeaderWorkerSets, and identifies the pods that lead (sigs.k8s.io/lws api/leaderworkerset/v1, as of 0.9).

Each group is one slice, whose hosts are its pods with chips:

| the group's leader, the pod of worker index 0 | hosts           | who leads the slice           |
|-----------------------------------------------|-----------------|-------------------------------|
| requests chips                                | all of its pods | the group's leader            |
| requests none, and is somewhere else          | its workers     | the worker of worker index 1  |

An annotation of the workers says which it is, of the revision that they are of (pkg/utils/accelerators/tpu.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product, starmap
from typing import Any

from tpu_slices.domain.model.facts import (
    GROUP_EXCLUSIVE,
    Requirement,
    TemplateRequest,
    Toleration,
    WaitingLeader,
    WorkloadState,
)
from tpu_slices.domain.model.slices import SLICES_PER_WORKLOAD
from tpu_slices.domain.planning.host_labels import ACCELERATOR, TOPOLOGY
from tpu_slices.wire.jobsets import strings
from tpu_slices.wire.workloads import (
    Json,
    annotations_of,
    chips_of,
    is_count,
    leader_with,
    opted_out,
    pods_of,
    reading,
    request_of_template,
    shape_of_pod,
)

NAME = "leaderworkerset.sigs.k8s.io/name"
GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
GROUP_KEY = "leaderworkerset.sigs.k8s.io/group-key"
"""The label by which LeaderWorkerSet's webhook tells groups apart (domain/planning/keys.py)."""
SUBGROUP_SIZE = "leaderworkerset.sigs.k8s.io/subgroup-size"
"""An annotation of the pods of groups that have subgroups."""
LEADER_HAS_CHIPS = "leaderworkerset.sigs.k8s.io/leader-requests-tpus"
"""An annotation of the workers of groups whose leader requests chips: `true`."""

Terms = tuple[tuple[Requirement, ...], ...]
"""A required node affinity: all requirements of one term must be met; empty: none."""


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
    if not isinstance(groups, int) or not 0 <= groups < 1 << 31:
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
        if leader[0] and any(worker != leader for worker in workers):
            return (
                "leaderTemplate and workerTemplate request other hardware, and a group gets one slice: give them the "
                f"same google.com/tpu, {ACCELERATOR} and {TOPOLOGY}, or none of these to leaderTemplate"
            )
        return ""


def _hardware(template: Json) -> tuple[object, ...]:
    return chips_of(template), *shape_of_pod(template)


def requests_of(obj: Json) -> tuple[TemplateRequest, ...]:
    """Return the request of each group: its leader's, with what its workers need of the same hosts, or theirs alone.

    Raise ValueError like `workloads.requests_of`.
    """
    with reading("spec.leaderWorkerTemplate"):
        size = pods_of(obj["spec"]["leaderWorkerTemplate"], "size", 1)
        leader, *others = _templates(obj)
        request = _of_workers(obj, others[0], size - 1) if _is_apart(leader, others) else _of_all(obj, size)
    with reading("spec"):
        if (groups := groups_of(obj)) > SLICES_PER_WORKLOAD:
            raise ValueError(f"replicas: {groups} slices, at most {SLICES_PER_WORKLOAD} of a workload are supported")
    return (replace(request, replicas=groups),)


def _is_apart(leader: Json, others: Iterable[Json]) -> bool:
    """Return whether the leader of a group is no host of its slice, which its workers are."""
    return not chips_of(leader) and any(map(chips_of, others))


def _of_all(obj: Json, size: int) -> TemplateRequest:
    leader, *others = _templates(obj)
    return request_of_template(
        leader,
        **_together(*map(request_of_template, (leader, *others))),
        parallelism=size,
        completions=size,
        exclusive_topology=_exclusive_topology(obj) or _exclusive_topology(leader),
    )


def _of_workers(obj: Json, template: Json, workers: int) -> TemplateRequest:
    return request_of_template(
        template,
        parallelism=workers,
        completions=workers,
        exclusive_topology=_exclusive_topology(obj),
        leader_apart=True,
    )


def _together(leader: TemplateRequest, worker: TemplateRequest | None = None) -> dict[str, Any]:
    """Return the fields of the leader's request that its workers add to: hosts have to suit both."""
    if worker is None:
        return {}
    return {
        "affinity": _both(leader.affinity, _required(worker, leader)),
        "tolerations": tuple(
            dict.fromkeys(filter(None, starmap(_meet, product(leader.tolerations, worker.tolerations))))
        ),
        "cpu_milli": max(leader.cpu_milli, worker.cpu_milli),
        "memory_bytes": max(leader.memory_bytes, worker.memory_bytes),
        "ephemeral_bytes": max(leader.ephemeral_bytes, worker.ephemeral_bytes),
        "unoffered": tuple(dict.fromkeys((*leader.unoffered, *worker.unoffered))),
        "slicing": tuple(sorted({*leader.slicing, *worker.slicing})),
        "pod_rules": tuple(dict.fromkeys((*leader.pod_rules, *worker.pod_rules))),
    }


def _required(worker: TemplateRequest, leader: TemplateRequest) -> Terms:
    """Return the node affinity of the workers, with what they select beyond the leader."""
    beyond = tuple(
        Requirement(key=key, operator="In", values=(value,))
        for key, value in worker.node_selector
        if (key, value) not in leader.node_selector
    )
    return _both(worker.affinity, (beyond,) if beyond else ())


def _both(one: Terms, other: Terms) -> Terms:
    """Return the terms of which one is met if one of each is."""
    if not one or not other or one == other:
        return one or other
    return tuple((*first, *second) for first, second in product(one, other))


def _meet(one: Toleration, other: Toleration) -> Toleration | None:
    """Return the toleration of what both tolerate; None if there is nothing."""
    keys, effects = {one.key, other.key} - {""}, {one.effect, other.effect} - {""}
    equal = [each for each in (one, other) if each.operator != "Exists"]
    if len(keys) > 1 or len(effects) > 1 or len({each.value for each in equal}) > 1:
        return None
    return replace((*equal, one)[0], key="".join(keys), effect="".join(effects))


def state_of(obj: Json) -> WorkloadState:
    """Return the state of a LeaderWorkerSet, which serves until it is deleted."""
    return WorkloadState.DELETED if "deletionTimestamp" in obj["metadata"] else WorkloadState.ACTIVE


def is_leader(pod: Json) -> bool:
    """Return whether a pod leads the slice of its group, by the table above."""
    return is_of_a_group(pod) and chips_of(pod) > 0 and _index(pod) == ("1" if _leader_is_apart(pod) else "0")


def _index(pod: Json) -> str | None:
    return strings(pod["metadata"], "labels").get(WORKER_INDEX)


def _leader_is_apart(pod: Json) -> bool:
    """Return whether a pod with chips is a worker of a group whose leader has none."""
    return _index(pod) != "0" and strings(pod["metadata"], "annotations").get(LEADER_HAS_CHIPS) != "true"


def is_of_a_group(pod: Json) -> bool:
    labels = strings(pod["metadata"], "labels")
    return NAME in labels and is_count(labels.get(GROUP_INDEX, ""))


def leader_of(pod: Json) -> WaitingLeader:
    """Return the leader of a group; raise ValueError like `workloads.requests_of`."""
    with reading("Pod"):
        index = int(strings(pod["metadata"], "labels")[GROUP_INDEX])
        return leader_with(pod, "", index, GROUP_EXCLUSIVE)


def request_of_pod(pod: Json) -> TemplateRequest:
    """Return the request of a group's leader without its LeaderWorkerSet; raise ValueError like `requests_of`."""
    with reading("Pod"):
        return request_of_template(pod, exclusive_topology=_exclusive_topology(pod), leader_apart=_leader_is_apart(pod))


def _exclusive_topology(obj: Json) -> str:
    return annotations_of(obj).get(GROUP_EXCLUSIVE, "")


def _templates(obj: Json) -> Iterator[Json]:
    """Yield the pod template of the leader first, and the workers' if that is another."""
    template = obj["spec"]["leaderWorkerTemplate"]
    leader = template.get("leaderTemplate")
    yield from (each for each in (leader, template["workerTemplate"]) if each is not None)
