"""The rounds: every JobSet of a queue and its Workload move one step, then every ClusterQueue admits."""

from datetime import datetime

from infra.local.clients.events import Recorder
from infra.local.clients.objects import Object, Objects
from infra.local.clients.owners import by_controller
from infra.local.clients.rounds import each
from infra.local.clients.writing import write
from infra.local.kueue.quota import decide
from infra.local.kueue.workloads import QUEUE, Stage, closed, decided, is_of, next_change, stage

WATCHED = ("jobsets", "workloads", "clusterqueues", "localqueues", "resourceflavors", "workloadpriorityclasses")


def reconcile(objects: Objects, now: datetime, recorder: Recorder) -> None:
    """Bring the cluster one step nearer to what its queues allow; an object that cannot be read gets an Event."""
    owned = by_controller(objects.stored("workloads"))

    def step(jobset: Object) -> None:
        workload = next(iter(owned.pop(jobset["metadata"]["uid"], ())), None)
        after = next_change(jobset, workload, objects, now)
        if after and "deletionTimestamp" not in jobset["metadata"]:
            write(objects, jobset if after["kind"] == "JobSet" else workload, after)

    def delete(workload: Object) -> None:
        objects.delete("workloads", workload["metadata"]["namespace"], workload["metadata"]["name"])

    def admit(queue: Object) -> None:
        mine = [one for one in objects.stored("workloads") if is_of(one, queue, objects)]
        flavors = {one["metadata"]["name"]: one for one in objects.stored("resourceflavors")}
        waiting = [one for one in mine if stage(one) is Stage.WAITING and not closed(one, objects)]
        holders = [one for one in mine if stage(one) in (Stage.ADMITTED, Stage.EVICTED)]
        for workload, decision in decide(queue, waiting, holders, flavors):
            write(objects, workload, decided(workload, decision, now))

    def count(queue: Object) -> None:
        stages = [stage(one) for one in objects.stored("workloads") if is_of(one, queue, objects)]
        counts = {"pendingWorkloads": stages.count(Stage.WAITING), "admittedWorkloads": stages.count(Stage.ADMITTED)}
        write(objects, queue, queue | {"status": queue.get("status", {}) | counts})

    doubt = recorder.doubting(objects, now)
    each((one for one in objects.stored("jobsets") if one["metadata"].get("labels", {}).get(QUEUE)), step, doubt)
    each((workload for left in owned.values() for workload in left), delete, doubt)
    each(objects.stored("clusterqueues"), admit, doubt)
    each((*objects.stored("clusterqueues"), *objects.stored("localqueues")), count, doubt)
