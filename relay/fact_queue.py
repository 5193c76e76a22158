"""What is to be published, and when: cluster cache, published counts, agenda. Pure: time is passed in.

| fact            | published                                                         | a lost one is made up for by |
|-----------------|-------------------------------------------------------------------|------------------------------|
| SlicesWanted    | within `gather` of the first leader that waits; at once if all    | the digest of demand         |
|                 | do and none is of a gang, of a pod by itself `succeeds` after one |                              |
|                 | ended in its namespace; with those leaders that were not told as  |                              |
|                 | they are; all of them on request, and every `repeat` if volumes   |                              |
|                 | are part of it; what was told before is held back                 |                              |
|                 | (`relay.telling.pacing`)                                          |                              |
| WorkloadChanged | if a workload changes its state or is not there; within `introduce` | the digest of workloads, and |
|                 | if it is new, unless its demand tells as much; on request; every  | repetition where hosts, or   |
|                 | `repeat` while hosts of an ended one exist and are not closing,   | the object of a TPUNodeGroup,|
|                 | or its object waits for its slice to be GONE; held back likewise, | wait to be released          |
|                 | unless it ends the use of slices (`relay.telling.states`)         |                              |
| SliceDeclared   | as WorkloadChanged, of a TPUNodeGroup that stands                 | the digest of workloads      |
| HostsChanged    | at once if a pool is new, becomes complete or closed, or stops    | the digest of hosts          |
|                 | being so, or has a new occupant; `vacated` after occupants left;  |                              |
|                 | else every `count_every`; on request; not while hosts are being   |                              |
|                 | closed, when the answer says all at once                          |                              |
| Listed          | on request, but not within `introduce` of the start               | the next request             |
| Heartbeat       | when all watches have begun, then every `beat`: digests of all    | the next one                 |

What must be looked up at the API server rests meanwhile, with all that is about the same workload or pool, so that
their order is kept. While a watch has shown no sign of life for `blind_after`, only ends are published: they are final.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from relay.agenda import (
    Agenda,
    Beat,
    Demand,
    Hosts,
    List,
    Look,
    Recount,
    State,
    StillEnded,
    Subject,
    Timing,
    WatchProgress,
)
from relay.cluster_cache import ClusterCache
from relay.host_counts import Count, PublishedCounts, count_of
from relay.hosts.closing import Closing, Reply, pool_key
from relay.kueue.reservations import Reservation, Reservations
from relay.lookups.looking import Looking, pods_on
from relay.lookups.threads import Due, LookedUp
from relay.lookups.users import PodsOn, answers
from relay.messages import beat_of, end_of, list_of
from relay.objects import Follower, Host, Kind, Leader, Pool, PoolKey, Seen, Unparseable, Workload
from relay.pods.jobs import job_pods_on, pools_of
from relay.telling.workloads import HeldBack, Telling
from tpu_slices.domain.model.facts import Family, Pinning, WorkloadChanged, WorkloadState
from tpu_slices.domain.model.gangs import Gating
from tpu_slices.domain.model.questions import FactQuestion, HostsQuestion, ListQuestion, Question, RepeatQuestion
from tpu_slices.domain.model.slices import ClusterId, OwnerKind, WorkloadUid
from tpu_slices.domain.records.hosts import key_of

TIMING = Timing()
NEVER = datetime.max.replace(tzinfo=UTC)


class FactQueue:
    """Records what the watches see, and returns the facts that are due."""

    def __init__(
        self, cluster: ClusterId, timing: Timing = TIMING, pinning: Callable[[], Pinning | None] = lambda: None
    ) -> None:
        """`pinning`: returns by what pods are pinned, as far as it is known, for heartbeats."""
        self.cache = ClusterCache(cluster)
        self._timing, self._pinning = timing, pinning
        self._agenda = Agenda()
        self._looking = Looking(self.cache, self._agenda, timing)
        self._ends: list[WorkloadChanged] = []
        self.reservations = Reservations()
        self._published = PublishedCounts(timing.count_every, timing.vacated)
        self.closing = Closing(timing)
        self._telling = Telling(cluster, self.cache, self._agenda, timing, self.closing.closes)
        self._watches = WatchProgress(timing.blind_after)
        self._beaten = False
        self.mirrored: Callable[[], int | None] = lambda: None
        """Returns the digest of the mirror, for heartbeats; None: there is none."""
        self.gating: Callable[[], Gating | None] = lambda: None
        self._tells_all_at = NEVER
        """From when on all that was there at the start has been told: before that, nothing is compared."""

    @property
    def complete(self) -> bool:
        return self._watches.complete

    @property
    def interrupted(self) -> bool:
        """Whether a list is lacking, or a watch failed and was not resumed yet."""
        return self._watches.interrupted or not self._watches.complete

    def listed(self, kind: Kind, seen: Sequence[Seen], version: str, now: datetime) -> None:
        """Record a whole list: objects that it lacks are gone."""
        present = {each.identity for each in seen}
        for identity in sorted((self.cache.identities(kind) | self.reservations.withheld(kind)) - present):
            self.lost(kind, identity, now)
        for each in seen:
            self.saw(each, now)
        self.bookmarked(kind, version, now)
        if self._agenda.get(Beat()) is None:
            self._agenda.put(Beat(), now)

    def bookmarked(self, kind: Kind, version: str, now: datetime) -> None:
        """Record a sign of life of a watch, which has delivered everything up to a resourceVersion."""
        interrupted = self._watches.interrupted
        self._watches.bookmarked(kind, version, now)
        if interrupted:
            self._recount(self.closing.pools, now)

    def failed(self, kind: Kind) -> None:
        """Record that a watch failed. Until its next sign of life it is not known that nobody is on hosts."""
        self._watches.failed(kind)

    def ask(self, question: FactQuestion | Question, now: datetime) -> None:
        """Record a question that is answered by facts, or, about one workload, beside them."""
        match question:
            case Question(owner=owner):
                self._telling.answered(owner.uid)
            case ListQuestion(family=family, asked_at=asked_at):
                self._agenda.schedule(List(family, asked_at), now)
            case RepeatQuestion(family=family, keys=keys):
                for key in keys:
                    self._repeat(family, key, now)
            case HostsQuestion():
                self._ask_about_hosts(question, now)

    def _repeat(self, family: Family, key: str, now: datetime) -> None:
        """Schedule the facts about one key of a family."""
        if family is not Family.HOSTS:
            self._telling.ask(WorkloadUid(key), now)
        elif (named := PoolKey.named(key)) and (pool := self._pool(named, None)):
            self._agenda.schedule(Hosts(pool), now)

    def _ask_about_hosts(self, question: HostsQuestion, now: datetime) -> None:
        pool = self._pool(pool_key(question), question.legacy_pool)
        if pool is None:
            return
        self.closing.ask(pool, question, self.cache.hosts.of(pool), now)
        if (maker := self.cache.maker(pool)) is not None:
            self._telling.confirm_active(maker, now)
        self._recount([pool], now)

    def reserve(self, reservations: Mapping[WorkloadUid, Reservation], now: datetime) -> None:
        """Record for which suspended workloads Kueue has quota: these ask for slices, and no others."""
        for workload in self.reservations.replaced(reservations):
            self.saw(workload, now)

    def evicted(self, pool: Pool, now: datetime) -> None:
        """Record that no pod is left on the hosts of a pool, which were closed."""
        self.closing.evicted(pool)
        self._recount([pool], now)

    def _pool(self, key: PoolKey, legacy: str | None) -> Pool | None:
        """Return the pool of a slice's attempt; None if it is a legacy pool, and nobody can tell which."""
        if legacy is not None:
            return self.cache.hosts.legacy_pool(legacy)
        return key if key.attempt else self._published.legacy_pool(key) or self.cache.legacy_pool(key)

    def saw(self, seen: Seen, now: datetime) -> None:
        """Record an object that was added or modified."""
        taken = self.reservations.seen(seen) if isinstance(seen, Workload) else seen
        if taken is None or self.cache.sets_aside(seen := taken):
            return
        before = self.cache.put(seen)
        match seen:
            case Workload():
                self._follow_workload(seen, before if isinstance(before, Workload) else None, now)
                if seen.leader is not None:
                    self.saw(seen.leader, now)
            case Leader():
                self._follow_leader(seen, before if isinstance(before, Leader) else None, now)
            case Follower():
                self._recount_soon(seen, now)
            case Host():
                self._follow_host(seen, before if isinstance(before, Host) else None, now)
            case Unparseable():
                pass  # its last known state stays

    def lost(
        self, kind: Kind, identity: str, now: datetime, last: Workload | None = None, deleted_at: str | None = None
    ) -> None:
        """Record that an object is gone; `last`, `deleted_at`: its final state and version, if a watch deleted it."""
        self.reservations.lost(identity)
        if kind is Kind.PODS:
            self.lost(Kind.LEADERS, identity, now)
        match gone := self.cache.drop(kind, identity):
            case Workload():
                self._telling.lost(gone.ref.owner, now)
                self._ends.append(end_of(last or gone, deleted_at))
                self._recount(self.cache.pools_of(gone.name), now)
            case Leader():
                self._telling.stopped_waiting(gone, None)
                self._telling.ended(gone, now)
                self._may_be_replaced(gone, now)
                self._looking.left([gone], now)
                self._recount(self.cache.pools_at(gone.node), now)
            case Follower():
                self._recount_soon(gone, now)
            case Host():
                self.closing.cordons.lost(gone.node)
                self._looking.left(self.cache.leaders_at(gone.node), now, gone.pool)
                self._recount({gone.pool}, now)
            case None:
                pass

    def _may_be_replaced(self, pod: Leader, now: datetime) -> None:
        """Leave the hosts of a pod by itself to the next one of its controller, which may come right after it."""
        if pod.workload.kind is OwnerKind.POD:
            for pool in self.cache.pools_at(pod.node):
                self.closing.replaced_until(pool, now + self._timing.vacated)

    def due(self, now: datetime) -> list[Due]:
        """Return the facts that are due, and schedule repetition; what is to be looked up rests until `resume`."""
        dues = [*self._due_ends()]
        if not self._watches.is_current(now):
            return dues
        if self._tells_all_at == NEVER and self.reservations.known:
            self._tells_all_at = now + self._timing.introduce
            self._looking.begin(now)
        for subject in self._agenda.pop(now):
            for due in self._due_about(subject, now):
                dues.append(due)
                if due.unknown is not None:
                    self._agenda.rest(due.subject)
        return dues

    def resume(self, subject: Subject, again_at: datetime | None = None) -> None:
        """Let facts on a subject come due again, then at the latest: what was unknown of it has been looked up."""
        self._agenda.resume(subject)
        if again_at is not None:
            self._agenda.schedule(subject, again_at)
            if isinstance(subject, Demand):
                self._telling.repeat_demand(subject, again_at)

    def looked(self, due: Due, found: LookedUp, now: datetime) -> None:
        """Record who is on the hosts of a pool, and tell it; an answer that could not be proven is tried again."""
        assert isinstance(due.unknown, PodsOn)
        pool = due.unknown.pool
        self._telling.hosts_told(found.facts)
        for workload in self._looking.looked(pool, found.users, now):
            self._follow_workload(workload, None, now)
        if due.answers and not found.answers:
            self._agenda.schedule(Recount(pool), self.closing.unproven(pool, now))
        last = self._published.last(pool)
        if last is not None and self._counted(pool, now)[0].hosts.occupants != last.hosts.occupants:
            self._agenda.schedule(Hosts(pool), now)

    def _due_ends(self) -> Iterator[Due]:
        ends, self._ends = self._ends, []
        for end in ends:
            subject = State(end.workload.owner.uid)
            if self._agenda.rests(subject):
                self._ends.append(end)
            else:
                yield Due(subject, (end,))

    def flush(self, now: datetime) -> list[Due]:
        """Return the facts that are due, and those that wait for others to join or to stand for them."""
        soon = now + self._timing.gather
        self._agenda.hurry(
            lambda subject, at: isinstance(subject, State) or (isinstance(subject, Demand) and at <= soon), now
        )
        return self.due(now)

    def held_back(self, now: datetime) -> list[HeldBack]:
        """Return the active workloads that change too often to be told of at once."""
        return self._telling.held_back(now)

    def unserved(self) -> list[Leader] | None:
        """Return the leaders of `ClusterCache.unserved`; None while a watch is interrupted: they may have nodes."""
        return None if self._watches.interrupted else self.cache.unserved()

    def next_due(self) -> datetime | None:
        """Return when `due` will next return facts, if nothing changes and the watches stay alive."""
        return self._agenda.next_due()

    def _follow_workload(self, jobset: Workload, before: Workload | None, now: datetime) -> None:
        self._telling.saw(jobset, before, now)
        if before is None or jobset.occupancy != before.occupancy:
            self._recount(self.cache.pools_of(jobset.name), now)

    def _follow_leader(self, leader: Leader, before: Leader | None, now: datetime) -> None:
        if leader.waiting and not (before and before.waiting):
            self._telling.came_to_wait(leader, now)
        if before is not None and before.waiting and not leader.waiting:
            self._telling.stopped_waiting(before, leader)
        if leader.ended:
            self._telling.ended(leader, now)
        if before is not None and before.node != leader.node:
            self._looking.left([before], now)
        if leader != before:
            stays = self._looking.came(leader)
            self._recount(self.cache.pools_at(leader.node, before.node if before else None) | stays, now)

    def _follow_host(self, host: Host, before: Host | None, now: datetime) -> None:
        self.closing.cordons.saw(host, now)
        self.closing.saw(host, before)
        self._recount({host.pool} | ({before.pool} if before else set()), now)

    def _recount_soon(self, follower: Follower, now: datetime) -> None:
        """Schedule a count of the hosts on which a pod and its Job are, with those of others that change with it."""
        for pool in pools_of(follower, self.cache):
            self._agenda.schedule(Recount(pool), now + self._timing.gather)

    def _recount(self, pools: Iterable[Pool], now: datetime) -> None:
        """Schedule what changes of hosts, of leaders on them and of cordons bring about, in an order of its own."""
        for pool in sorted(pools, key=str):
            (count, pods_at), last = self._counted(pool, now), self._published.last(pool)
            at = self._published.due(pool, self.cache.key_of(pool), count, now)
            if at is not None:
                self._agenda.schedule(Hosts(pool), at)
                if last is None or (count.whole and not last.whole):
                    self._tell_end(pool, now)
            if not self._watches.interrupted and self.closing.is_answerable(pool, count, now):
                self._agenda.schedule(Hosts(pool), now)
            settled_at = self.closing.cordons.next_change(self.cache.hosts.of(pool), now)
            for again_at in (settled_at, pods_at, self.closing.next_change(pool, count, now)):
                if again_at is not None:
                    self._agenda.schedule(Recount(pool), again_at)

    def _counted(self, pool: Pool, now: datetime) -> tuple[Count, datetime | None]:
        """Return the count of a pool's hosts, and when what is told of the pods there changes by itself."""
        hosts, occupants, last = self.cache.hosts.of(pool), self.cache.occupants(pool), self._published.last(pool)
        told = last.hosts.pods if last else ()
        pods, pods_at = job_pods_on(pool, self.cache, told, now, self._timing.pods_settle)
        return count_of(hosts, self.closing.cordons.closed(hosts, now), occupants).with_pods(pods), pods_at

    def _tell_end(self, pool: Pool, now: datetime) -> None:
        """Schedule the state of the workload that a pool was made for if it is not active: its hosts are not needed."""
        jobset = self.cache.maker(pool)
        if jobset is not None and jobset.state is not WorkloadState.ACTIVE:
            self._telling.repeat_state(jobset.ref.owner.uid, now)

    def _due_about(self, subject: Subject, now: datetime) -> Iterator[Due]:
        """Yield what is due about a subject: nothing if there is nothing to be said of it any more."""
        match subject:
            case Demand() | State() | StillEnded():
                yield from self._telling.due(subject, now)
            case Hosts(pool):
                yield from self._hosts(subject, pool, now)
            case Recount(pool):
                self._recount([pool], now)
            case Look():
                yield from self._looking.due(subject)
            case List():
                yield from self._list(subject, now)
            case Beat():
                yield self._beat(subject, now)

    def _beat(self, subject: Beat, now: datetime) -> Due:
        first, self._beaten = not self._beaten, True
        self._agenda.put(subject, now + self._timing.beat)
        found = {family: self._digests(family) for family in Family}
        sums = {family: sum(each.values()) for family, each in found.items()} if now >= self._tells_all_at else {}
        told = beat_of(len(found[Family.WORKLOADS]), sums, self._pinning(), self.gating(), self.mirrored())
        return Due(subject, (replace(told, first=first),))

    def _list(self, subject: List, now: datetime) -> Iterator[Due]:
        if now < self._tells_all_at:
            self._agenda.put(subject, self._tells_all_at)
            return
        digests = self._digests(subject.family)
        self._telling.listed(subject.family)
        yield Due(subject, list_of(subject.family, digests, subject.asked_at, self._watches.sequence))

    def _digests(self, family: Family) -> Mapping[str, int]:
        """Return the digests of a family by key: what was told, of workloads what is seen if all was told."""
        match family:
            case Family.WORKLOADS:
                return dict[str, int](self._telling.standings().items())
            case Family.DEMAND:
                return dict[str, int](self._telling.demand_digests().items())
            case Family.HOSTS:
                return {key_of(*pool): digest for pool, digest in self._published.digests.items()}

    def _hosts(self, subject: Subject, pool: Pool, now: datetime) -> Iterator[Due]:
        count = self._counted(pool, now)[0]
        answered_by, hosts = self.closing.answered_by(pool, count, now), self.cache.hosts.of(pool)
        interrupted = self._watches.interrupted
        reply = Reply(0) if interrupted else self.closing.reply(pool, count, hosts, now)
        if reply.key is None and answered_by is not None:
            self._agenda.schedule(subject, answered_by)
            return
        keys = self._published.published(pool, self.cache.key_of(pool) or reply.key, count, now)
        if keys:
            facts = tuple(reply.said(key, count.fact(key, self._watches.sequence)) for key in keys)
            self._telling.hosts_told(facts)
            proven = not answers(facts) or bool(count.hosts.occupants)
            yield Due(subject, facts, None if proven else pods_on(pool, self.cache))
