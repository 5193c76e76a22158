"""The child Jobs of a JobSet, whose defaults are filled in (pure).

Source: sigs.k8s.io/jobset pkg/controllers/jobset_controller.go (constructJob, labelAndAnnotateObject).
"""

from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha1

from tpu_standins.clients.conditions import is_true
from tpu_standins.clients.objects import Object
from tpu_standins.clients.owners import controlled_by
from tpu_standins.jobset import keys

ACTIVE, COMPLETE, FAILED, PREVIOUS = "Active", "Complete", "Failed", "Previous"


def standing(jobset: Object, jobs: Iterable[Object]) -> defaultdict[str, list[Object]]:
    """Return a JobSet's Jobs by how they stand; those of an earlier attempt are PREVIOUS, and to be deleted."""
    found: defaultdict[str, list[Object]] = defaultdict(list)
    for job in jobs:
        end = next((kind for kind in (COMPLETE, FAILED) if is_true(job, kind)), ACTIVE)
        attempt = int(job["metadata"]["labels"][keys.RESTART_ATTEMPT])
        found[PREVIOUS if attempt < restarts(jobset) else end].append(job)
    return found


def restarts(jobset: Object) -> int:
    return int(jobset.get("status", {}).get("restarts", 0))


def suspended(obj: Object) -> bool:
    return bool(obj["spec"].get("suspend", False))


def replicas(replicated_jobs: Iterable[Object]) -> int:
    return sum(each["replicas"] for each in replicated_jobs)


def wanted(jobset: Object) -> dict[str, Object]:
    """Return all Jobs of the current attempt as they are created, by name."""
    every = jobset["spec"]["replicatedJobs"]
    jobs = [_child_job(jobset, replicated, index) for replicated in every for index in range(replicated["replicas"])]
    return {job["metadata"]["name"]: job for job in jobs}


def _child_job(jobset: Object, replicated: Object, index: int) -> Object:
    template, namespace = replicated["template"], jobset["metadata"]["namespace"]
    name = f"{jobset['metadata']['name']}-{replicated['name']}-{index}"
    labels = _labels(jobset, replicated, index, f"{namespace}/{name}")
    marks = labels | _placement(jobset, template)
    pod = template["spec"]["template"]
    spec = pod["spec"] | {"subdomain": jobset["metadata"]["name"]}
    if keys.NODE_SELECTOR_STRATEGY in marks:
        spec["nodeSelector"] = spec.get("nodeSelector", {}) | {keys.NAMESPACED_JOB: f"{namespace}_{name}"}
        toleration = {"key": keys.NO_SCHEDULE, "operator": "Exists", "effect": "NoSchedule"}
        spec["tolerations"] = [*spec.get("tolerations", []), toleration]
    own = {"name": name, "namespace": namespace, "ownerReferences": [controlled_by(jobset)]}
    pods = {"metadata": _marked(pod, labels, marks), "spec": spec}
    return {
        "metadata": _marked(template, labels, marks) | own,
        "spec": template["spec"] | {"template": pods, "suspend": suspended(jobset)},
    }


def _labels(jobset: Object, replicated: Object, index: int, path: str) -> dict[str, str]:
    """Return the labels, which are also annotations, of one child Job and its pods. All Jobs are of one group."""
    every, metadata = jobset["spec"]["replicatedJobs"], jobset["metadata"]
    total, position = replicas(every), replicas(every[: every.index(replicated)]) + index
    labels = {
        "jobset-name": metadata["name"],
        "jobset-uid": metadata["uid"],
        "replicatedjob-name": replicated["name"],
        "replicatedjob-replicas": replicated["replicas"],
        "restart-attempt": restarts(jobset),
        "job-index": index,
        "job-key": sha1(path.encode(), usedforsecurity=False).hexdigest(),
        "global-replicas": total,
        "job-global-index": position,
        "group-name": replicated["groupName"],
        "group-replicas": total,
        "job-group-index": position,
    }
    return {f"jobset.sigs.k8s.io/{label}": str(value) for label, value in labels.items()}


def _placement(jobset: Object, template: Object) -> dict[str, str]:
    """Return the annotations of exclusive placement: the JobSet's, or the replicatedJob's own."""
    both = (owner.get("metadata", {}).get("annotations", {}) for owner in (template, jobset))
    found: dict[str, str] = next((each for each in both if keys.EXCLUSIVE_TOPOLOGY in each), {})
    return {key: found[key] for key in (keys.EXCLUSIVE_TOPOLOGY, keys.NODE_SELECTOR_STRATEGY) if key in found}


def _marked(template: Object, labels: dict[str, str], annotations: dict[str, str]) -> Object:
    """Return a template's metadata with more."""
    metadata: Object = template.get("metadata", {})
    more = {"labels": labels, "annotations": annotations}
    return metadata | {key: metadata.get(key, {}) | marks for key, marks in more.items()}


def with_suspend(job: Object, *, suspend: bool) -> Object:
    """Return the Job, suspended or resumed."""
    return job | {"spec": job["spec"] | {"suspend": suspend}}
