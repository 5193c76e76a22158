"""What is to be published, and when: cluster cache, published counts and bindings, agenda. Pure: time is passed in.

| fact            | published                                                         | repeated every `repeat`        |
|-----------------|-------------------------------------------------------------------|--------------------------------|
| SlicesWanted    | within `gather` of the first leader that waits; at once if all do | while leaders wait             |
| WorkloadChanged | at once if a JobSet is new, changes its state, or is deleted      | while inactive with hosts left |
| HostsChanged    | at once if a pool is new, becomes complete, or stops being so;    | while there are hosts          |
|                 | else at most every `count_every`                                  |                                |
| LeaderBound     | at once                                                           | while bound                    |
| Heartbeat       | first with the list of JobSets; then every `beat`, without it     |                                |

Repetition makes up for lost messages, and confirms demand. While a watch has shown no sign of life for `blind_after`,
only deletions are published: the rest of the cluster cache may be outdated, but a deletion is final.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from relay.agenda import Beat, Bound, Demand, Hosts, State, Subject, Timing
from relay.cluster_cache import Awaited, ClusterCache, Count, PodBinding
from relay.fact_parts import parts_of
from relay.objects import Host, JobSet, Kind, Leader, Place, PoolKey, Seen, Unparseable
from tpu_slices.domain.model.facts import (
    Fact,
    Heartbeat,
    HostsChanged,
    LeaderBound,
    SlicesWanted,
    WorkloadChanged,
    WorkloadState,
)
from tpu_slices.domain.model.observations import LegacyPool
from tpu_slices.domain.model.slices import ClusterId, WorkloadJob, WorkloadUid
from tpu_slices.domain.reconciling.inventory import digest_of

TIMING = Timing()


class FactQueue:
    """Records what the watches see, and returns the facts that are due."""

    def __init__(self, cluster: ClusterId, timing: Timing = TIMING) -> None:
        self.cache = ClusterCache(cluster)
        self._timing = timing
        self._agenda: dict[Subject, datetime] = {}
        self._ends: list[WorkloadChanged] = []
        self._counted: dict[PoolKey | LegacyPool, tuple[Count, datetime]] = {}
        self._bindings: dict[str, PodBinding] = {}
        self._signs_of_life: dict[Kind, datetime] = {}
        self._nodes_version = 0
        self._listed = False

    @property
    def complete(self) -> bool:
        """Whether every kind was listed: what is not in the cluster cache then does not exist."""
        return len(self._signs_of_life) == len(Kind)

    def listed(self, kind: Kind, seen: Sequence[Seen], version: str, now: datetime) -> None:
        """Record a whole list: objects that it lacks are gone."""
        present = {each.identity for each in seen}
        for identity in sorted(self.cache.identities(kind) - present):
            self.lost(kind, identity, now)
        for each in seen:
            self.saw(each, now)
        self.bookmarked(kind, version, now)
        self._schedule_if_absent(Beat(), now)

    def bookmarked(self, kind: Kind, version: str, now: datetime) -> None:
        """Record a sign of life of a watch, which has delivered everything up to a resourceVersion."""
        self._signs_of_life[kind] = now
        if kind is Kind.HOSTS and version.isdigit():
            self._nodes_version = max(self._nodes_version, int(version))

    def saw(self, seen: Seen, now: datetime) -> None:
        """Record an object that was added or modified."""
        before = self.cache.put(seen)
        match seen, before:
            case JobSet(), JobSet() if seen.announced_state == before.announced_state:
                self._gather(seen, now)
            case JobSet(), _:
                self._schedule(State(seen.ref.owner.uid), now)
                self._gather(seen, now)
                for leader in self.cache.leaders_of(seen):
                    self._schedule(Bound(leader.pod_uid), now)
            case Leader(), _:
                self._follow(seen, before if isinstance(before, Leader) else None, now)
            case Host(), _:
                self._recount(seen, before if isinstance(before, Host) else None, now)
            case Unparseable(), _:
                pass  # its last known state stays

    def lost(self, kind: Kind, identity: str, now: datetime, last: JobSet | None = None) -> None:
        """Record that an object is gone; `last` is the JobSet's final state, if the watch delivered it."""
        gone = self.cache.drop(kind, identity)
        match gone:
            case JobSet():
                self._ends.append(WorkloadChanged(workload=(last or gone).ref, state=WorkloadState.DELETED))
                for pod in [pod for pod, binding in self._bindings.items() if binding.occupant.owner.uid == identity]:
                    self._schedule(Bound(pod), now)
            case Leader():
                self._schedule(Bound(identity), now)
            case Host():
                self._recount(gone, None, now)
            case None:
                pass

    def due(self, now: datetime) -> list[Fact]:
        """Return the facts that are due, and schedule their repetition."""
        facts: list[Fact] = [*self._ends]
        self._ends.clear()
        if not self._is_current(now):
            return facts
        for subject in [subject for subject, at in self._agenda.items() if at <= now]:
            del self._agenda[subject]
            facts.extend(self._facts_about(subject, now))
        return facts

    def flush(self, now: datetime) -> list[Fact]:
        """Return the facts that are due, and those that are still being gathered."""
        for subject in self._agenda:
            if isinstance(subject, Demand) and self._agenda[subject] <= now + self._timing.gather:
                self._agenda[subject] = now
        return self.due(now)

    def next_due(self) -> datetime | None:
        """Return when `due` will next return facts, if nothing changes and the watches stay alive."""
        return min(self._agenda.values(), default=None)

    def everything(self, now: datetime) -> Heartbeat | None:
        """Return a heartbeat with the list of live TPU JobSets; None while the relay cannot be sure of it."""
        if not self._is_current(now):
            return None
        return replace(self._heartbeat(), uids=self.cache.live_uids())

    def leader_pod(self, job: WorkloadJob) -> Leader | None:
        """Return the leader pod of a Job, preferably one that waits, then one that is bound; None if there is none."""
        jobset = self.cache.jobset(job.owner.uid)
        leaders = self.cache.leaders_of(jobset) if jobset else ()
        place = Place(job.replicated_job, job.job_index)
        own = (leader for leader in leaders if leader.place == place)
        return max(own, key=lambda leader: (leader.waiting, leader.node is not None, leader.pod_uid), default=None)

    def _is_current(self, now: datetime) -> bool:
        return self.complete and all(
            now - bookmarked < self._timing.blind_after for bookmarked in self._signs_of_life.values()
        )

    def _schedule(self, subject: Subject, at: datetime) -> None:
        """Schedule a subject for this time at the latest."""
        self._agenda[subject] = min(at, self._agenda.get(subject, at))

    def _schedule_if_absent(self, subject: Subject, at: datetime) -> None:
        self._agenda.setdefault(subject, at)

    def _gather(self, jobset: JobSet, now: datetime) -> None:
        """Schedule a JobSet's demand: after `gather`, so that more leaders can join, or at once if all wait."""
        awaited = self.cache.awaits(jobset)
        if awaited is not Awaited.NONE:
            self._schedule(Demand(jobset.ref.owner.uid), now if awaited is Awaited.ALL else now + self._timing.gather)

    def _follow(self, leader: Leader, before: Leader | None, now: datetime) -> None:
        jobset = self.cache.jobset_of(leader)
        if jobset is not None and leader.waiting and not (before and before.waiting):
            self._gather(jobset, now)
        if leader.node != (before.node if before else None):
            self._schedule(Bound(leader.pod_uid), now)

    def _recount(self, host: Host, before: Host | None, now: datetime) -> None:
        """Schedule the count of a pool, and the bindings of leaders on a host that was added or removed."""
        published = self._counted.get(host.pool)
        count = self.cache.count(host.pool)
        if published is None or count.whole != published[0].whole:
            self._schedule(Hosts(host.pool), now)
            self._repeat_state(host.jobset_uid, now)
        elif count != published[0]:
            self._schedule(Hosts(host.pool), published[1] + self._timing.count_every)
        if before is None:
            for pod in self.cache.pods_on_node(host.node):
                self._schedule(Bound(pod), now)

    def _repeat_state(self, uid: WorkloadUid | None, now: datetime) -> None:
        """Schedule the state of a JobSet that is not active, although hosts were added for it."""
        jobset = self.cache.jobset(uid) if uid else None
        if jobset is not None and jobset.state is not WorkloadState.ACTIVE:
            self._schedule(State(jobset.ref.owner.uid), now)

    def _facts_about(self, subject: Subject, now: datetime) -> Iterator[Fact]:
        repeat_at = now + self._timing.repeat
        match subject:
            case Demand(uid):
                yield from self._demand(subject, uid, repeat_at)
            case State(uid):
                yield from self._state(subject, uid, repeat_at)
            case Hosts(pool):
                yield from self._hosts(subject, pool, now)
            case Bound(pod):
                yield from self._bound(subject, pod, now)
            case Beat():
                whole, self._listed = not self._listed, True
                self._agenda[subject] = now + self._timing.beat
                yield replace(self._heartbeat(), uids=self.cache.live_uids()) if whole else self._heartbeat()

    def _demand(self, subject: Subject, uid: WorkloadUid, repeat_at: datetime) -> Iterator[Fact]:
        jobset = self.cache.jobset(uid)
        if jobset is None:
            return
        for part in parts_of(self.cache.leaders_in_demand(uid)):
            self._agenda[subject] = repeat_at
            yield SlicesWanted(workload=jobset.ref, requests=jobset.requests, waiting=part)

    def _state(self, subject: Subject, uid: WorkloadUid, repeat_at: datetime) -> Iterator[Fact]:
        jobset = self.cache.jobset(uid)
        if jobset is None:
            return
        if jobset.state is not WorkloadState.ACTIVE and self.cache.has_hosts(uid):
            self._agenda[subject] = repeat_at
        yield WorkloadChanged(
            workload=jobset.ref, state=jobset.state, queue=jobset.queue, template_error=jobset.parse_error or ""
        )

    def _hosts(self, subject: Subject, pool: PoolKey | LegacyPool, now: datetime) -> Iterator[HostsChanged]:
        count = self.cache.count(pool)
        self._counted[pool] = (count, now)
        if count.joined:
            self._agenda[subject] = now + self._timing.repeat
        else:
            del self._counted[pool]
        key = self.cache.key_of(pool)
        if key is not None:
            yield HostsChanged(
                slice_id=key.slice_id,
                attempt=key.attempt,
                usable=count.usable,
                joined=count.joined,
                sequence=self._nodes_version,
            )

    def _bound(self, subject: Subject, pod: str, now: datetime) -> Iterator[Fact]:
        before, binding = self._bindings.pop(pod, None), self.cache.binding(pod)
        if before is not None and before != binding:
            yield _leader_bound(before, bound=False)
        if binding is not None:
            self._bindings[pod] = binding
            self._agenda[subject] = now + self._timing.repeat
            yield _leader_bound(binding, bound=True)
        if binding is not None and before != binding:
            self._repeat_demand_of(binding, now)

    def _repeat_demand_of(self, binding: PodBinding, now: datetime) -> None:
        """Schedule the demand of a JobSet whose hosts another one's leader took: it has to be confirmed."""
        owner = self.cache.jobset(binding.owner) if binding.owner else None
        if owner is not None and binding.owner != binding.occupant.owner.uid:
            self._gather(owner, now)

    def _heartbeat(self) -> Heartbeat:
        uids = self.cache.live_uids()
        return Heartbeat(count=len(uids), digest=digest_of(uids))


def _leader_bound(binding: PodBinding, *, bound: bool) -> LeaderBound:
    pool = binding.pool
    return LeaderBound(slice_id=pool.slice_id, attempt=pool.attempt, occupant=binding.occupant, bound=bound)
