"""What users write: manifests of workloads that ask for given hardware."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tests.builders import a_request
from tests.relay.objects import container
from tpu_slices.domain.catalogue.topology import Topology
from tpu_slices.domain.model.capacity import OF_NO_HOSTS
from tpu_slices.domain.model.facts import EXCLUSIVE, GROUP_EXCLUSIVE, TemplateRequest
from tpu_slices.domain.model.gangs import GANG, GANG_HOLD_FOR
from tpu_slices.domain.model.slices import OwnerKind
from tpu_slices.wire.workloads import Json

_EXCLUSIVE = {OwnerKind.JOBSET: EXCLUSIVE, OwnerKind.LEADER_WORKER_SET: GROUP_EXCLUSIVE}


def a_manifest(
    kind: OwnerKind = OwnerKind.JOBSET, slices: int = 1, request: TemplateRequest | None = None, *, shared: bool = False
) -> Json:
    """Return a workload whose pods ask for what a request does: chips, node selector, tolerations, exclusiveness.

    `shared`: its pods are of Jobs of a JobSet of their own, which share the slice.
    """
    asked = request or a_request()
    template = _template(asked)
    hosts = Topology.parse(asked.topology or "").chips // asked.chips_per_pod
    jobs, pods = (hosts, 1) if shared else (slices, hosts)
    job = {"completionMode": "Indexed", "parallelism": pods, "completions": pods, "template": template}
    specs: Mapping[OwnerKind, Json] = {
        OwnerKind.JOBSET: {
            "replicatedJobs": [{"name": asked.replicated_job, "replicas": jobs, "template": {"spec": job}}]
        },
        OwnerKind.JOB: job,
        OwnerKind.LEADER_WORKER_SET: {
            "replicas": slices,
            "leaderWorkerTemplate": {"size": hosts, "workerTemplate": template},
        },
        OwnerKind.POD: template["spec"],
    }
    exclusive = {_EXCLUSIVE[kind]: asked.exclusive_topology} if asked.exclusive_topology and kind in _EXCLUSIVE else {}
    said = {key: value for key, value in asked.requested_annotations if key in OF_NO_HOSTS}
    annotations = {**exclusive, **said, **({GANG: asked.gang} if asked.gang else {})}
    annotations |= {GANG_HOLD_FOR: f"{asked.gang_hold_for}s"} if asked.gang_hold_for else {}
    metadata = {"annotations": annotations} if annotations else {}
    return {"apiVersion": kind.api_version, "kind": kind.value, "metadata": metadata, "spec": specs[kind]}


def a_job_of_one_pod() -> Json:
    """Return a Job without completion indexes, whose one pod has all chips of a host."""
    made = a_manifest(OwnerKind.JOB, request=a_request(topology="2x4", chips_per_pod=8))
    return {**made, "spec": {key: value for key, value in made["spec"].items() if key != "completionMode"}}


def groups_without_chips_for_leaders(groups: int = 1, request: TemplateRequest | None = None) -> Json:
    """Return a LeaderWorkerSet whose leaders have no chips, so that its workers are the hosts."""
    made = a_manifest(OwnerKind.LEADER_WORKER_SET, groups, request)
    template = made["spec"]["leaderWorkerTemplate"]
    apart = {"size": template["size"] + 1, "leaderTemplate": {"spec": {"containers": [container(0)]}}}
    return {**made, "spec": {**made["spec"], "leaderWorkerTemplate": {**template, **apart}}}


def _template(asked: TemplateRequest) -> Json:
    spec: dict[str, Any] = {
        "containers": [container(asked.chips_per_pod)],
        "nodeSelector": dict(asked.node_selector),
    }
    if asked.tolerations:
        spec["tolerations"] = [asdict(each) for each in asked.tolerations]
    return {"spec": spec}
