"""A pod as the API server submits it, as far as that says where it may run. Pure.

The fields are of their schema's types: the API server has read them before it asks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from relay.objects import Reference
from relay.translate import controller_of
from tpu_slices.domain.model.clusters import PodsOf
from tpu_slices.domain.model.facts import (
    EXCLUSIVE,
    GROUP_EXCLUSIVE,
    INJECT_SLICE_SELECTOR,
    PROVISIONING_REQUESTS,
    SLICE_TOPOLOGY,
)
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.planning.host_labels import GKE_PROVISIONERS, GROUP_KEYS, NODE_POOL, TOPOLOGY
from tpu_slices.wire.jobs import fills_a_slice
from tpu_slices.wire.leader_worker_sets import GROUP_KEY, LEADER_HAS_CHIPS, NAME, SUBGROUP_SIZE, WORKER_INDEX
from tpu_slices.wire.pods import made_by, new_key
from tpu_slices.wire.workloads import (
    BY_NODE_SELECTOR,
    CHIPS,
    COMPLETION_INDEX,
    GLOBAL_INDEX,
    JOB_INDEX,
    JOBSET_NAME,
    JOBSET_UID,
    OPTED_OUT,
)

Json = dict[str, Any]

KUEUE_TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"
"""Kueue's annotation of pods that are admitted to one domain of a topology."""
_INDEX = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Workload:
    """What hosts are made for: a Job or LeaderWorkerSet by its name, and the keys of the pod in question.

    `kind` is that of the label google.com/tpu-provisioner-parent-kind. No key: it is not known yet. No name: its hosts
    are those with the key alone.
    """

    kind: str
    name: str
    keys: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Pod:
    """What a pod says; what it leaves out is empty, or None."""

    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    selector: Mapping[str, str]
    affinity: Json | None
    controller: Reference | None
    containers: tuple[Json, ...]
    init_containers: tuple[Json, ...]
    gates: tuple[Json, ...]
    key_by_itself: str
    """The key that it has if it is a workload by itself; empty: the cluster's settings do not serve such."""

    @classmethod
    def read(cls, obj: Mapping[str, Any], serve: Collection[PodsOf] = ()) -> Self:
        """Return a pod; `serve`: whose pods are workloads by themselves."""
        metadata, spec = obj["metadata"], obj["spec"]
        return cls(
            namespace=metadata["namespace"],
            labels=metadata.get("labels") or {},
            annotations=metadata.get("annotations") or {},
            selector=spec.get("nodeSelector") or {},
            affinity=spec.get("affinity"),
            controller=controller_of(metadata),
            containers=tuple(spec["containers"]),
            init_containers=tuple(spec.get("initContainers") or ()),
            gates=tuple(spec.get("schedulingGates") or ()),
            key_by_itself=new_key(obj) if made_by(obj) in serve else "",
        )

    @property
    def terms(self) -> tuple[Json, ...] | None:
        """Those of its required node affinity; None if it has none."""
        required = _within(self.affinity, "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
        return None if required is None else tuple(required.get("nodeSelectorTerms") or ())

    @property
    def is_judged(self) -> bool:
        """Whether it asks for chips, and does not select the hosts of a TPUNodeGroup."""
        return self.asks_for_chips and not GROUP_KEYS & self.selector.keys()

    @property
    def asks_for_chips(self) -> bool:
        asked = (_chips(each, kind) for each in (*self.containers, *self.init_containers) for kind in _RESOURCES)
        return any(chips not in ("", "0") for chips in asked)

    @cached_property
    def workload(self) -> Workload | None:
        """What its hosts are made for; None: no slice is made for it.

        | pod                                                      | kind            | keys                       |
        |----------------------------------------------------------|-----------------|----------------------------|
        | opted out, or with hosts or slices of GKE's own making   | none            |                            |
        | of a LeaderWorkerSet, with a group key                   | leaderworkerset | it                         |
        | - without, as LeaderWorkerSet's webhook comes later      | leaderworkerset | none yet                   |
        | of an Indexed Job of a JobSet                            | job             | `UID.jN`, `UID.rN`         |
        | - not labelled with the JobSet's UID, or the indices     | none            |                            |
        | of an Indexed Job by itself                              | job             | its UID                    |
        | of a Job that is not Indexed, which fills a slice        | job             | as if it were              |
        | by itself, where settings serve such, which fills one    | pod             | its controller's UID, or   |
        |                                                          |                 | that of its name           |
        | any other                                                | none            |                            |
        """
        if self.is_static:
            return None
        if group := self.labels.get(NAME):
            key = self.labels.get(GROUP_KEY)
            return Workload("leaderworkerset", group, () if key is None else (key,))
        if self.key_by_itself and self._fills_a_slice:
            return Workload("pod", "", (self.key_by_itself,))
        if (job := self._job) is None:
            return None
        keys = self._keys_of_job(job)
        return Workload("job", job.name, keys) if keys else None

    @property
    def is_kept_together(self) -> bool:
        """Whether all pods of its Job or group run on one slice, whichever it is."""
        return (
            (bool(self._jobset) and self.annotations.get(EXCLUSIVE) == NODE_POOL)
            or (bool(self.labels.get(NAME)) and self.annotations.get(GROUP_EXCLUSIVE) == NODE_POOL)
            or NODE_POOL in self.selector
            or (bool(self.terms) and all(map(_names_a_pool, self.terms or ())))
            or self.annotations.get(KUEUE_TOPOLOGY) == NODE_POOL
            or self._fills_a_slice
        )

    @property
    def is_to_be_held(self) -> bool:
        """Whether it lacks the gate that holds the pods of a gang until the slices of all of them stand.

        A pod that follows needs none.
        """
        workload = self.workload
        is_of_gang = self.labels.get(GANG) == "true" and workload is not None and bool(workload.name)
        return is_of_gang and not self._follows and all(each["name"] != GANG for each in self.gates)

    @property
    def _follows(self) -> bool:
        """Whether its controller makes it only once its leader, which is held itself, has a node.

        JobSet does not where the nodes are labelled for a Job.
        """
        if self._jobset:
            index = self.annotations.get(COMPLETION_INDEX, self.labels.get(COMPLETION_INDEX, "0"))
            exclusive = self.annotations.get(EXCLUSIVE) == NODE_POOL and BY_NODE_SELECTOR not in self.annotations
            return exclusive and index != "0"
        is_worker = bool(self.labels.get(NAME)) and self.labels.get(WORKER_INDEX) != "0"
        is_behind = is_worker and self.annotations.get(LEADER_HAS_CHIPS) == "true"
        return is_behind and self.annotations.get(GROUP_EXCLUSIVE) == NODE_POOL

    @property
    def is_static(self) -> bool:
        """Whether no slice is made for it, as it or its template says."""
        said = (self.labels, self.annotations)
        topology = self.selector.get(TOPOLOGY, "")
        return (
            any(each.get(OPTED_OUT) == "true" or INJECT_SLICE_SELECTOR in each for each in said)
            or any(key in self.selector for key in GKE_PROVISIONERS)
            or any(key in self.annotations for key in PROVISIONING_REQUESTS)
            or self.annotations.get(SLICE_TOPOLOGY, topology) != topology
            or SUBGROUP_SIZE in self.annotations
        )

    @property
    def _job(self) -> Reference | None:
        """The Job that controls it, if that is Indexed, or if the pod may be its only one."""
        may_lead = COMPLETION_INDEX in self.labels or COMPLETION_INDEX in self.annotations or self._fills_a_slice
        by = self.controller
        return by if may_lead and by and (by.api_version, by.kind) == ("batch/v1", "Job") else None

    @property
    def _jobset(self) -> str:
        """The UID of the JobSet of its Job, empty if it has none."""
        return self.labels.get(JOBSET_UID, "") if self._job else ""

    def _keys_of_job(self, job: Reference) -> tuple[str, ...]:
        if jobset := self._jobset:
            texts = [self.labels.get(key, "") for key in (GLOBAL_INDEX, JOB_INDEX)]
            if not all(map(_INDEX.fullmatch, texts)):
                return ()
            job_of_all, job_of_its_kind = map(int, texts)
            first = job_of_all - job_of_its_kind
            return (f"{jobset}.j{job_of_all}", f"{jobset}.r{first}") if first >= 0 else ()
        return () if JOBSET_NAME in self.labels else (job.uid,)

    @property
    def _fills_a_slice(self) -> bool:
        return fills_a_slice(self.selector, self.containers)


_RESOURCES = ("limits", "requests")


def _chips(container: Json, kind: str) -> str:
    """Return the chips of a container's limits or requests; empty: none are named."""
    return str(_within(container, "resources", kind, CHIPS) or "")


def _names_a_pool(term: Json) -> bool:
    """Return whether a term is met by the nodes of one pool alone."""
    return any(
        (each["key"], each["operator"]) == (NODE_POOL, "In") and len(each.get("values") or ()) == 1
        for each in term.get("matchExpressions") or ()
    )


def _within(obj: Any, *path: str) -> Any:
    """Return what is at a path, None if there is nothing."""
    for key in path:
        if obj is None:
            return None
        obj = obj.get(key)
    return obj
