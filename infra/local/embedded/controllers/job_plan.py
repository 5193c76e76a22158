"""The Job controller's decision about one Indexed Job (pure).

Source: pkg/controller/job (job_controller.go, indexed_job_utils.go, pod_failure_policy.go) of Kubernetes 1.31 and
later: FailureTarget and SuccessCriteriaMet come first, and Failed and Complete only once every pod has ended.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, islice
from typing import Any, Self

from infra.local.clients.conditions import Condition, find, is_true, moment, of, since, with_condition
from infra.local.clients.objects import Object, timestamp
from infra.local.clients.owners import controlled_by
from infra.local.embedded.controllers.pods import finished

FINAL = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed"}
"""The final condition after each that announces it."""
_INDEX = "batch.kubernetes.io/job-completion-index"
_TRACKING = "batch.kubernetes.io/job-tracking"
_MOST_AT_ONCE = 500  # MaxPodCreateDeletePerSync
_UNCOVERED = ("successPolicy", "backoffLimitPerIndex", "activeDeadlineSeconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Write `status`, then release the `counted` pods, delete pods, and create those of the `missing` indexes."""

    status: Object
    counted: tuple[Object, ...] = ()
    delete: tuple[Object, ...] = ()
    missing: tuple[int, ...] = ()
    wake: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """A Job's pods by state. `ended` ones are not yet counted in its status; of those some `succeeded` or `failed`.

    The others were deleted for a suspension, which counts as neither.
    """

    active: tuple[Object, ...]
    terminating: tuple[Object, ...]
    ended: tuple[Object, ...]
    succeeded: tuple[Object, ...]
    failed: tuple[Object, ...]
    last_failure: datetime | None

    @classmethod
    def of(cls, job: Object, own: Iterable[Object]) -> Self:
        pods = tuple(own)
        alive, suspended = [pod for pod in pods if not finished(pod)], job["spec"]["suspend"]
        ended = tuple(pod for pod in pods if is_tracked(pod) and _has_ended(job, pod))
        failed = [pod for pod in ended if pod["status"]["phase"] != "Succeeded" and not (_deleted(pod) and suspended)]
        failures = (pod for pod in pods if pod["status"]["phase"] == "Failed")
        return cls(
            active=tuple(pod for pod in alive if not _deleted(pod)),
            terminating=tuple(pod for pod in alive if _deleted(pod)),
            ended=ended,
            succeeded=tuple(pod for pod in ended if pod["status"]["phase"] == "Succeeded"),
            failed=tuple(failed),
            last_failure=max(
                (since(pod, "Ready") or moment(pod["metadata"]["creationTimestamp"]) for pod in failures), default=None
            ),
        )


def not_covered(job: Object) -> tuple[str, ...]:
    """Return the names of the features that the Job uses and this controller does not implement."""
    spec = job["spec"]
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or ()
    found = [name for name in _UNCOVERED if name in spec]
    found += ["completionMode NonIndexed"] if spec["completionMode"] != "Indexed" else []
    return tuple(found + (["action FailIndex"] if any(rule["action"] == "FailIndex" for rule in rules) else []))


def plan(job: Object, pods: Pods, now: datetime, backoff: timedelta) -> Plan:
    """Return the plan. `backoff` is the time between a pod's failure and its replacement."""
    if any(is_true(job, kind) for kind in FINAL.values()):
        return Plan(status=job["status"], counted=pods.ended)
    status = _counted(job, pods)
    conditions = status.get("conditions") or []
    outcome = _outcome(job, pods, status)
    if outcome is not None:
        return _ending(status, pods, outcome, now)
    if job["spec"]["suspend"]:
        suspended = Condition(type="Suspended", reason="JobSuspended", message="Job suspended")
        stopped = {key: value for key, value in status.items() if key != "startTime"}
        conditions = with_condition(conditions, suspended, now)
        return Plan(status=stopped | {"conditions": conditions}, counted=pods.ended, delete=pods.active)
    if is_true({"status": status}, "Suspended"):
        resumed = Condition(type="Suspended", status=False, reason="JobResumed", message="Job resumed")
        status |= {"conditions": with_condition(conditions, resumed, now)}
    missing = _missing(job, pods, _completed(job, status))
    retry = pods.last_failure + backoff if pods.last_failure is not None else now
    waits = retry if missing and retry > now else None
    started = {"startTime": timestamp(now)} | status
    return Plan(status=started, counted=pods.ended, missing=() if waits else missing, wake=waits)


def _counted(job: Object, pods: Pods) -> Object:
    """Return the status with the ended pods added and the others counted."""
    known = job.get("status") or {}
    done = _completed(job, known) | {_index(pod) for pod in pods.succeeded}
    actions = [_match(job, pod)[0] for pod in pods.failed]
    status: Object = known | {
        "active": len(pods.active),
        "ready": sum(is_true(pod, "Ready") for pod in pods.active),
        "terminating": len(pods.terminating),
        "succeeded": len(done),
        "failed": known.get("failed", 0) + len(actions) - actions.count("Ignore"),
        "uncountedTerminatedPods": {},
    }
    return status | ({"completedIndexes": compact(done)} if done else {})


def _outcome(job: Object, pods: Pods, status: Object) -> Condition | None:
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


def _ending(status: Object, pods: Pods, outcome: Condition, now: datetime) -> Plan:
    conditions, final = with_condition(status.get("conditions") or [], outcome, now), {}
    if not (pods.active or pods.terminating):
        last = Condition(type=FINAL[outcome.type], reason=outcome.reason, message=outcome.message)
        conditions = with_condition(conditions, last, now)
        final = {"completionTime": timestamp(now)} if last.type == "Complete" else {}
    status = {"startTime": timestamp(now)} | status | {"conditions": conditions} | final
    return Plan(status=status, counted=pods.ended, delete=pods.active)


def _match(job: Object, pod: Object) -> tuple[str, str]:
    """Return action and message of the first rule of the podFailurePolicy that matches a failed pod."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or ()
    for index, rule in enumerate(rules if pod["status"]["phase"] == "Failed" else ()):
        for found in _matches(rule, pod):
            return rule["action"], f"{found} matching {rule['action']} rule at index {index}"
    return "Count", ""


def _matches(rule: Mapping[str, Any], pod: Object) -> Iterator[str]:
    name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    asked = rule.get("onExitCodes") or {}
    for status in (pod["status"].get("containerStatuses") or ()) if asked else ():
        code = status["state"].get("terminated", {}).get("exitCode", 0)
        own = asked.get("containerName", status["name"]) == status["name"]
        if code and own and (code in asked["values"]) == (asked["operator"] == "In"):
            yield f"Container {status['name']} for pod {name} failed with exit code {code}"
    for wanted in rule.get("onPodConditions") or ():
        known = find(of(pod), wanted["type"])
        if known and known["status"] == wanted.get("status", "True"):
            yield f"Pod {name} has condition {wanted['type']}"


def _waits_for_the_end(job: Object) -> bool:
    """Return whether a pod is replaced only after it has ended, not once it is being deleted."""
    return bool(job["spec"].get("podReplacementPolicy") == "Failed")


def _deleted(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _has_ended(job: Object, pod: Object) -> bool:
    held = _waits_for_the_end(job) and not job["spec"]["suspend"] and pod["spec"].get("nodeName")
    return finished(pod) or (_deleted(pod) and not held)


def is_tracked(pod: Object) -> bool:
    return _TRACKING in (pod["metadata"].get("finalizers") or ())


def released(pod: Object) -> Object:
    """Return a counted pod without the tracking finalizer, so that it may be removed."""
    kept = [name for name in pod["metadata"]["finalizers"] if name != _TRACKING]
    return pod | {"metadata": pod["metadata"] | {"finalizers": kept}}


def new_pod(job: Object, index: int) -> Object:
    """Return a new pod for one completion index."""
    name, template = job["metadata"]["name"], job["spec"]["template"]
    metadata, key = template.get("metadata") or {}, {_INDEX: str(index)}
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{_INDEX}']"}}
    env = {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}
    containers = [each | {"env": [*each.get("env", ()), env]} for each in template["spec"]["containers"]]
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


def _index(pod: Object) -> int:
    return int(pod["metadata"]["annotations"][_INDEX])


def _completed(job: Object, status: Object) -> set[int]:
    """Parse status.completedIndexes, such as "0,2-4", keeping those below the Job's completions."""
    found: set[int] = set()
    for part in filter(None, status.get("completedIndexes", "").split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), min(int(last or first) + 1, job["spec"]["completions"])))
    return found


def compact(found: Iterable[int]) -> str:
    """Format status.completedIndexes."""
    runs = groupby(enumerate(sorted(found)), key=lambda item: item[1] - item[0])
    ends = ([index for _, index in run] for _, run in runs)
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in ends)


def _missing(job: Object, pods: Pods, done: set[int]) -> tuple[int, ...]:
    """Return the lowest indexes that need a pod, limited by `parallelism` and by the pods created per round."""
    holding = (*pods.active, *pods.terminating) if _waits_for_the_end(job) else pods.active
    taken = done | {_index(pod) for pod in holding}
    free = (index for index in range(job["spec"]["completions"]) if index not in taken)
    room = min(max(job["spec"]["parallelism"] - len(holding), 0), _MOST_AT_ONCE)
    return tuple(islice(free, room))
