"""The pods of an Indexed Job: their classification, and new ones (pure).

Sources: pkg/controller/job/indexed_job_utils.go and job_controller.go (isPodFailed, onlyReplaceFailedPods).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from infra.local.clients.conditions import is_true, moment, since
from infra.local.clients.objects import Object
from infra.local.clients.owners import controlled_by
from infra.local.embedded.controllers.disruption import finished

_COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
_TRACKING = "batch.kubernetes.io/job-tracking"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """A Job's pods by state. `succeeded`, `failed` and `dropped` have ended and are not yet in the Job's status.

    `dropped`: deleted because the Job is suspended, so that they are not counted.
    """

    active: tuple[Object, ...]
    terminating: tuple[Object, ...]
    succeeded: tuple[Object, ...]
    failed: tuple[Object, ...]
    dropped: tuple[Object, ...]
    last_failure: datetime | None

    @classmethod
    def of(cls, job: Object, pods: Iterable[Object]) -> Self:
        own = tuple(pods)
        alive = [pod for pod in own if not finished(pod)]
        ended = [pod for pod in own if is_tracked(pod) and _has_ended(job, pod)]
        failures = (_failed_at(pod) for pod in own if pod["status"]["phase"] == "Failed")
        lost = [pod for pod in ended if pod["status"]["phase"] != "Succeeded"]
        return cls(
            active=tuple(pod for pod in alive if not _deleted(pod)),
            terminating=tuple(pod for pod in alive if _deleted(pod)),
            succeeded=tuple(pod for pod in ended if pod["status"]["phase"] == "Succeeded"),
            failed=tuple(pod for pod in lost if not (_deleted(pod) and suspended(job))),
            dropped=tuple(pod for pod in lost if _deleted(pod) and suspended(job)),
            last_failure=max(failures, default=None),
        )

    @property
    def ready(self) -> int:
        return sum(is_true(pod, "Ready") for pod in self.active)

    @property
    def ended(self) -> tuple[Object, ...]:
        return (*self.succeeded, *self.failed, *self.dropped)


def suspended(job: Object) -> bool:
    return bool(job["spec"].get("suspend", False))


def waits_for_the_end(job: Object) -> bool:
    """Return whether a pod is replaced only after it has ended (podReplacementPolicy), not once it is being deleted."""
    return bool(job["spec"].get("podReplacementPolicy") == "Failed")


def _deleted(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _has_ended(job: Object, pod: Object) -> bool:
    """Return whether a pod has ended or, with podReplacementPolicy Failed only if unbound, is being deleted."""
    if finished(pod):
        return True
    held = waits_for_the_end(job) and not suspended(job) and pod["spec"].get("nodeName")
    return _deleted(pod) and not held


def _failed_at(pod: Object) -> datetime:
    return since(pod, "Ready") or moment(pod["metadata"]["creationTimestamp"])


def is_tracked(pod: Object) -> bool:
    return _TRACKING in (pod["metadata"].get("finalizers") or ())


def released(pod: Object) -> Object:
    """Return a counted pod without the tracking finalizer, so that it may be removed."""
    kept = [name for name in pod["metadata"]["finalizers"] if name != _TRACKING]
    metadata = {key: value for key, value in pod["metadata"].items() if key != "finalizers"}
    return pod | {"metadata": metadata | ({"finalizers": kept} if kept else {})}


def index_of(pod: Object) -> int:
    return int(pod["metadata"]["annotations"][_COMPLETION_INDEX])


def new_pod(job: Object, index: int) -> Object:
    """Return a new pod for one completion index."""
    name = job["metadata"]["name"]
    template: Mapping[str, Any] = job["spec"]["template"]
    metadata = template.get("metadata") or {}
    key = {_COMPLETION_INDEX: str(index)}
    containers = [_with_index(container) for container in template["spec"]["containers"]]
    return {
        "metadata": {
            "generateName": f"{name}-{index}-",
            "namespace": job["metadata"]["namespace"],
            "labels": (metadata.get("labels") or {}) | key,
            "annotations": (metadata.get("annotations") or {}) | key,
            "ownerReferences": [controlled_by(job)],
            "finalizers": [_TRACKING],
        },
        "spec": template["spec"] | {"hostname": f"{name}-{index}", "containers": containers},
    }


def _with_index(container: Object) -> Object:
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{_COMPLETION_INDEX}']"}}
    return container | {"env": [*container.get("env", ()), {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}]}


def indexes(text: str, completions: int) -> set[int]:
    """Parse status.completedIndexes, such as "0,2-4", keeping those below `completions`."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), min(int(last or first) + 1, completions)))
    return found


def compact(found: Iterable[int]) -> str:
    """Format status.completedIndexes."""
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in _runs(sorted(found)))


def _runs(ordered: list[int]) -> Iterator[tuple[int, int]]:
    first = 0
    for position, index in enumerate(ordered):
        if position + 1 == len(ordered) or ordered[position + 1] != index + 1:
            yield ordered[first], index
            first = position + 1
