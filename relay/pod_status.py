"""Reads how a pod is, from Kubernetes' JSON, in the words of the scheduler or the kubelet. Pure.

| a v1 Pod                                                        | is                       |
|-----------------------------------------------------------------|--------------------------|
| is being deleted, or has failed                                 | departing                |
| has succeeded                                                   | ended                    |
| has a scheduling gate                                           | GATED                    |
| has no node, and the scheduler says why                         | UNSCHEDULABLE            |
| runs all of its containers that have chips                      | running                  |
| has a container, or an init container, whose image is not there | IMAGE                    |
| has an init container that ended with an error                  | INIT                     |
| has a container that was killed for its memory, and does not    | OUT_OF_MEMORY            |
| run                                                             |                          |
| has a container that ended with an error, and does not run      | CRASHING                 |
| has no node, or containers that were not started                | STARTING                 |
| any other                                                       | running                  |

The words of a container that is restarted change with each try (`back-off 10s restarting failed container=…`): how it
ended last does not (k8s.io/kubernetes pkg/kubelet/kuberuntime, images.EnsureImageExists).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tpu_slices.domain.model.pods import MOST_WORDS, PodTrouble
from tpu_slices.domain.model.texts import shortened
from tpu_slices.wire.jobsets import condition
from tpu_slices.wire.quantities import extended
from tpu_slices.wire.workloads import CHIPS

Json = Mapping[str, Any]

_IMAGE = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"})
_NOISE = re.compile(r"\.? no new claims to deallocate|\.? preemption: ")
"""What the scheduler says beside why no node takes a pod: what would not help it (kube-scheduler, FitError)."""
_OUT_OF_MEMORY = "OOMKilled"
_CAUSE = "ErrImagePull: "
"""What precedes the cause in the message of ImagePullBackOff."""


@dataclass(frozen=True, slots=True)
class PodStatus:
    """How a pod is."""

    trouble: PodTrouble | None = None
    """Why it does not run; None: it runs, or is departing, or has ended."""
    words: str = ""
    ended: bool = False
    departing: bool = False
    since: datetime | None = None
    """Since when, as far as its conditions say that."""
    bound_at: datetime | None = None
    """When it came to its node."""

    @property
    def told(self) -> tuple[object, ...]:
        """What of it is told."""
        return self.trouble, self.words, self.ended, self.departing


def status_of(pod: Json) -> PodStatus:
    """Return how a v1 Pod is, by the table above."""
    phase, scheduled = (pod.get("status") or {}).get("phase"), condition(pod, "PodScheduled")
    bound_at = _time(scheduled) if scheduled.get("status") == "True" else None
    if "deletionTimestamp" in pod["metadata"] or phase == "Failed":
        words = "has failed" if phase == "Failed" else "is being deleted"
        return PodStatus(words=words, departing=True, bound_at=bound_at)
    if phase == "Succeeded":
        return PodStatus(ended=True, bound_at=bound_at)
    trouble, words = _trouble(pod, scheduled)
    changed = condition(pod, "ContainersReady") if bound_at else scheduled
    since = _time(changed) or bound_at
    return PodStatus(trouble, shortened(words, MOST_WORDS), since=since, bound_at=bound_at)


def _trouble(pod: Json, scheduled: Json) -> tuple[PodTrouble | None, str]:
    status = pod.get("status") or {}
    if pod["spec"].get("schedulingGates"):
        return PodTrouble.GATED, ", ".join(str(each.get("name")) for each in pod["spec"]["schedulingGates"])
    if not pod["spec"].get("nodeName"):
        said = _NOISE.split(str(scheduled.get("message") or ""), maxsplit=1)[0]
        return (PodTrouble.UNSCHEDULABLE, said) if scheduled.get("status") == "False" else (PodTrouble.STARTING, "")
    init, main = status.get("initContainerStatuses") or (), status.get("containerStatuses") or ()
    if _trains(pod, main):
        return None, ""
    found = (*_image(init), *_image(main), *_ended(init, PodTrouble.INIT), *_ended(main, PodTrouble.CRASHING))
    if found:
        return found[0]
    if status.get("phase") == "Running":
        return None, ""
    return PodTrouble.STARTING, next(_held_up([*init, *main]), "")


def _held_up(containers: Iterable[Json]) -> Iterator[str]:
    """Yield why the kubelet does not start containers, where it says so: a Secret that is not there, say."""
    for each in containers:
        waiting = (each.get("state") or {}).get("waiting") or {}
        if said := waiting.get("message"):
            yield f"container {each.get('name')}, {waiting.get('reason')}: {said}"


def _trains(pod: Json, containers: Iterable[Json]) -> bool:
    """Return whether all containers with chips run: a sidecar that crashes beside them keeps them from nothing."""
    asking = {str(each.get("name")) for each in pod["spec"]["containers"] if extended({"containers": [each]}, CHIPS)}
    return bool(asking) and asking <= {
        each.get("name") for each in containers if "running" in (each.get("state") or {})
    }


def _image(containers: Iterable[Json]) -> Iterable[tuple[PodTrouble, str]]:
    for each in containers:
        waiting = (each.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in _IMAGE:
            cause = str(waiting.get("message") or "").rpartition(_CAUSE)[2]
            yield PodTrouble.IMAGE, f"container {each.get('name')}, image {each.get('image')}: {cause}"


def _ended(containers: Iterable[Json], why: PodTrouble) -> Iterable[tuple[PodTrouble, str]]:
    for each in containers:
        state = each.get("state") or {}
        ended = state.get("terminated") or (
            (each.get("lastState") or {}).get("terminated") if "waiting" in state else {}
        )
        if not ended or ended.get("exitCode") == 0:
            continue
        killed = ended.get("reason") == _OUT_OF_MEMORY
        how = f"ended with exit code {ended.get('exitCode')} ({ended.get('reason')})"
        said = str(ended.get("message") or "").strip()
        words = f"container {each.get('name')} {how}{': ' if said else ''}{said}"
        yield (PodTrouble.OUT_OF_MEMORY if killed and why is PodTrouble.CRASHING else why), words


def _time(said: Json) -> datetime | None:
    text = said.get("lastTransitionTime")
    return datetime.fromisoformat(text) if text else None
