"""kube-scheduler: binds pods to nodes that fit, preempts for higher priorities, reports why the others wait.

A Job's pods are bound one by one, as in a cluster without gang scheduling.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from infra.local.cluster.controllers import disruption, events, preemption
from infra.local.cluster.controllers.board import Board, finished
from infra.local.cluster.controllers.conditions import Condition, find, moment, of, with_condition
from infra.local.cluster.controllers.fit import Fit, Refusal, not_covered
from infra.local.cluster.controllers.pace import Pace
from infra.local.cluster.controllers.preemption import Victims
from infra.local.cluster.controllers.rounds import each
from infra.local.cluster.objects import Object, Objects, timestamp

SOURCE = "default-scheduler"

_PREEMPTED = Condition(
    type=disruption.TARGET,
    reason="PreemptionByScheduler",
    message=f"{SOURCE}: preempting to accommodate a higher priority pod",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Bind to `node`, or write why not; then `victims` make room on the node `room`."""

    verdict: Condition
    node: str | None = None
    victims: tuple[Object, ...] = ()
    room: str | None = None


@dataclass(slots=True)
class _Round:
    """One iteration over the waiting pods; pods bound during it are added to the board."""

    objects: Objects
    now: datetime
    backoff: timedelta
    board: Board = field(init=False)

    def __post_init__(self) -> None:
        self.board = Board.of(self.objects.stored("nodes"), self.objects.stored("pods"))

    def schedule(self, pod: Object) -> datetime | None:
        chosen = choose(pod, self.board)
        if chosen.node is not None:
            self.board = self.board.with_pod(_bind(self.objects, pod, chosen.node, self.now))
            return None
        message = f"Preempted by pod {pod['metadata']['uid']} on node {chosen.room}"
        for victim in chosen.victims:
            disruption.end(self.objects, victim, _PREEMPTED, self.now)
            events.record(self.objects, events.Happening(victim, "Preempted", message, SOURCE), self.now)
        pod = self._keep_room(pod, chosen.room)
        return _explain(self.objects, pod, chosen.verdict, self.now, self.backoff)

    def _keep_room(self, pod: Object, room: str | None) -> Object:
        """Add a pod for which room is being made to the board: those after it do not have a higher priority."""
        if room is not None:
            self.board = self.board.with_pod(pod | {"spec": pod["spec"] | {"nodeName": room}})
        if room == preemption.nominated(pod):
            return pod
        status = {key: value for key, value in pod.get("status", {}).items() if key != "nominatedNodeName"}
        status |= {"nominatedNodeName": room} if room else {}
        return self.objects.update("pods", pod | {"status": status}, status=True)


def reconcile(objects: Objects, now: datetime, pace: Pace) -> datetime | None:
    """Schedule every waiting pod, by descending priority and then by age."""
    waiting = sorted(filter(_waits, objects.stored("pods")), key=_turn)
    if not waiting:
        return None
    doubt = events.doubting(objects, SOURCE, now)
    this = _Round(objects, now, pace.scheduling_backoff)
    for obj, error in this.board.strange:
        doubt(obj, error)
    return each(waiting, this.schedule, doubt)


def choose(pod: Object, board: Board) -> Choice:
    """Return the first node that fits, by name; else the condition PodScheduled, and the victims that make room."""
    if pod["spec"].get("schedulingGates"):
        message = "Scheduling is blocked due to non-empty scheduling gates"
        return Choice(verdict=_waiting("SchedulingGated", message))
    if uncovered := not_covered(pod):
        message = f"not implemented by the local scheduler: {', '.join(uncovered)}"
        return Choice(verdict=_waiting("SchedulerError", message))
    fit, refusals = Fit(pod, board), {}
    for name in _in_turn(pod, board):
        refused = fit.why_not(board.nodes[name])
        if refused is None:
            return Choice(node=name, verdict=Condition(type="PodScheduled"))
        refusals[name] = refused
    return _without_node(pod, board, refusals)


def _in_turn(pod: Object, board: Board) -> list[str]:
    """Return the nodes by name, after the one on which room was made for the pod."""
    return sorted(board.nodes, key=lambda name: (name != preemption.nominated(pod), name))


def _without_node(pod: Object, board: Board, refusals: Mapping[str, Refusal]) -> Choice:
    if not refusals:
        return Choice(verdict=_waiting("Unschedulable", "no nodes available to schedule pods"))
    said = explanation(refusals.values())
    if refusal := preemption.not_eligible(pod, board, refusals):
        room = preemption.nominated(pod) if refusal == preemption.WAITING else None
        return Choice(verdict=_waiting("Unschedulable", f"{said} preemption: {refusal}"), room=room)
    match preemption.find(pod, board, refusals):
        case Victims() as found:
            return Choice(verdict=_waiting("Unschedulable", said), victims=found.pods, room=found.node)
        case answers:
            return Choice(verdict=_waiting("Unschedulable", f"{said} preemption: {explanation(answers.values())}"))


def explanation(refusals: Collection[Refusal]) -> str:
    """Return the summary of all nodes' refusals, in kube-scheduler's format (framework.FitError)."""
    counted = Counter(reason for refused in refusals for reason in refused.reasons)
    listed = ", ".join(sorted(f"{nodes} {reason}" for reason, nodes in counted.items()))
    return f"0/{len(refusals)} nodes are available: {listed}."


def _waiting(reason: str, message: str) -> Condition:
    return Condition(type="PodScheduled", status=False, reason=reason, message=message)


def _waits(pod: Object) -> bool:
    return not (pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"] or finished(pod))


def _turn(pod: Object) -> tuple[int, str, str, str]:
    metadata = pod["metadata"]
    return -preemption.priority(pod), metadata["creationTimestamp"], metadata["namespace"], metadata["name"]


def _bind(objects: Objects, pod: Object, node_name: str, now: datetime) -> Object:
    bound = objects.update("pods", pod | {"spec": pod["spec"] | {"nodeName": node_name}})
    scheduled = _with_verdict(bound, Condition(type="PodScheduled"), now)
    scheduled["status"].pop("nominatedNodeName", None)
    metadata = pod["metadata"]
    message = f"Successfully assigned {metadata['namespace']}/{metadata['name']} to {node_name}"
    events.record(objects, events.Happening(pod, "Scheduled", message, SOURCE), now)
    return objects.update("pods", scheduled, status=True)


def _explain(objects: Objects, pod: Object, verdict: Condition, now: datetime, backoff: timedelta) -> datetime | None:
    """Write why the pod waits, unless that is unchanged or was last written less than the back-off ago."""
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
    """Return the pod with the condition in its status; lastProbeTime is when the scheduler last wrote it."""
    conditions = with_condition(of(pod), verdict, now)
    probed = [c | ({"lastProbeTime": timestamp(now)} if c["type"] == verdict.type else {}) for c in conditions]
    return pod | {"status": pod.get("status", {}) | {"conditions": probed}}
