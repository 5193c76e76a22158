"""What hangs or fails although it is accepted, and gets its slices: each with the remedy. Pure.

| what                                             | what happens                                                      |
|--------------------------------------------------|-------------------------------------------------------------------|
| pods of several hosts without names              | they do not find each other, on hosts that are billed             |
| a PodGroup of pods that come after their leader  | no leader is scheduled, so that they never come                   |
| - that the Job controller makes for each Job     | the same                                                          |
| spot hosts, and nothing that restarts            | the first preemption ends the workload                            |
| a JobSet without what its webhook adds           | a second `kubectl apply` of its file is refused                   |
| groups beyond replicas in a rollout (maxSurge)   | they get no slice, and the rollout waits for them                 |

JobSet's webhook refuses the other pods of exclusively placed Jobs until their leader is scheduled (pkg/webhooks);
LeaderWorkerSet makes the workers of such groups then, and of startupPolicy LeaderReady later still
(pkg/controllers/pod_controller.go). No pod of a PodGroup is tried before minCount of them are there (Kubernetes 1.36).
From 1.37 on the Job controller makes one for each Job of a JobSet whose annotation names a template of a Workload.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tpu_slices.domain.model.facts import EXCLUSIVE, GROUP_EXCLUSIVE
from tpu_slices.domain.model.slices import CapacityKind, OwnerKind, SliceSpec
from tpu_slices.wire.workloads import BY_NODE_SELECTOR, Json, annotations_of
from tpu_slices_cli.applied.creation import count_of
from tpu_slices_cli.applied.world import World, named, templates_of

_ADDED = {"completionMode": "Indexed", "restartPolicy": "OnFailure"}
"""What JobSet's webhook adds to a Job and to its pods."""
_JOB_NAME = ("batch.kubernetes.io/job-name", "job-name")
_GROUP_TEMPLATE = "scheduling.k8s.io/group-template-name"
"""The annotation of a JobSet's Job that names the template of its PodGroup, in the Workload of the JobSet."""
_NAMELESS = "its pods have no names by which they find each other, and they hang on hosts that are billed"


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload with the slices that it would get."""

    body: Json
    kind: OwnerKind
    slices: Mapping[str, SliceSpec]
    """One of each replicatedJob, by its name; of another kind by the empty one."""

    @property
    def name(self) -> str:
        return named(self.body)


def hangs(workload: Workload, world: World) -> Iterator[str]:
    """Yield what may go wrong with a workload that gets slices."""
    yield from _nameless(workload, world)
    yield from _pod_groups(workload, world)
    yield from _made_pod_groups(workload, world)
    yield from _without_restarts(workload)
    yield from _surges(workload)
    metadata = workload.body["metadata"]
    if workload.kind is OwnerKind.JOBSET and "uid" not in metadata and metadata.get("name"):
        yield from _added(workload)


def _nameless(workload: Workload, world: World) -> Iterator[str]:
    spec = workload.body["spec"]
    if all(each.hosts == 1 for each in workload.slices.values()):
        return
    off = (spec.get("network") or {}).get("enableDNSHostnames") is False
    named = all(each["spec"].get("subdomain") for _, each in templates_of(workload.body, workload.kind))
    if workload.kind is OwnerKind.JOBSET and off and not named:
        yield f"{workload.name}: spec.network.enableDNSHostnames is false: {_NAMELESS}: remove it"
    if workload.kind is OwnerKind.JOB and count_of(spec, "parallelism", 1) > 1:
        why = _why_nameless(workload, world)
        yield from [f"{workload.name}: spec.template.spec.subdomain {why}"] if why else ()


def _why_nameless(workload: Workload, world: World) -> str:
    """Return what is wrong with the subdomain of a Job's pods, and the remedy; empty: nothing."""
    body = workload.body
    template, pods = body["spec"]["template"], count_of(body["spec"], "parallelism", 1)
    subdomain = template["spec"].get("subdomain")
    if not subdomain:
        return (
            f"is missing: without it its {pods} pods have no names by which they find each other, and they hang on "
            "hosts that are billed: set it to the name of a headless Service that selects them, or make it a Job of a "
            "JobSet, which has one"
        )
    service = world.get("Service", subdomain, world.namespace_of(body))
    if service is None:
        return (
            f"is {subdomain}, and no file has a headless Service {subdomain} of the namespace: create one that selects "
            "its pods, unless the namespace has it already: without it they do not find each other"
        )
    itself = service.get("spec") or {}
    if itself.get("clusterIP") != "None":
        return f"is {subdomain}, and Service {subdomain} is not headless: {_NAMELESS}: set its spec.clusterIP to None"
    labels = {**dict.fromkeys(_JOB_NAME, body["metadata"].get("name")), **_labels(template)}
    if not (itself.get("selector") or {}).items() <= labels.items():
        remedy = f"select {_JOB_NAME[0]}: {body['metadata'].get('name')}"
        return f"is {subdomain}, and Service {subdomain} does not select them: {_NAMELESS}: {remedy}"
    return ""


def _pod_groups(workload: Workload, world: World) -> Iterator[str]:
    there: dict[str, int] = {}
    for group, pods in _at_once(workload):
        there[group] = there.get(group, 0) + pods
    for group, pods in there.items():
        found = world.get("scheduling.k8s.io/PodGroup", group, world.namespace_of(workload.body))
        policy = ((found or {}).get("spec") or {}).get("schedulingPolicy") or {}
        least = count_of(policy.get("gang") or {}, "minCount", 0)
        if least > pods:
            theirs = f"PodGroup {group}: spec.schedulingPolicy.gang.minCount is {least}"
            are = "is" if pods == 1 else "are"
            yield (
                f"{workload.name}: {theirs}, and only {pods} of its pods {are} there before a leader is scheduled: "
                f"it waits for ever, and no slice is made: set it to {pods} at most, or remove what has the other pods "
                f"wait for their leaders ({_first(workload.kind)})"
            )


def _made_pod_groups(workload: Workload, world: World) -> Iterator[str]:
    """Yield which Jobs have PodGroups of more pods than their leaders, which have to be scheduled first."""
    if workload.kind is not OwnerKind.JOBSET:
        return
    body = workload.body
    for job in body["spec"]["replicatedJobs"]:
        template = annotations_of(job["template"]).get(_GROUP_TEMPLATE)
        if template is None or not _leads(body, job):
            continue
        for made in world.of_kind("scheduling.k8s.io/Workload", world.namespace_of(body)):
            if _least_of(made, body, template) > 1:
                where = f"Workload {made['metadata'].get('name')}, podGroupTemplate {template}"
                yield (
                    f"{workload.name}, replicatedJob {job['name']}: {where}: schedulingPolicy.gang.minCount is "
                    f"{_least_of(made, body, template)}, and only the leader of each Job is there before it is "
                    f"scheduled: it waits for ever, and no slice is made: remove the annotation {_GROUP_TEMPLATE}, or "
                    f"what has the other pods wait for their leaders ({EXCLUSIVE})"
                )


def _least_of(made: Json, jobset: Json, template: str) -> int:
    """Return how many pods have to be there by a template of a Workload; 0: it is not that of the JobSet."""
    spec = made.get("spec") or {}
    whose = spec.get("controllerRef") or {}
    if (whose.get("kind"), whose.get("name")) != (jobset["kind"], jobset["metadata"].get("name")):
        return 0
    found = (each for each in spec.get("podGroupTemplates") or () if each.get("name") == template)
    named_so: Json = next(found, {})
    policy = named_so.get("schedulingPolicy") or {}
    return count_of(policy.get("gang") or {}, "minCount", 0)


def _first(kind: OwnerKind) -> str:
    return f"{GROUP_EXCLUSIVE}, startupPolicy" if kind is OwnerKind.LEADER_WORKER_SET else EXCLUSIVE


def _at_once(workload: Workload) -> Iterator[tuple[str, int]]:
    """Yield the PodGroup of each template in one, and how many of its pods are there before any is scheduled."""
    body, kind = workload.body, workload.kind
    for (_, template), pods in zip(templates_of(body, kind), _there(body, kind), strict=True):
        group = (template["spec"].get("schedulingGroup") or {}).get("podGroupName")
        if group:
            yield str(group), pods


def _there(body: Json, kind: OwnerKind) -> Iterator[int]:
    """Yield how many pods of each template are there before any is scheduled."""
    spec = body["spec"]
    if kind is OwnerKind.JOBSET:
        for job in spec["replicatedJobs"]:
            yield count_of(job, "replicas", 1) * (1 if _leads(body, job) else _pods(job["template"]["spec"]))
    elif kind is OwnerKind.JOB:
        yield _pods(spec)
    elif kind is OwnerKind.LEADER_WORKER_SET:
        whole, groups = spec["leaderWorkerTemplate"], count_of(spec, "replicas", 1)
        leads = GROUP_EXCLUSIVE in annotations_of(body) or spec.get("startupPolicy") == "LeaderReady"
        workers = 0 if leads else count_of(whole, "size", 1) - 1
        yield from (groups, groups * workers) if whole.get("leaderTemplate") else (groups * (1 + workers),)


def _leads(jobset: Json, job: Json) -> bool:
    """Return whether the other pods of the Jobs of a replicatedJob come after their leader is scheduled."""
    both = {**annotations_of(jobset), **annotations_of(job["template"])}
    return EXCLUSIVE in both and BY_NODE_SELECTOR not in both


def _pods(job_spec: Json) -> int:
    parallelism = count_of(job_spec, "parallelism", 1)
    return min(parallelism, count_of(job_spec, "completions", parallelism))


def _without_restarts(workload: Workload) -> Iterator[str]:
    spec, name = workload.body["spec"], workload.name
    on_spot = {job for job, each in workload.slices.items() if each.capacity.kind is CapacityKind.SPOT}
    preempted = "spot hosts may be preempted at any time, and nothing restarts the"
    if workload.kind is OwnerKind.JOB and on_spot and not _retried(spec):
        yield f"{name}: {preempted} Job: set spec.backoffLimit above 0, and continue from checkpoints"
    if workload.kind is not OwnerKind.JOBSET:
        return
    policy = spec.get("failurePolicy") or {}
    if policy.get("maxRestarts") or policy.get("rules"):
        return
    for job in spec["replicatedJobs"]:
        if job["name"] in on_spot and not _retried(job["template"]["spec"]):
            remedy = "set spec.failurePolicy.maxRestarts, and continue from checkpoints"
            yield f"{name}, replicatedJob {job['name']}: {preempted} Jobs: {remedy}"


def _retried(job_spec: Json) -> bool:
    limit = job_spec.get("backoffLimit")
    return limit != 0 or bool(job_spec.get("podFailurePolicy")) or bool(job_spec.get("backoffLimitPerIndex"))


def _surges(workload: Workload) -> Iterator[str]:
    """Yield that a rollout waits for groups that get no slice (pkg/controllers, rollingUpdatePartition)."""
    if workload.kind is not OwnerKind.LEADER_WORKER_SET:
        return
    rollout = (workload.body["spec"].get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
    if rollout.get("maxSurge") not in {None, 0, "0", "0%"}:
        yield (
            f"{workload.name}: spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge is {rollout['maxSurge']}: "
            "groups beyond replicas get no slice, and a rollout waits for them once maxUnavailable groups are made "
            "anew: set it to 0"
        )


def _added(workload: Workload) -> Iterator[str]:
    for job in workload.body["spec"]["replicatedJobs"]:
        spec = job["template"]["spec"]
        fields = {**spec, "restartPolicy": spec["template"]["spec"].get("restartPolicy")}
        added = [f"{field}: {value}" for field, value in _ADDED.items() if not fields.get(field)]
        if added:
            it = "them" if len(added) > 1 else "it"
            yield (
                f"{workload.name}, replicatedJob {job['name']}: JobSet adds {' and '.join(added)} when it is created, "
                f"and refuses a second `kubectl apply` of the file without {it}: add {it}"
            )


def _labels(template: Json) -> dict[str, Any]:
    return (template.get("metadata") or {}).get("labels") or {}
