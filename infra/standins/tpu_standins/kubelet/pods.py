"""What kubelets do with the pods that are bound to their nodes.

No container is ever executed: a bound pod is Running after `pace.start` and ends after the seconds that its annotation
`local.kubelet/run-seconds` says (else `pace.run`, or never if its containers are always restarted), with exit code 0,
or with 1 while its JobSet's restart-attempt is below `local.kubelet/fail-until-restart`. The seconds of a Job's pods
count from when all that run together have started. The annotation is read again after each change: "0" ends a pod.
Whatever the restart policy, a container that ended is not restarted in its pod. On a node that is not Ready nothing
changes, unless the node says that it shuts down: then its kubelet ends its pods (pkg/kubelet/nodeshutdown). The pods of
DaemonSets, and of nodes that are gone, are left to others.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from tpu_standins.clients.conditions import Condition, find, is_true, moment, of, since, with_condition
from tpu_standins.clients.events import Recorder
from tpu_standins.clients.objects import Object, Objects
from tpu_standins.clients.owners import controller
from tpu_standins.clients.rounds import Across, each
from tpu_standins.kubelet import pod_status
from tpu_standins.kubelet.keys import FAIL_UNTIL_RESTART, RESTART_ATTEMPT, RUN_SECONDS
from tpu_standins.kubelet.pace import Pace
from tpu_standins.kubelet.together import beginnings

SOURCE = "kubelet"

SHUTTING_DOWN = "node is shutting down"
"""Message of the Ready condition of a node in graceful shutdown."""

_TERMINATED = "Pod was terminated in response to imminent node shutdown."
_SHUT_DOWN = Condition(type="DisruptionTarget", reason="TerminationByKubelet", message=_TERMINATED)
_KILLED = 143  # 128 + SIGTERM
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a pod's kubelet does now: write this status, then remove the pod; or check again at `wake`."""

    status: Object | None = None
    remove: bool = False
    wake: datetime | None = None


class Pods:
    """The controller, and its Events. `across` processes the pods."""

    def __init__(self, across: Across = map) -> None:
        self._recorder = Recorder(SOURCE)
        self._across = across

    def reconcile(self, objects: Objects, now: datetime, pace: Pace) -> datetime | None:
        nodes = {node["metadata"]["name"]: node for node in objects.stored("nodes")}
        pods = objects.stored("pods")
        began = beginnings(pods, objects.stored("jobs"))

        def live(pod: Object) -> datetime | None:
            step = next_step(pod, nodes[pod["spec"]["nodeName"]], now, pace, began.get(pod["metadata"]["uid"]))
            if step.status is not None:
                objects.update("pods", pod | {"status": step.status}, status=True)
            if step.remove:
                metadata = pod["metadata"]
                objects.delete("pods", metadata["namespace"], metadata["name"], grace_seconds=0)
            return step.wake

        own = [pod for pod in pods if pod["spec"].get("nodeName") in nodes and not _is_daemon(pod)]
        return each(own, live, self._recorder.doubting(objects, now), across=self._across)


def _is_daemon(pod: Object) -> bool:
    owner = controller(pod)
    return owner is not None and owner["kind"] == "DaemonSet"


def next_step(pod: Object, node: Object, now: datetime, pace: Pace, began: datetime | None) -> Step:
    """Return the next step of a pod that is bound to this node, whose run time counts from `began` (pure).

    | the pod | on a node that shuts down | Ready | not Ready |
    | waits for finalizers only | - | - | - |
    | is being deleted | ends, is removed | ends, is removed | - |
    | Pending | is rejected | starts | - |
    | Running | ends | ends in its time | - |
    | ended | - | - | - |
    """
    if _waits_for_finalizers(pod):
        return Step()
    if _shuts_down(node):
        return _shut_down(pod, now, pace.termination)
    if not is_true(node, "Ready"):
        return Step()
    if "deletionTimestamp" in pod["metadata"]:
        return _terminate(pod, now, pace.termination)
    match _phase(pod):
        case "Pending":
            return _start(pod, node, now, pace.start)
        case "Running":
            return _run(pod, now, pace.run, began)
        case _:
            return Step()


def _phase(pod: Object) -> str:
    return str(pod["status"].get("phase", "Pending"))


def _shuts_down(node: Object) -> bool:
    ready = find(of(node), "Ready")
    return ready is not None and ready["status"] == "False" and ready.get("message") == SHUTTING_DOWN


def _waits_for_finalizers(pod: Object) -> bool:
    metadata = pod["metadata"]
    return "deletionTimestamp" in metadata and not metadata.get("deletionGracePeriodSeconds")


def _terminate(pod: Object, now: datetime, termination: timedelta) -> Step:
    """Terminate a pod that is being deleted. Its readiness ends first, and that time is when termination began."""
    if _phase(pod) in _ENDED or _phase(pod) == "Pending":
        return Step(remove=True)
    began = since(pod, "Ready")
    if is_true(pod, "Ready") or began is None:
        return Step(status=_with_readiness(pod, now, ready=False), wake=now + termination)
    if now < began + termination:
        return Step(wake=began + termination)
    return Step(status=pod_status.ended(pod, now, _KILLED), remove=True)


def _shut_down(pod: Object, now: datetime, termination: timedelta) -> Step:
    if _phase(pod) in _ENDED:
        return Step(remove="deletionTimestamp" in pod["metadata"])
    if _phase(pod) == "Pending":
        return Step(status=pod_status.rejected(pod, "NodeShutdown", "Pod was rejected as the node is shutting down."))
    step = _terminate(pod, now, termination)
    if not step.remove or step.status is None:
        return step
    conditions = with_condition(step.status["conditions"], _SHUT_DOWN, now)
    why = {"reason": "Terminated", "message": _TERMINATED, "conditions": conditions}
    return Step(status=step.status | why, remove="deletionTimestamp" in pod["metadata"])


def _start(pod: Object, node: Object, now: datetime, start: timedelta) -> Step:
    bound = since(pod, "PodScheduled") or moment(pod["metadata"]["creationTimestamp"])
    if now < bound + start:
        return Step(wake=bound + start)
    try:
        run_time(pod, start), exit_code(pod)
    except (ValueError, OverflowError) as error:
        return Step(status=pod_status.rejected(pod, "InvalidAnnotation", str(error)))
    return Step(status=pod_status.started(pod, node, now))


def _run(pod: Object, now: datetime, default: timedelta, began: datetime | None) -> Step:
    back = None if is_true(pod, "Ready") else _with_readiness(pod, now, ready=True)
    if began is None or not _ends(pod):
        return Step(status=back)
    end = began + run_time(pod, default)
    if now >= end:
        return Step(status=pod_status.ended(pod, now, exit_code(pod)))
    return Step(status=back, wake=end)


def _ends(pod: Object) -> bool:
    """Return whether a pod ends by itself. A server's does not, unless its annotation says when."""
    serves = pod["spec"].get("restartPolicy") == "Always"
    return not serves or RUN_SECONDS in (pod["metadata"].get("annotations") or {})


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
