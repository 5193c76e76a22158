"""The rounds: every JobSet of a queue and its Workload move one step, then every ClusterQueue admits."""

import logging
from collections.abc import Iterable
from datetime import datetime

from infra.local.clients.objects import Object, Objects
from infra.local.clients.owners import by_controller
from infra.local.clients.rounds import each
from infra.local.kueue.queues import Queues
from infra.local.kueue.quota import decide
from infra.local.kueue.workloads import QUEUE, Stage, decided, next_change, stage

WATCHED = ("jobsets", "workloads", "clusterqueues", "localqueues", "resourceflavors", "workloadpriorityclasses")
_log = logging.getLogger(__name__)


def reconcile(objects: Objects, now: datetime, _: None) -> None:
    """Bring the cluster one step nearer to what its queues allow."""
    queues = Queues.of(objects)
    jobsets = [one for one in objects.stored("jobsets") if one["metadata"].get("labels", {}).get(QUEUE)]
    owned = by_controller(objects.stored("workloads"))

    def step(jobset: Object) -> None:
        workload = next(iter(owned.pop(jobset["metadata"]["uid"], ())), None)
        after = next_change(jobset, workload, queues, now)
        if after and "deletionTimestamp" not in jobset["metadata"]:
            _write(objects, jobset if after["kind"] == "JobSet" else workload, after)

    def delete(workload: Object) -> None:
        objects.delete("workloads", workload["metadata"]["namespace"], workload["metadata"]["name"])

    def admit(queue: Object) -> None:
        mine = [one for one in objects.stored("workloads") if queues.name_of(one) == queue["metadata"]["name"]]
        waiting = [one for one in mine if stage(one) is Stage.WAITING and not queues.closed(one)]
        holders = [one for one in mine if stage(one) in (Stage.ADMITTED, Stage.EVICTED)]
        for workload, decision in decide(queue, waiting, holders, queues.flavors):
            _write(objects, workload, decided(workload, decision, now))
        _count(objects, queue, mine)

    def count(queue: Object) -> None:
        mine = [one for one in objects.stored("workloads") if queues.of_workload(one)[0] is queue]
        _count(objects, queue, mine)

    each(jobsets, step, _doubt)
    each((workload for left in owned.values() for workload in left), delete, _doubt)
    each(queues.cluster.values(), admit, _doubt)
    each(queues.local.values(), count, _doubt)


def _count(objects: Objects, queue: Object, workloads: Iterable[Object]) -> None:
    stages = [stage(one) for one in workloads]
    counts = {"pendingWorkloads": stages.count(Stage.WAITING), "admittedWorkloads": stages.count(Stage.ADMITTED)}
    _write(objects, queue, queue | {"status": queue.get("status", {}) | counts})


def _write(objects: Objects, before: Object | None, after: Object) -> None:
    plural = f"{after['kind'].lower()}s"
    if before is None:
        objects.create(plural, after)
    elif before != after:
        objects.update(plural, after, status=before["spec"] == after["spec"])


def _doubt(obj: Object, error: Exception) -> None:
    _log.warning("%s %s: %s: %s", obj["kind"], obj["metadata"]["name"], type(error).__name__, error)
