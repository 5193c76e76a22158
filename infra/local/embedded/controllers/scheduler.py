"""kube-scheduler without preemption: binds pods to nodes that fit, reports why the others wait.

A Job's pods are bound one by one, as in a cluster without gang scheduling.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from infra.local.clients.conditions import Condition, find, moment, of, with_condition
from infra.local.clients.events import Happening, Recorder
from infra.local.clients.objects import Object, Objects, timestamp
from infra.local.clients.rounds import each
from infra.local.embedded.controllers.board import Board
from infra.local.embedded.controllers.disruption import finished
from infra.local.embedded.controllers.fit import Fit, not_covered
from infra.local.embedded.controllers.pace import Pace

Bind = Callable[[Object, str], Object]
"""Binds a pod to a node and returns it."""

Reasons = tuple[str, ...]
"""Why a pod does not fit on one node."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The node to bind to; without one, the condition PodScheduled that says why."""

    node: str | None
    waiting: Condition | None = None


@dataclass(slots=True)
class Scheduler:
    bind: Bind
    _recorder: Recorder = field(default_factory=lambda: Recorder("default-scheduler"))

    def reconcile(self, objects: Objects, now: datetime, pace: Pace) -> datetime | None:
        """Schedule every waiting pod, by descending priority and then by age."""
        waiting = sorted(filter(_waits, objects.stored("pods")), key=_place)
        if not waiting:
            return None
        board = Board.of(objects.stored("nodes"), objects.stored("pods"))
        doubt = self._recorder.doubting(objects, now)
        for obj, error in board.strange:
            doubt(obj, error)

        def schedule(pod: Object) -> datetime | None:
            chosen = choose(pod, board)
            if chosen.waiting is not None:
                return self._explain(objects, pod, chosen.waiting, now, pace.scheduling_backoff)
            assert chosen.node is not None
            board.add(self.bind(pod, chosen.node))
            metadata = pod["metadata"]
            message = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {chosen.node}"
            self._recorder.record(objects, Happening(pod, "Scheduled", message, action="Binding"), now)
            return None

        return each(waiting, schedule, doubt)

    def _explain(
        self, objects: Objects, pod: Object, waiting: Condition, now: datetime, backoff: timedelta
    ) -> datetime | None:
        """Write why the pod waits, unless that is unchanged or was last written less than the back-off ago."""
        known = find(of(pod), "PodScheduled")
        if known and (known.get("reason"), known.get("message")) == (waiting.reason, waiting.message):
            return None
        if known and known.get("lastProbeTime") and (again := moment(known["lastProbeTime"]) + backoff) > now:
            return again
        conditions = with_condition(of(pod), waiting, now)
        probed = [c | ({"lastProbeTime": timestamp(now)} if c["type"] == "PodScheduled" else {}) for c in conditions]
        objects.update("pods", pod | {"status": pod["status"] | {"conditions": probed}}, status=True)
        if waiting.reason != "SchedulingGated":
            event = Happening(pod, "FailedScheduling", waiting.message, warns=True, action="Scheduling")
            self._recorder.record(objects, event, now)
        return None


def choose(pod: Object, board: Board) -> Choice:
    """Return the first node that fits, by name, or why there is none (pure)."""
    if pod["spec"].get("schedulingGates"):
        return _waiting("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
    if uncovered := not_covered(pod):
        return _waiting("SchedulerError", f"not implemented by the embedded scheduler: {', '.join(uncovered)}")
    fit, refused = Fit(pod, board), []
    for name in sorted(board.nodes):
        reasons = fit.why_not(board.nodes[name])
        if not reasons:
            return Choice(name)
        refused.append(reasons)
    if not refused:
        return _waiting("Unschedulable", "no nodes available to schedule pods")
    return _waiting("Unschedulable", explanation(refused))


def explanation(refused: Collection[Reasons]) -> str:
    """Return the summary of all nodes' reasons, in kube-scheduler's format (framework.FitError)."""
    counted = Counter(reason for reasons in refused for reason in reasons)
    listed = ", ".join(sorted(f"{nodes} {reason}" for reason, nodes in counted.items()))
    return f"0/{len(refused)} nodes are available: {listed}."


def _waiting(reason: str, message: str) -> Choice:
    return Choice(None, Condition(type="PodScheduled", status=False, reason=reason, message=message))


def _waits(pod: Object) -> bool:
    own = pod["spec"].get("schedulerName", "default-scheduler") == "default-scheduler"
    return own and not (pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"] or finished(pod))


def _place(pod: Object) -> tuple[int, str, str, str]:
    metadata = pod["metadata"]
    return -pod["spec"].get("priority", 0), metadata["creationTimestamp"], metadata["namespace"], metadata["name"]
