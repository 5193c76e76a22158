"""The kubelets of all nodes, the node lifecycle controller's handling of pods, and the pod garbage collector.

No container is ever executed: a bound pod is Running after `pace.pod_start` and ends after the seconds its
annotation `local.kubelet/run-seconds` specifies (else `pace.pod_run`), with exit code 0, or with 1 while its
JobSet's restart-attempt is below `local.kubelet/fail-until-restart`. Whatever the restart policy, a container
that ended is not restarted in its pod. On a node that is not Ready nothing changes, unless the node reports that
it is shutting down: then its kubelet ends its pods (pkg/kubelet/nodeshutdown). The pods of a deleted node fail and
are removed at once (the original waits 40 s).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from infra.local.cluster.controllers import disruption, events, pod_status
from infra.local.cluster.controllers.board import finished
from infra.local.cluster.controllers.conditions import Condition, find, is_true, moment, of, since, with_condition
from infra.local.cluster.controllers.keys import FAIL_UNTIL_RESTART, RESTART_ATTEMPT, RUN_SECONDS
from infra.local.cluster.controllers.pace import Pace
from infra.local.cluster.controllers.rounds import each
from infra.local.cluster.objects import Object, Objects

SOURCE = "kubelet"

SHUTTING_DOWN = "node is shutting down"
"""Message of the Ready condition of a node in graceful shutdown."""

_TERMINATED = "Pod was terminated in response to imminent node shutdown."
_SHUT_DOWN = Condition(type=disruption.TARGET, reason="TerminationByKubelet", message=_TERMINATED)
_KILLED = 143  # 128 + SIGTERM


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a pod's kubelet does now: write this status, then remove the pod; or check again at `wake`."""

    status: Object | None = None
    remove: bool = False
    wake: datetime | None = None


def reconcile(objects: Objects, now: datetime, pace: Pace) -> datetime | None:
    nodes = {node["metadata"]["name"]: node for node in objects.stored("nodes")}

    def live(pod: Object) -> datetime | None:
        step = next_step(pod, nodes, now, pace)
        if step.status is not None:
            objects.update("pods", pod | {"status": step.status}, status=True)
        if step.remove:
            metadata = pod["metadata"]
            objects.delete("pods", metadata["namespace"], metadata["name"], grace_seconds=0)
        return step.wake

    bound = [pod for pod in objects.stored("pods") if pod["spec"].get("nodeName")]
    return each(bound, live, events.doubting(objects, SOURCE, now))


def next_step(pod: Object, nodes: Mapping[str, Object], now: datetime, pace: Pace) -> Step:
    """Return the next step of a bound pod (pure)."""
    node = nodes.get(pod["spec"]["nodeName"])
    if _waits_for_finalizers(pod):
        return Step()
    if node is None:
        return Step(status=None if finished(pod) else _orphaned(pod, now), remove=True)
    if _shuts_down(node):
        return _shut_down(pod, now, pace.pod_termination)
    if not is_true(node, "Ready"):
        return Step(status=_with_readiness(pod, now, ready=False)) if is_true(pod, "Ready") else Step()
    if "deletionTimestamp" in pod["metadata"]:
        return _terminate(pod, now, pace.pod_termination)
    match pod["status"]["phase"]:
        case "Pending":
            return _start(pod, node, now, pace.pod_start)
        case "Running":
            return _run(pod, now, pace.pod_run)
        case _:
            return Step()


def _shuts_down(node: Object) -> bool:
    ready = find(of(node), "Ready")
    return ready is not None and ready["status"] == "False" and ready.get("message") == SHUTTING_DOWN


def _waits_for_finalizers(pod: Object) -> bool:
    metadata = pod["metadata"]
    return "deletionTimestamp" in metadata and not metadata.get("deletionGracePeriodSeconds")


def _orphaned(pod: Object, now: datetime) -> Object:
    """Return the status of a pod that was bound to a node that no longer exists (pkg/controller/podgc)."""
    lost = Condition(type=disruption.TARGET, reason="DeletionByPodGC", message="PodGC: node no longer exists")
    failed = pod_status.ended(pod, now, _KILLED)
    return failed | {"conditions": with_condition(failed["conditions"], lost, now)}


def _terminate(pod: Object, now: datetime, termination: timedelta) -> Step:
    """Terminate a pod that is being deleted. Its readiness ends first, and that time is when termination began."""
    if finished(pod) or pod["status"]["phase"] == "Pending":
        return Step(remove=True)
    began = since(pod, "Ready")
    if is_true(pod, "Ready") or began is None:
        return Step(status=_with_readiness(pod, now, ready=False), wake=now + termination)
    if now < began + termination:
        return Step(wake=began + termination)
    return Step(status=pod_status.ended(pod, now, _KILLED), remove=True)


def _shut_down(pod: Object, now: datetime, termination: timedelta) -> Step:
    if finished(pod):
        return Step(remove="deletionTimestamp" in pod["metadata"])
    if pod["status"]["phase"] == "Pending":
        return Step(status=pod_status.rejected(pod, "NodeShutdown", "Pod was rejected as the node is shutting down."))
    step = _terminate(pod, now, termination)
    if not step.remove or step.status is None:
        return step
    conditions = with_condition(step.status["conditions"], _SHUT_DOWN, now)
    why = {"reason": "Terminated", "message": _TERMINATED, "conditions": conditions}
    return Step(status=step.status | why, remove="deletionTimestamp" in pod["metadata"])


def _start(pod: Object, node: Object, now: datetime, start: timedelta) -> Step:
    bound = since(pod, "PodScheduled") or now
    if now < bound + start:
        return Step(wake=bound + start)
    try:
        run_time(pod, start), exit_code(pod)
    except (ValueError, OverflowError) as error:
        return Step(status=pod_status.rejected(pod, "InvalidAnnotation", str(error)))
    return Step(status=pod_status.started(pod, node, now))


def _run(pod: Object, now: datetime, default: timedelta) -> Step:
    end = _began(pod) + run_time(pod, default)
    if now >= end:
        return Step(status=pod_status.ended(pod, now, exit_code(pod)))
    back = None if is_true(pod, "Ready") else _with_readiness(pod, now, ready=True)
    return Step(status=back, wake=end)


def _began(pod: Object) -> datetime:
    return moment(pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"])


def run_time(pod: Object, default: timedelta) -> timedelta:
    """Return how long the pod runs. Raise ValueError or OverflowError if the annotation is not a number of seconds."""
    seconds = (pod["metadata"].get("annotations") or {}).get(RUN_SECONDS)
    return default if seconds is None else timedelta(seconds=float(seconds))


def exit_code(pod: Object) -> int:
    """Return the exit code with which the pod will end. Raise ValueError if the annotation is not an integer."""
    metadata = pod["metadata"]
    healthy_from = int((metadata.get("annotations") or {}).get(FAIL_UNTIL_RESTART, "0"))
    return 1 if int((metadata.get("labels") or {}).get(RESTART_ATTEMPT, "0")) < healthy_from else 0


def _with_readiness(pod: Object, now: datetime, *, ready: bool) -> Object:
    conditions = with_condition(of(pod), Condition(type="Ready", status=ready), now)
    status: Object = pod["status"] | {"conditions": conditions}
    return status
