"""From when the run time of pods counts: a program on TPUs begins when its processes have found each other (pure).

A Job's pods wait for as many as run at a time: `parallelism`, or `completions` if these are fewer. One that fails and
is replaced is counted once, by its index. Pods of other controllers wait for nobody.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from tpu_standins.clients.conditions import moment
from tpu_standins.clients.objects import Object
from tpu_standins.clients.owners import by_controller, controller

_INDEX = "batch.kubernetes.io/job-completion-index"


def beginnings(pods: Sequence[Object], jobs: Iterable[Object]) -> Mapping[str, datetime]:
    """Return by UID from when the run time of each pod counts that has started, and whose Job has begun."""
    known, owned = {job["metadata"]["uid"]: job for job in jobs}, by_controller(pods)
    begun = {uid: _begun(known[uid], of_job) for uid, of_job in owned.items() if uid in known}
    found: dict[str, datetime] = {}
    for pod in pods:
        owner, own = controller(pod), _started(pod)
        whole = begun.get(owner["uid"]) if owner is not None and owner["kind"] == "Job" else own
        if own is not None and whole is not None:
            found[pod["metadata"]["uid"]] = max(own, whole)
    return found


def _begun(job: Object, pods: Iterable[Object]) -> datetime | None:
    """Return when as many of a Job's pods had started as run together, if there were."""
    starts: dict[str, datetime] = {}
    for pod in pods:
        if (start := _started(pod)) is not None:
            place = (pod["metadata"].get("annotations") or {}).get(_INDEX, pod["metadata"]["uid"])
            starts[place] = min(start, starts.get(place, start))
    first = sorted(starts.values())
    if (job.get("status") or {}).get("succeeded"):  # it had begun, whatever became of these pods
        return min(first, default=None)
    needed = _together(job["spec"])
    return first[needed - 1] if len(first) >= needed else None


def _together(spec: Object) -> int:
    parallelism, completions = spec.get("parallelism"), spec.get("completions")
    return max(1, min(each for each in (1 if parallelism is None else parallelism, completions) if each is not None))


def _started(pod: Object) -> datetime | None:
    """Return when a pod started that runs or has ended."""
    for container in pod["status"].get("containerStatuses") or ():
        states = container.get("state") or {}
        state = states.get("running") or states.get("terminated") or {}
        if "startedAt" in state:
            return moment(state["startedAt"])
    return None
