"""kube-scheduler: binds pods to nodes that fit, and says of the others why they wait.

A Job's pods are bound one by one, as in a cluster without gang scheduling. Nothing is preempted.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

from infra.local.cluster.controllers import events
from infra.local.cluster.controllers.board import Board, finished
from infra.local.cluster.controllers.conditions import Condition, find, moment, of, with_condition
from infra.local.cluster.controllers.fit import Fit, not_covered, preemption_helps
from infra.local.cluster.controllers.pace import Pace
from infra.local.cluster.controllers.rounds import each
from infra.local.cluster.objects import Object, Objects, timestamp

SOURCE = "default-scheduler"


def reconcile(objects: Objects, now: datetime, pace: Pace) -> datetime | None:
    """Judge every pod that waits, the most important and then the oldest first."""
    board = Board.of(objects.stored("nodes"), objects.stored("pods"))

    def schedule(pod: Object) -> datetime | None:
        nonlocal board
        node_name, verdict = choose(pod, board)
        if node_name is None:
            return _explain(objects, pod, verdict, now, pace.scheduling_backoff)
        board = board.with_pod(_bind(objects, pod, node_name, now))
        return None

    return each(sorted(filter(_waits, objects.stored("pods")), key=_turn), schedule)


def choose(pod: Object, board: Board) -> tuple[str | None, Condition]:
    """Find the first node, by name, that fits; and what to write into PodScheduled."""
    if pod["spec"].get("schedulingGates"):
        message = "Scheduling is blocked due to non-empty scheduling gates"
        return None, _waiting("SchedulingGated", message)
    if uncovered := not_covered(pod):
        return None, _waiting("SchedulerError", f"not implemented by the local scheduler: {', '.join(uncovered)}")
    fit, reasons = Fit(pod, board), []
    for name in sorted(board.nodes):
        reason = fit.why_not(board.nodes[name])
        if reason is None:
            return name, Condition(type="PodScheduled")
        reasons.append(reason)
    return None, _waiting("Unschedulable", explanation(reasons))


def explanation(reasons: Iterable[str]) -> str:
    """Sum up one reason per node in the words of kube-scheduler (framework.FitError and DefaultPreemption)."""
    counted = Counter(reasons)
    if not counted:
        return "no nodes available to schedule pods"
    helped = Counter[str]()
    for reason, nodes in counted.items():
        helps = preemption_helps(reason)
        key = "No preemption victims found for incoming pod" if helps else "Preemption is not helpful for scheduling"
        helped[key] += nodes
    return f"{_sentence(counted)} preemption: {_sentence(helped)}"


def _sentence(counted: Counter[str]) -> str:
    listed = ", ".join(sorted(f"{nodes} {reason}" for reason, nodes in counted.items()))
    return f"0/{counted.total()} nodes are available: {listed}."


def _waiting(reason: str, message: str) -> Condition:
    return Condition(type="PodScheduled", status=False, reason=reason, message=message)


def _waits(pod: Object) -> bool:
    return not (pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"] or finished(pod))


def _turn(pod: Object) -> tuple[int, str, str, str]:
    metadata = pod["metadata"]
    return -pod["spec"].get("priority", 0), metadata["creationTimestamp"], metadata["namespace"], metadata["name"]


def _bind(objects: Objects, pod: Object, node_name: str, now: datetime) -> Object:
    bound = objects.update("pods", pod | {"spec": pod["spec"] | {"nodeName": node_name}})
    scheduled = _with_verdict(bound, Condition(type="PodScheduled"), now)
    metadata = pod["metadata"]
    message = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {node_name}"
    events.record(objects, events.Happening(pod, "Scheduled", message, SOURCE), now)
    return objects.update("pods", scheduled, status=True)


def _explain(objects: Objects, pod: Object, verdict: Condition, now: datetime, backoff: timedelta) -> datetime | None:
    """Write why the pod waits, unless it says so already or was written to less than the back-off ago."""
    said = find(of(pod), "PodScheduled")
    if said and (said.get("reason"), said.get("message")) == (verdict.reason, verdict.message):
        return None
    if said and (again := moment(said["lastProbeTime"]) + backoff) > now:
        return again
    objects.update("pods", _with_verdict(pod, verdict, now), status=True)
    if verdict.reason != "SchedulingGated":
        events.record(objects, events.Happening(pod, "FailedScheduling", verdict.message, SOURCE, warns=True), now)
    return None


def _with_verdict(pod: Object, verdict: Condition, now: datetime) -> Object:
    """Put the verdict into the pod's status; its lastProbeTime is when the scheduler last wrote it."""
    conditions = with_condition(of(pod), verdict, now)
    probed = [c | ({"lastProbeTime": timestamp(now)} if c["type"] == verdict.type else {}) for c in conditions]
    return pod | {"status": pod.get("status", {}) | {"conditions": probed}}
