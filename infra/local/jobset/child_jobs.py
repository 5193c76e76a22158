"""The child Jobs of a JobSet: their names, labels, templates and restart attempt (pure).

Source: sigs.k8s.io/jobset pkg/controllers/jobset_controller.go (constructJob, labelAndAnnotateObject,
resumeJob, getChildJobs). JobSets are expected to have their defaults filled in.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha1
from typing import Any, Self

from infra.local.clients.conditions import is_true
from infra.local.clients.objects import Object
from infra.local.clients.owners import controlled_by
from infra.local.jobset import keys
from infra.local.jobset.lifetime import suspended


@dataclass(frozen=True, slots=True, kw_only=True)
class Children:
    """A JobSet's Jobs. `previous` belong to an earlier attempt and are to be deleted; the others to the current one."""

    active: tuple[Object, ...]
    succeeded: tuple[Object, ...]
    failed: tuple[Object, ...]
    previous: tuple[Object, ...]

    @classmethod
    def of(cls, jobset: Object, jobs: Iterable[Object]) -> Self:
        every = tuple(jobs)
        attempt = restarts(jobset)
        current = [job for job in every if _attempt(job) >= attempt]
        return cls(
            active=tuple(job for job in current if not (is_true(job, "Complete") or is_true(job, "Failed"))),
            succeeded=tuple(job for job in current if is_true(job, "Complete")),
            failed=tuple(job for job in current if is_true(job, "Failed")),
            previous=tuple(job for job in every if _attempt(job) < attempt),
        )

    @property
    def names(self) -> set[str]:
        every = (*self.active, *self.succeeded, *self.failed, *self.previous)
        return {job["metadata"]["name"] for job in every}


def restarts(jobset: Object) -> int:
    return int((jobset.get("status") or {}).get("restarts", 0))


def _attempt(job: Object) -> int:
    return int(job["metadata"]["labels"][keys.RESTART_ATTEMPT])


def replicated_job_name(job: Object) -> str:
    return str(job["metadata"]["labels"][keys.REPLICATED_JOB])


def job_name(jobset: Object, replicated: Object, index: int) -> str:
    return f"{jobset['metadata']['name']}-{replicated['name']}-{index}"


def job_key(namespace: str, name: str) -> str:
    """Return an identifier of a Job across namespaces: 40 characters, valid as a label value."""
    return sha1(f"{namespace}/{name}".encode(), usedforsecurity=False).hexdigest()


def subdomain(jobset: Object) -> str:
    return str(jobset["spec"]["network"].get("subdomain") or jobset["metadata"]["name"])


def child_job(jobset: Object, replicated: Object, index: int) -> Object:
    """Return one Job of a replicatedJob."""
    template = replicated["template"]
    labels = labels_of(jobset, replicated, index)
    marks = labels | _placement(jobset, template)
    by_selector = {keys.EXCLUSIVE_TOPOLOGY, keys.NODE_SELECTOR_STRATEGY} <= marks.keys()
    pod = _marked(template["spec"]["template"], labels, marks)
    name = job_name(jobset, replicated, index)
    namespace = jobset["metadata"]["namespace"]
    if jobset["spec"]["network"]["enableDNSHostnames"]:
        pod = _with_spec(pod, subdomain=subdomain(jobset))
    if by_selector:
        pod = _selecting(pod, f"{namespace}_{name}")
    marked = _marked(template, labels, marks)
    return {
        "metadata": marked["metadata"]
        | {"name": name, "namespace": namespace, "ownerReferences": [controlled_by(jobset)]},
        "spec": template["spec"] | {"template": pod, "suspend": suspended(jobset)},
    }


def labels_of(jobset: Object, replicated: Object, index: int) -> dict[str, str]:
    """Return the labels, which are also annotations, of one child Job and its pods."""
    metadata, spec = jobset["metadata"], jobset["spec"]
    every = spec["replicatedJobs"]
    group = [job for job in every if job["groupName"] == replicated["groupName"]]
    name = job_name(jobset, replicated, index)
    labels = {
        keys.JOBSET_NAME: metadata["name"],
        keys.JOBSET_UID: metadata["uid"],
        keys.REPLICATED_JOB: replicated["name"],
        keys.REPLICATED_JOB_REPLICAS: str(replicated["replicas"]),
        keys.RESTART_ATTEMPT: str(restarts(jobset)),
        keys.GLOBAL_REPLICAS: str(_replicas(every)),
        keys.JOB_INDEX: str(index),
        keys.JOB_GLOBAL_INDEX: str(_replicas(_before(replicated, every)) + index),
        keys.JOB_KEY: job_key(metadata["namespace"], name),
        keys.GROUP_NAME: replicated["groupName"],
        keys.GROUP_REPLICAS: str(_replicas(group)),
        keys.JOB_GROUP_INDEX: str(_replicas(_before(replicated, group)) + index),
    }
    if (coordinator := spec.get("coordinator")) is not None:
        at = f"{coordinator.get('jobIndex', 0)}-{coordinator.get('podIndex', 0)}"
        host = f"{metadata['name']}-{coordinator['replicatedJob']}-{at}"
        labels[keys.COORDINATOR] = f"{host}.{subdomain(jobset)}"
    return labels


def _replicas(replicated_jobs: Iterable[Object]) -> int:
    return sum(job["replicas"] for job in replicated_jobs)


def _before(replicated: Object, others: list[Object]) -> list[Object]:
    names = [job["name"] for job in others]
    return others[: names.index(replicated["name"])]


def _placement(jobset: Object, template: Object) -> dict[str, str]:
    """Return the annotations of exclusive placement: the JobSet's, overridden by the replicatedJob's own."""
    marks: dict[str, str] = {}
    for owner in (jobset, template):
        annotations = (owner.get("metadata") or {}).get("annotations") or {}
        if keys.EXCLUSIVE_TOPOLOGY in annotations:
            asked = (keys.EXCLUSIVE_TOPOLOGY, keys.NODE_SELECTOR_STRATEGY)
            marks |= {key: annotations[key] for key in asked if key in annotations}
    return marks


def _marked(template: Object, labels: dict[str, str], annotations: dict[str, str]) -> Object:
    metadata = template.get("metadata") or {}
    marks = {
        "labels": (metadata.get("labels") or {}) | labels,
        "annotations": (metadata.get("annotations") or {}) | annotations,
    }
    return template | {"metadata": metadata | marks}


def _with_spec(pod: Object, **fields: Any) -> Object:
    return pod | {"spec": pod["spec"] | fields}


def _selecting(pod: Object, namespaced_job: str) -> Object:
    """Return the pod with the node selector strategy: it selects nodes labelled for its Job, despite their taint."""
    toleration = {"key": keys.NO_SCHEDULE, "operator": "Exists", "effect": "NoSchedule"}
    return _with_spec(
        pod,
        nodeSelector=(pod["spec"].get("nodeSelector") or {}) | {keys.NAMESPACED_JOB: namespaced_job},
        tolerations=[*(pod["spec"].get("tolerations") or ()), toleration],
    )


def resumed(job: Object, replicated: Object) -> Object:
    """Resume a suspended Job, with additions to the JobSet's template since then (by Kueue, for example)."""
    old, new = job["spec"]["template"], replicated["template"]["spec"]["template"]
    metadata = {
        key: ((old.get("metadata") or {}).get(key) or {}) | ((new.get("metadata") or {}).get(key) or {})
        for key in ("labels", "annotations")
    }
    lists = {key: _merged(old, new, key) for key in ("tolerations", "schedulingGates")}
    selector = (old["spec"].get("nodeSelector") or {}) | (new["spec"].get("nodeSelector") or {})
    found = {key: value for key, value in {**lists, "nodeSelector": selector}.items() if value}
    template = _with_spec(old | {"metadata": (old.get("metadata") or {}) | metadata}, **found)
    return job | {"spec": job["spec"] | {"template": template, "suspend": False}}


def _merged(old: Object, new: Object, key: str) -> list[Object]:
    first, second = (pod["spec"].get(key) or [] for pod in (old, new))
    return [*first, *(item for item in second if item not in first)]


def stopped(job: Object) -> Object:
    """Return the Job, suspended."""
    return job | {"spec": job["spec"] | {"suspend": True}}
