"""The Job controller's decision about one Job (pkg/controller/job of Kubernetes 1.31 and later; pure).

It is Indexed, or has one pod, which is taken for that of index 0 although it does not say so. FailureTarget and
SuccessCriteriaMet come first, and Failed and Complete only once every pod has ended.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, islice
from typing import Any, NamedTuple

from tpu_standins.clients.conditions import Condition, find, is_true, moment, of, since, with_condition
from tpu_standins.clients.objects import Object, timestamp
from tpu_standins.clients.owners import controlled_by
from tpu_standins.embedded.controllers.nodes import finished

FINAL = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed"}
"""The final condition after each that announces it."""
_INDEX, _TRACKING = "batch.kubernetes.io/job-completion-index", "batch.kubernetes.io/job-tracking"
_MOST_AT_ONCE = 500  # MaxPodCreateDeletePerSync
_UNCOVERED = ("successPolicy", "backoffLimitPerIndex", "activeDeadlineSeconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Write `status`, then release the `counted` pods, delete pods, and create those of the `missing` indexes."""

    status: Object
    counted: list[Object]
    delete: list[Object]
    missing: tuple[int, ...] = ()
    wake: datetime | None = None


class _Pods(NamedTuple):
    """A Job's pods: those that run, those that `ended` and are not counted yet, and of these those that count."""

    active: list[Object]
    terminating: list[Object]
    ended: list[Object]
    succeeded: list[Object]
    failed: list[Object]


def _sorted(job: Object, pods: Iterable[Object]) -> _Pods:
    alive = [pod for pod in pods if not finished(pod)]
    ended = [pod for pod in pods if is_tracked(pod) and _has_ended(job, pod)]
    lost = [pod for pod in ended if pod["status"]["phase"] != "Succeeded"]
    return _Pods(
        active=[pod for pod in alive if not _deleted(pod)],
        terminating=[pod for pod in alive if _deleted(pod)],
        ended=ended,
        succeeded=[pod for pod in ended if pod["status"]["phase"] == "Succeeded"],
        failed=[pod for pod in lost if not (_deleted(pod) and job["spec"]["suspend"])],
    )


def not_covered(job: Object) -> list[str]:
    """Return the names of the features that the Job uses and this controller does not implement."""
    spec = job["spec"]
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or ()
    found = [name for name in _UNCOVERED if name in spec]
    found += [] if _is_indexed(job) or spec.get("completions") == 1 else ["several pods of completionMode NonIndexed"]
    return found + (["action FailIndex"] if any(rule["action"] == "FailIndex" for rule in rules) else [])


def plan(job: Object, own: Iterable[Object], now: datetime, backoff: timedelta) -> Plan:
    """Return the plan for a Job and its pods. `backoff` is the time between a pod's failure and its replacement."""
    every = list(own)
    pods = _sorted(job, every)
    if any(is_true(job, kind) for kind in FINAL.values()):
        return Plan(status=job["status"], counted=pods.ended, delete=[])
    status = _counted(job, pods)
    outcome, conditions = _outcome(job, pods, status), status.get("conditions") or []
    if outcome is not None:
        status = _ended(status, conditions, outcome, now, bool(pods.active or pods.terminating))
        return Plan(status=status, counted=pods.ended, delete=pods.active)
    if job["spec"]["suspend"]:
        suspended = Condition(type="Suspended", reason="JobSuspended", message="Job suspended")
        stopped = {key: value for key, value in status.items() if key != "startTime"}
        stopped["conditions"] = with_condition(conditions, suspended, now)
        return Plan(status=stopped, counted=pods.ended, delete=pods.active)
    if is_true({"status": status}, "Suspended"):
        resumed = Condition(type="Suspended", status=False, reason="JobResumed", message="Job resumed")
        status |= {"conditions": with_condition(conditions, resumed, now)}
    missing, failures = _missing(job, pods, _completed(job, status)), filter(_has_failed, every)
    ends = (since(pod, "Ready") or moment(pod["metadata"]["creationTimestamp"]) for pod in failures)
    retry = max((end + backoff for end in ends), default=now)
    wait = retry if missing and retry > now else None
    started = {"startTime": timestamp(now)} | status
    return Plan(status=started, counted=pods.ended, delete=[], missing=() if wait else missing, wake=wait)


def _counted(job: Object, pods: _Pods) -> Object:
    known = job.get("status") or {}
    done = _completed(job, known) | {_index(pod) for pod in pods.succeeded}
    failures = sum(_match(job, pod)[0] != "Ignore" for pod in pods.failed)
    counts = {"active": len(pods.active), "terminating": len(pods.terminating), "succeeded": len(done)}
    counts |= {"ready": sum(is_true(pod, "Ready") for pod in pods.active), "failed": known.get("failed", 0) + failures}
    indexes = {"completedIndexes": compact(done)} if done and _is_indexed(job) else {}
    return known | counts | {"uncountedTerminatedPods": {}} | indexes


def _outcome(job: Object, pods: _Pods, status: Object) -> Condition | None:
    """Return the condition with which the Job is to end, or None; once set, it does not change."""
    known = next((found for kind in FINAL if (found := find(of(job), kind))), None)
    if known is not None:
        return Condition(type=known["type"], reason=known["reason"], message=known["message"])
    for action, message in (_match(job, pod) for pod in pods.failed):
        if action == "FailJob":
            return Condition(type="FailureTarget", reason="PodFailurePolicy", message=message)
    if pods.failed and status["failed"] > job["spec"]["backoffLimit"]:
        message = "Job has reached the specified backoff limit"
        return Condition(type="FailureTarget", reason="BackoffLimitExceeded", message=message)
    if status["succeeded"] >= job["spec"]["completions"]:
        message = "Reached expected number of succeeded pods"
        return Condition(type="SuccessCriteriaMet", reason="CompletionsReached", message=message)
    return None


def _ended(status: Object, conditions: list[Object], outcome: Condition, now: datetime, waits: bool) -> Object:  # noqa: FBT001
    """Return the status with the outcome, and, unless it `waits` for pods to end, with the final condition."""
    new, stamp = with_condition(conditions, outcome, now), timestamp(now)
    final = Condition(type=FINAL[outcome.type], reason=outcome.reason, message=outcome.message)
    new = new if waits else with_condition(new, final, now)
    completed = {"completionTime": stamp} if final.type == "Complete" and not waits else {}
    return {"startTime": stamp} | status | {"conditions": new} | completed


def _match(job: Object, pod: Object) -> tuple[str, str]:
    """Return action and message of the first rule of the podFailurePolicy that matches a failed pod."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or ()
    for index, rule in enumerate(rules if _has_failed(pod) else ()):
        for found in _matches(rule, pod):
            return rule["action"], f"{found} matching {rule['action']} rule at index {index}"
    return "Count", ""


def _matches(rule: Mapping[str, Any], pod: Object) -> Iterator[str]:
    name, asked = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}", rule.get("onExitCodes") or {}
    for status in (pod["status"].get("containerStatuses") or ()) if asked else ():
        code = status["state"].get("terminated", {}).get("exitCode", 0)
        own = asked.get("containerName", status["name"]) == status["name"]
        if code and own and (code in asked["values"]) == (asked["operator"] == "In"):
            yield f"Container {status['name']} for pod {name} failed with exit code {code}"
    for wanted in rule.get("onPodConditions") or ():
        known = find(of(pod), wanted["type"])
        if known and known["status"] == wanted.get("status", "True"):
            yield f"Pod {name} has condition {wanted['type']}"


def _has_failed(pod: Object) -> bool:
    return bool(pod["status"]["phase"] == "Failed")


def _deleted(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _waits_for_the_end(job: Object) -> bool:
    """Return whether a pod is replaced only after it has ended, not once it is being deleted."""
    return bool(job["spec"].get("podReplacementPolicy") == "Failed")


def _has_ended(job: Object, pod: Object) -> bool:
    held = _waits_for_the_end(job) and not job["spec"]["suspend"] and pod["spec"].get("nodeName")
    return finished(pod) or (_deleted(pod) and not held)


def is_tracked(pod: Object) -> bool:
    return _TRACKING in (pod["metadata"].get("finalizers") or ())


def released(pod: Object) -> Object:
    """Return the merge patch that lets a counted pod go, whatever its kubelet writes meanwhile: it is counted once."""
    kept = [name for name in pod["metadata"]["finalizers"] if name != _TRACKING]
    return {"metadata": {"finalizers": kept}}


def new_pod(job: Object, index: int) -> Object:
    """Return a new pod for one completion index."""
    name, template = job["metadata"]["name"], job["spec"]["template"]
    if not _is_indexed(job):
        own = {"generateName": f"{name}-", "namespace": job["metadata"]["namespace"], "finalizers": [_TRACKING]}
        return {
            "metadata": (template.get("metadata") or {}) | own | {"ownerReferences": [controlled_by(job)]},
            "spec": template["spec"],
        }
    metadata, key = template.get("metadata") or {}, {_INDEX: str(index)}
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{_INDEX}']"}}
    env = {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}
    containers = [each | {"env": [*each.get("env", ()), env]} for each in template["spec"]["containers"]]
    own = {"generateName": f"{name}-{index}-", "namespace": job["metadata"]["namespace"], "finalizers": [_TRACKING]}
    own |= {field: (metadata.get(field) or {}) | key for field in ("labels", "annotations")}
    spec = template["spec"] | {"hostname": f"{name}-{index}", "containers": containers}
    return {"metadata": own | {"ownerReferences": [controlled_by(job)]}, "spec": spec}


def _is_indexed(job: Object) -> bool:
    return bool(job["spec"]["completionMode"] == "Indexed")


def _index(pod: Object) -> int:
    return int((pod["metadata"].get("annotations") or {}).get(_INDEX, 0))


def _completed(job: Object, status: Object) -> set[int]:
    """Parse status.completedIndexes, such as "0,2-4", keeping those below the Job's completions."""
    if not _is_indexed(job):
        return set(range(status.get("succeeded", 0)))
    parts = (part.partition("-") for part in status.get("completedIndexes", "").split(",") if part)
    return {
        index
        for first, _, last in parts
        for index in range(int(first), min(int(last or first) + 1, job["spec"]["completions"]))
    }


def compact(found: Iterable[int]) -> str:
    """Format status.completedIndexes."""
    runs = groupby(enumerate(sorted(found)), key=lambda item: item[1] - item[0])
    ends = ([index for _, index in run] for _, run in runs)
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in ends)


def _missing(job: Object, pods: _Pods, done: set[int]) -> tuple[int, ...]:
    """Return the lowest indexes that need a pod, limited by `parallelism` and by the pods created per round."""
    holding = (*pods.active, *pods.terminating) if _waits_for_the_end(job) else pods.active
    taken = done | {_index(pod) for pod in holding}
    free = (index for index in range(job["spec"]["completions"]) if index not in taken)
    return tuple(islice(free, min(max(job["spec"]["parallelism"] - len(holding), 0), _MOST_AT_ONCE)))
