"""kube-scheduler without preemption: binds pods to nodes that fit, reports why the others wait.

A Job's pods are bound one by one, as in a cluster without gang scheduling.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime

from infra.local.clients.conditions import Condition, find, moment, of, with_condition
from infra.local.clients.events import Happening, Recorder
from infra.local.clients.objects import Object, Objects, timestamp
from infra.local.clients.rounds import each
from infra.local.embedded.controllers.fit import Board, Fit, not_covered
from infra.local.embedded.controllers.pods import Pace, finished

Bind = Callable[[Object, str], Object]
"""Binds a pod to a node and returns it."""


@dataclass(slots=True)
class Scheduler:
    bind: Bind
    _recorder: Recorder = field(default_factory=lambda: Recorder("default-scheduler"))

    def reconcile(self, objects: Objects, now: datetime, pace: Pace) -> datetime | None:
        """Schedule every waiting pod, by descending priority and then by age."""
        waiting = sorted(filter(_waits, objects.stored("pods")), key=_place)
        board, doubt = Board(), self._recorder.doubting(objects, now)
        if waiting:
            each(objects.stored("nodes"), board.offer, doubt)
            there = (pod for pod in objects.stored("pods") if pod["spec"].get("nodeName") and not finished(pod))
            each(there, board.place, doubt)

        def schedule(pod: Object) -> datetime | None:
            chosen = choose(pod, board)
            if isinstance(chosen, Condition):
                return self._explain(objects, pod, chosen, now, pace)
            board.place(self.bind(pod, chosen))
            message = f"Successfully assigned {pod['metadata']['namespace']}/{pod['metadata']['name']} to {chosen}"
            self._recorder.record(objects, Happening(pod, "Scheduled", message, action="Binding"), now)
            return None

        return each(waiting, schedule, doubt)

    def _explain(self, objects: Objects, pod: Object, why: Condition, now: datetime, pace: Pace) -> datetime | None:
        """Write why the pod waits, unless that is unchanged or was last written less than the back-off ago."""
        known = find(of(pod), "PodScheduled")
        if known and (known.get("reason"), known.get("message")) == (why.reason, why.message):
            return None
        if known and (again := moment(known["lastProbeTime"]) + pace.scheduling_backoff) > now:
            return again
        conditions = with_condition(of(pod), why, now)
        probed = [c | ({"lastProbeTime": timestamp(now)} if c["type"] == "PodScheduled" else {}) for c in conditions]
        objects.update("pods", pod | {"status": pod["status"] | {"conditions": probed}}, status=True)
        if why.reason != "SchedulingGated":
            event = Happening(pod, "FailedScheduling", why.message, warns=True, action="Scheduling")
            self._recorder.record(objects, event, now)
        return None


def choose(pod: Object, board: Board) -> str | Condition:
    """Return the first node that fits, by name, or the condition that says why there is none (pure)."""
    if pod["spec"].get("schedulingGates"):
        return _waiting("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
    if uncovered := not_covered(pod):
        return _waiting("SchedulerError", f"not implemented by the embedded scheduler: {', '.join(uncovered)}")
    fit, refused = Fit(pod, board), []
    for name in sorted(board.nodes):
        reasons = fit.why_not(board.nodes[name])
        if not reasons:
            return name
        refused.append(reasons)
    return _waiting("Unschedulable", explanation(refused) if refused else "no nodes available to schedule pods")


def explanation(refused: Collection[tuple[str, ...]]) -> str:
    """Return the summary of all nodes' reasons, in kube-scheduler's format (framework.FitError)."""
    counted = Counter(reason for reasons in refused for reason in reasons)
    listed = ", ".join(sorted(f"{nodes} {reason}" for reason, nodes in counted.items()))
    return f"0/{len(refused)} nodes are available: {listed}."


def _waiting(reason: str, message: str) -> Condition:
    return Condition(type="PodScheduled", status=False, reason=reason, message=message)


def _waits(pod: Object) -> bool:
    own = pod["spec"].get("schedulerName", "default-scheduler") == "default-scheduler"
    return own and not (pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"] or finished(pod))


def _place(pod: Object) -> tuple[int, str, str, str]:
    metadata = pod["metadata"]
    return -pod["spec"].get("priority", 0), metadata["creationTimestamp"], metadata["namespace"], metadata["name"]
