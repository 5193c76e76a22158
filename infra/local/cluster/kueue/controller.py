"""The loop around the decisions: writes their results to objects, and records events."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from infra.local.cluster.controllers import events
from infra.local.cluster.controllers.conditions import Condition, find, is_true, of
from infra.local.cluster.controllers.ownership import by_controller
from infra.local.cluster.controllers.pace import Pace
from infra.local.cluster.controllers.rounds import Doubt, each, soonest
from infra.local.cluster.controllers.run import Controller
from infra.local.cluster.kueue import jobsets, lifecycle, transitions
from infra.local.cluster.kueue.counts import cluster_queue_counts, local_queue_counts
from infra.local.cluster.kueue.priorities import Priorities
from infra.local.cluster.kueue.queues import Queues
from infra.local.cluster.kueue.scheduling import Verdict, decide
from infra.local.cluster.kueue.settings import Settings
from infra.local.cluster.kueue.workloads import (
    ADMITTED,
    EVICTED,
    QUOTA_RESERVED,
    is_finished,
    is_queued,
    key,
    priority,
    queue_name,
    queued_since,
    reserves_quota,
)
from infra.local.cluster.kueue_api.keys import JOB_UID
from infra.local.cluster.objects import RESOURCES, Object, Objects

JOBSET_SOURCE = "jobset-kueue-controller"
WORKLOAD_SOURCE = "kueue-workload-controller"
SCHEDULER_SOURCE = "kueue-admission"
_SOURCE = "kueue"


def controller(settings: Settings) -> Controller:
    """Return the controller that `controllers.run` runs after every change."""
    judged: dict[str, Hashable] = {}

    def reconcile(objects: Objects, now: datetime, _: Pace) -> datetime | None:
        kinds = ("clusterqueues", "localqueues", "resourceflavors", "namespaces")
        queues = Queues.of(*map(objects.stored, kinds))
        return _Round(objects, settings, queues, judged, now).run()

    return reconcile


@dataclass(frozen=True, slots=True)
class _Round:
    """One iteration. `judged`: the inputs of the last decisions about each ClusterQueue's Workloads."""

    objects: Objects
    settings: Settings
    queues: Queues
    judged: dict[str, Hashable]
    now: datetime

    def run(self) -> datetime | None:
        doubt = events.doubting(self.objects, _SOURCE, self.now)
        wakes = [self._jobsets(doubt), self._workloads(doubt)]
        self._cluster_queues(doubt)
        each(self.objects.stored("localqueues"), self._count_local_queue, doubt)
        return soonest(wakes)

    def _jobsets(self, doubt: Doubt) -> datetime | None:
        workloads = by_controller(self.objects.stored("workloads"))
        ground = jobsets.Ground(
            flavors=self.queues.flavors,
            priorities=Priorities.known(self.objects.stored("workloadpriorityclasses"), self._pod_classes()),
            settings=self.settings,
        )

        def control(jobset: Object) -> None:
            if queue_name(jobset) and "deletionTimestamp" not in jobset["metadata"]:
                owned = workloads[jobset["metadata"]["uid"]]
                self._carry_out(jobset, jobsets.step(jobset, owned, ground, self.now))

        return each(self.objects.stored("jobsets"), control, doubt)

    def _pod_classes(self) -> Sequence[Object]:
        return self.objects.stored("priorityclasses") if "priorityclasses" in RESOURCES else ()

    def _carry_out(self, jobset: Object, step: jobsets.Step) -> None:
        for workload in step.delete:
            metadata = workload["metadata"]
            self.objects.delete("workloads", metadata["namespace"], metadata["name"])
        if step.create is not None:
            self.objects.create("workloads", step.create)
        if step.jobset is not None:
            self.objects.update("jobsets", step.jobset)
        if step.workload is not None:
            self.objects.update("workloads", step.workload)
        if step.status is not None:
            self.objects.update("workloads", step.status, status=True)
        for news in step.told:
            happening = events.Happening(jobset, news.reason, news.message, JOBSET_SOURCE, warns=news.warns)
            # A warning is about a state that persists, and each repetition of an event would be a change.
            (events.record_once if news.warns else events.record)(self.objects, happening, self.now)

    def _workloads(self, doubt: Doubt) -> datetime | None:
        def live(workload: Object) -> datetime | None:
            decided = lifecycle.step(workload, self.queues, self.settings, self.now)
            if decided.workload is not workload and decided.workload != workload:
                self.objects.update("workloads", decided.workload, status=True)
                self._tell_eviction(workload, decided.workload)
            return decided.wake

        return each(self.objects.stored("workloads"), live, doubt)

    def _tell_eviction(self, before: Object, after: Object) -> None:
        eviction = find(of(after), EVICTED)
        if eviction is None or is_true(before, EVICTED) or not reserves_quota(before):
            return
        if eviction["status"] == "True":
            happening = events.Happening(
                after, f"EvictedDueTo{eviction['reason']}", eviction["message"], WORKLOAD_SOURCE
            )
            events.record(self.objects, happening, self.now)

    def _cluster_queues(self, doubt: Doubt) -> None:
        queued: defaultdict[str, list[Object]] = defaultdict(list)
        of_queue: defaultdict[str, list[Object]] = defaultdict(list)

        def place(workload: Object) -> None:
            name = _queue_of(workload, self.queues)
            of_queue[name].append(workload)
            if is_queued(workload, self.now) and self.queues.blocker(workload) is None:
                queued[name].append(workload)

        def schedule(queue: Object) -> None:
            name = queue["metadata"]["name"]
            holders = [one for one in of_queue[name] if reserves_quota(one) and not is_finished(one)]
            specs = (queue, *self.queues.flavors.values())
            made_of = _versions(specs, "generation"), _versions((*queued[name], *holders), "resourceVersion")
            if self.judged.get(name) != made_of:
                for verdict in decide(queue, queued[name], holders, self.queues.flavors):
                    self._pronounce(verdict)
                self.judged[name] = made_of
            counts = cluster_queue_counts(queue, of_queue[name])
            self._write_queue("clusterqueues", queue, counts, self.queues.readiness(queue))

        each(self.objects.stored("workloads"), place, doubt)
        each(self.objects.stored("clusterqueues"), schedule, doubt)

    def _pronounce(self, verdict: Verdict) -> None:
        workload = verdict.workload
        if verdict.admission is not None:
            self.objects.update("workloads", transitions.reserved(workload, verdict.admission, self.now), status=True)
            self._tell_admission(workload, verdict.admission["clusterQueue"])
            return
        for victim in verdict.preempts:
            if not is_true(victim, EVICTED):
                self._preempt(victim, workload)
        refused = transitions.unreserved(workload, verdict.reason, verdict.message, self.now)
        if refused != workload:
            self.objects.update("workloads", refused, status=True)
            happening = events.Happening(workload, verdict.reason, verdict.message, SCHEDULER_SOURCE, warns=True)
            events.record(self.objects, happening, self.now)

    def _tell_admission(self, workload: Object, queue: str) -> None:
        waited = (self.now - queued_since(workload)).total_seconds()
        texts = {
            QUOTA_RESERVED: f"Quota reserved in ClusterQueue {queue}, wait time since queued was {waited:.0f}s",
            ADMITTED: f"Admitted by ClusterQueue {queue}, wait time since reservation was 0s",
        }
        for reason, text in texts.items():
            events.record(self.objects, events.Happening(workload, reason, text, SCHEDULER_SOURCE), self.now)

    def _preempt(self, victim: Object, preemptor: Object) -> None:
        job_uid = preemptor["metadata"].get("labels", {}).get(JOB_UID, "")
        after = transitions.preempted(victim, preemptor, job_uid, self.now)
        self.objects.update("workloads", after, status=True)
        mine, theirs = (f"{number} (base: {number}, boost: 0)" for number in map(priority, (preemptor, victim)))
        ranks = f"preemptor effective priority: {mine}; preemptee effective priority: {theirs}"
        message = str((find(of(after), EVICTED) or {}).get("message", ""))
        queue = victim["status"]["admission"]["clusterQueue"]
        uid = victim["metadata"]["uid"]
        for obj, reason, text in (
            (victim, "EvictedDueToPreempted", message),
            (victim, "Preempted", f"{message}; {ranks}"),
            (
                preemptor,
                "PreemptedWorkload",
                f"Preempted workload {key(victim)} (UID: {uid}) in ClusterQueue {queue}; {ranks}",
            ),
        ):
            events.record(self.objects, events.Happening(obj, reason, text, SCHEDULER_SOURCE), self.now)

    def _count_local_queue(self, queue: Object) -> None:
        metadata = queue["metadata"]
        workloads = [
            one
            for one in self.objects.stored("workloads", metadata["namespace"])
            if one["spec"].get("queueName") == metadata["name"]
        ]
        cluster = self.queues.cluster_queues.get(queue["spec"].get("clusterQueue", ""))
        self._write_queue("localqueues", queue, local_queue_counts(cluster, workloads), self.queues.openness(queue))

    def _write_queue(self, plural: str, queue: Object, counts: Object, active: Condition) -> None:
        after = transitions.told(queue, active, self.now)
        after = after | {"status": after["status"] | counts}
        if after != queue:
            self.objects.update(plural, after, status=True)


def _queue_of(workload: Object, queues: Queues) -> str:
    """Return the ClusterQueue whose quota a Workload holds or waits for; empty if there is none."""
    admission = workload.get("status", {}).get("admission")
    if admission is not None:
        return str(admission["clusterQueue"])
    found = queues.cluster_queue(workload)
    return "" if found is None else str(found["metadata"]["name"])


def _versions(objects: Iterable[Object], kind: str) -> Hashable:
    """Return a key that changes with the specs ("generation") or with anything ("resourceVersion") of the objects."""
    return tuple((one["metadata"]["uid"], one["metadata"][kind]) for one in objects)
