"""The scheduling of one ClusterQueue: which Workloads are admitted now, and why the others are not (pure).

Source: pkg/scheduler/scheduler.go, pkg/cache/queue/cluster_queue.go. Without cohorts ClusterQueues do not affect
each other, so that one pass over a queue is equivalent to Kueue's scheduling cycles.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from infra.local.cluster.kueue.flavors import WAITING_FOR_QUOTA, Assignment, Ground, Mode, assign
from infra.local.cluster.kueue.preemption import Contest
from infra.local.cluster.kueue.quota import held, nominal, together
from infra.local.cluster.kueue.workloads import in_order
from infra.local.cluster.objects import Object

MISCONFIGURED = "Misconfigured"
WAITING_FOR_PREEMPTED = "WaitingForPreemptedWorkloads"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """An admission (status.admission), or reason and message of QuotaReserved=False and the Workloads to preempt."""

    workload: Object
    admission: Object | None = None
    reason: str = ""
    message: str = ""
    preempts: tuple[Object, ...] = ()


def decide(
    cluster_queue: Object, queued: Iterable[Object], holders: Sequence[Object], flavors: Mapping[str, Object]
) -> Iterator[Verdict]:
    """Yield the verdicts on a queue's Workloads in order. `holders` have quota reserved; `flavors` by name.

    A Workload that preempts blocks those behind it; under StrictFIFO so does one that does not fit.
    """
    usage, quota = together(map(held, holders)), nominal(cluster_queue)
    strict = cluster_queue["spec"]["queueingStrategy"] == "StrictFIFO"
    for workload in sorted(queued, key=in_order):
        ground = Ground(cluster_queue=cluster_queue, quota=quota, flavors=flavors, usage=usage)
        contest = Contest(workload=workload, ground=ground, holders=holders)
        try:
            assignment = assign(workload, ground, contest.preemptible)
        except ValueError as error:  # an invalid operator or quantity
            yield Verdict(workload=workload, reason=MISCONFIGURED, message=f"failed to assign flavors: {error}")
            continue
        if assignment.mode is Mode.FIT:
            usage = together([usage, assignment.usage])
            yield Verdict(workload=workload, admission=_admission(cluster_queue, assignment))
            continue
        verdict = _not_yet(contest, assignment)
        yield verdict
        if verdict.preempts or strict:
            return


def _admission(cluster_queue: Object, assignment: Assignment) -> Object:
    assigned = [pod_set.status() for pod_set in assignment.pod_sets]
    return {"clusterQueue": cluster_queue["metadata"]["name"], "podSetAssignments": assigned}


def _not_yet(contest: Contest, assignment: Assignment) -> Verdict:
    workload, message = contest.workload, assignment.message
    if assignment.mode is Mode.NO_FIT:
        return Verdict(workload=workload, reason=assignment.reason, message=message)
    targets = contest.targets(assignment.usage)
    if not targets:
        return Verdict(workload=workload, reason=WAITING_FOR_QUOTA, message=message)
    message += f". Pending the preemption of {len(targets)} workload(s)"
    return Verdict(workload=workload, reason=WAITING_FOR_PREEMPTED, message=message, preempts=tuple(targets))
