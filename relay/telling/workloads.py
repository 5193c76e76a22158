"""When the state and the demand of workloads are told, and in which facts. Pure: time is passed in.

`states` says what there is to tell of a state, `demand` which leaders, `pacing` how soon. What waits is on the agenda,
and is looked at again when it comes due: it is told as it is then, or not at all if that was told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from relay.agenda import Agenda, Demand, State, StillEnded, Timing
from relay.cluster_cache import ClusterCache
from relay.hosts.claims import Awaited, gangs_of, has_gangs
from relay.lookups.threads import Due, Mounted
from relay.messages import parts_of, state_of
from relay.objects import Leader, Pool, Workload
from relay.telling.demand import DemandTold
from relay.telling.leaders import leaders_in_demand, mounted_volumes
from relay.telling.pacing import Pace
from relay.telling.states import StatesTold, ToTell
from tpu_slices.domain.model.facts import Fact, Family, SlicesWanted, WaitingLeader, WorkloadState
from tpu_slices.domain.model.slices import ClusterId, Owner, OwnerKind, WorkloadUid


@dataclass(frozen=True, slots=True)
class HeldBack:
    """An active workload of which something is told later, as it changes too often."""

    owner: Owner
    until: datetime
    changes: int
    since: datetime
    """When the first of these changes was."""


class Telling:
    """Schedules what is to be told of workloads, and keeps what was; `closes`: whether a pool's hosts are closing."""

    def __init__(
        self, cluster: ClusterId, cache: ClusterCache, agenda: Agenda, timing: Timing, closes: Callable[[Pool], bool]
    ) -> None:
        self._cache, self._agenda, self._timing, self._closes = cache, agenda, timing, closes
        self._states = StatesTold()
        self._demand = DemandTold(cluster)
        self._paces: dict[WorkloadUid, Pace] = {}
        self._held: dict[WorkloadUid, datetime] = {}
        self._asked: set[WorkloadUid] = set()
        """Of whom all demand is told again, since somebody asked."""
        self._pods_ended: dict[str, datetime] = {}
        """By namespace, when a pod by itself ended last."""

    def saw(self, workload: Workload, before: Workload | None, now: datetime) -> None:
        """Schedule what is to be told of a workload that is new, or changed."""
        uid, to_tell = workload.ref.owner.uid, self._states.to_tell(workload)
        changed = before is None or workload.told != before.told
        if not workload.tellable:
            self._states.lapsed(uid)
        elif to_tell is ToTell.FIRST and changed:
            introduced = before is None and workload.demand_tells_all
            self._agenda.schedule(State(uid), now + self._timing.introduce if introduced else now)
        elif to_tell is ToTell.END:
            self._agenda.schedule(State(uid), now)
            self._may_be_succeeded(workload.ref.owner, now)
        elif to_tell is ToTell.RENEWAL:
            self._hold(State(uid), self._pace(uid).renewal_due(now))
        if before is not None and (changed or before.ref.generation != workload.ref.generation):
            self._paces[uid] = self._pace(uid).changed(now)
        self._gather(workload, now)

    def came_to_wait(self, leader: Leader, now: datetime) -> None:
        """Schedule what is to be told of a leader that waits since now."""
        workload = self._cache.workload_of(leader)
        if workload is None or not self._cache.leads(leader):
            return
        uid = workload.ref.owner.uid
        if self._demand.is_replaced(workload, workload.claimed(leader.place)):
            self._paces[uid] = self._pace(uid).changed(now)
        self._gather(workload, now)

    def stopped_waiting(self, before: Leader, after: Leader | None) -> None:
        """Record that a leader does not wait any more; `after`: as it is now, None: it is gone."""
        workload = self._cache.workload_of(before)
        place = workload.claimed(before.place) if workload is not None else before.place
        if workload is None or self._cache.waits(workload, place):
            return
        uid = workload.ref.owner.uid
        if after is not None and self._cache.pools_at(after.node) and self._cache.on_hosts(after) is not None:
            self._demand.came(uid, place)
        else:
            self._demand.ended(uid, place)
        if any(not self._cache.gang_waits(workload, gang) for gang in gangs_of(workload, [place])):
            self._demand.ended_but(uid, self._cache.waiting(uid))

    def ended(self, leader: Leader, now: datetime) -> None:
        """Schedule what is to be told of the leader that leads a shared slice since another has ended, or is gone."""
        workload = self._cache.workload_of(leader)
        if workload is not None and workload.shares_slice(leader.place):
            self._gather(workload, now)

    def lost(self, owner: Owner, now: datetime) -> None:
        """Forget a workload that is gone."""
        uid = owner.uid
        self._may_be_succeeded(owner, now)
        self._states.forget(uid)
        self._demand.forget(uid)
        self._asked.discard(uid)
        for kept in (self._paces, self._held):
            kept.pop(uid, None)

    def ask(self, uid: WorkloadUid, now: datetime) -> None:
        """Schedule all that is to be told of a workload: somebody asks."""
        self.repeat_state(uid, now)
        if self._cache.workload(uid) is not None:
            self._asked.add(uid)
        self._agenda.schedule(Demand(uid), now)

    def repeat_state(self, uid: WorkloadUid, now: datetime) -> None:
        """Schedule the state of a workload, whatever was told of it."""
        self._states.forget(uid)
        self._agenda.schedule(State(uid), now)

    def confirm_active(self, workload: Workload, now: datetime) -> None:
        """Schedule the state of an active workload that somebody may not know, unless it waits to be told."""
        if workload.state is WorkloadState.ACTIVE and self._states.to_tell(workload) is not ToTell.RENEWAL:
            self.repeat_state(workload.ref.owner.uid, now)

    def answered(self, uid: WorkloadUid) -> None:
        """Record that a question about a workload is answered by what the API server says."""
        if (workload := self._cache.workload(uid)) is not None:
            self._states.answered(workload)

    def hosts_told(self, facts: Iterable[Fact]) -> None:
        """Record who is told to be on hosts."""
        self._states.tell_hosts(facts)

    def listed(self, family: Family) -> None:
        """Record that a family is listed."""
        if family is Family.DEMAND:
            self._demand.listed(self._cache.waiting)

    def repeat_demand(self, subject: Demand, at: datetime) -> None:
        """Let demand be told again then at the latest, whatever was told: what its leaders mount may be there."""
        known = self._demand.repeat_at(subject.uid)
        self._demand.repeat(subject.uid, min(at, known) if known is not None else at)

    def held_back(self, now: datetime) -> list[HeldBack]:
        """Return the active workloads of which something is held back now."""
        self._held = {uid: until for uid, until in self._held.items() if until > now}
        found = []
        for uid, until in self._held.items():
            workload, pace = self._cache.workload(uid), self._pace(uid)
            if workload is None or workload.state is not WorkloadState.ACTIVE or pace.changing_since is None:
                continue
            if self._states.to_tell(workload) is ToTell.RENEWAL or self._agenda.get(Demand(uid)) == until:
                found.append(HeldBack(workload.ref.owner, until, pace.changes, pace.changing_since))
        return found

    def standings(self) -> Mapping[WorkloadUid, int]:
        """Return the standings of live workloads: as they are seen, or as they were told while more is to be told."""
        seen = self._cache.live_standings()
        told = {uid: self._states.standing(uid) for uid in seen if self._agenda.get(State(uid)) is not None}
        return {**seen, **{uid: standing for uid, standing in told.items() if standing is not None}}

    def demand_digests(self) -> Mapping[WorkloadUid, int]:
        """Return the digests of the demand that was told, but of workloads that were told not to be active."""
        return self._demand.digests(lambda uid: self._cache.waiting(uid) if self._states.lets_demand(uid) else ())

    def due(self, subject: Demand | State | StillEnded, now: datetime) -> Iterator[Due]:
        """Yield what is due about a workload: nothing if there is nothing to be said of it any more, or not yet."""
        workload = self._cache.workload(subject.uid)
        if workload is None:
            return
        match subject:
            case Demand():
                yield from self._due_demand(subject, workload, now)
            case State():
                yield from self._due_state(subject, workload, now)
            case StillEnded():
                yield from self._still_ended(subject, workload, now)

    def _pace(self, uid: WorkloadUid) -> Pace:
        return self._paces.get(uid) or Pace(self._timing)

    def _gather(self, workload: Workload, now: datetime) -> None:
        """Schedule a workload's demand: after `gather`, so that more leaders can join, or at once if all wait.

        Those of a gang whose slices stand are let go meanwhile, and nothing is told.
        """
        demand = Demand(workload.ref.owner.uid)
        if (scheduled := self._agenda.get(demand)) is not None and scheduled <= now:
            return
        awaited = self._cache.awaits(workload)
        if awaited is not Awaited.NONE:
            first = now if awaited is Awaited.ALL and not has_gangs(workload) else now + self._timing.gather
            self._agenda.schedule(demand, max(first, self._succeeds_at(workload.ref.owner, now)))

    def _may_be_succeeded(self, owner: Owner, now: datetime) -> None:
        if owner.kind is OwnerKind.POD:
            self._pods_ended[owner.namespace] = now

    def _succeeds_at(self, owner: Owner, now: datetime) -> datetime:
        """Return when a pod by itself may ask for a slice: once the end of one before it is known, whose it may get."""
        ended = self._pods_ended.get(owner.namespace) if owner.kind is OwnerKind.POD else None
        return ended + self._timing.succeeds if ended is not None else now

    def _hold(self, subject: State | Demand, until: datetime) -> None:
        self._held[subject.uid] = until
        self._agenda.schedule(subject, until)

    def _still_ended(self, subject: StillEnded, workload: Workload, now: datetime) -> Iterator[Due]:
        """Yield the state of a workload that is not active while hosts made for it are not being closed."""
        if workload.state is WorkloadState.ACTIVE:
            return
        pools = self._cache.made_for(workload)
        if workload.held or any(not self._closes(pool) for pool in pools):
            self._states.forget(subject.uid)
            yield from self._due_state(State(subject.uid), workload, now)
        elif pools:
            self._agenda.schedule(subject, now + self._timing.repeat)

    def _due_state(self, subject: State, workload: Workload, now: datetime) -> Iterator[Due]:
        """Yield the state of a workload if there is something to tell, and that need not wait."""
        if not workload.tellable:
            return
        if workload.state is not WorkloadState.ACTIVE:
            self._agenda.schedule(StillEnded(subject.uid), now + self._timing.repeat)
        to_tell = self._states.to_tell(workload)
        if to_tell is ToTell.NOTHING:
            return
        if to_tell is ToTell.RENEWAL:
            if (at := self._pace(subject.uid).renewal_due(now)) > now:
                self._hold(subject, at)
                return
            self._renew(subject.uid, now)
        self._states.tell(workload)
        yield Due(subject, (state_of(with_time(workload, now)),))

    def _renew(self, uid: WorkloadUid, now: datetime) -> None:
        """Begin a renewal, which tells all that waits."""
        self._paces[uid] = self._pace(uid).renewed(now)
        self._demand.renew(uid)
        self._held.pop(uid, None)
        if (at := self._agenda.get(Demand(uid))) is not None and at > now + self._timing.gather:
            self._agenda.put(Demand(uid), now)

    def _due_demand(self, subject: Demand, workload: Workload, now: datetime) -> Iterator[Due]:
        """Yield the demand of those leaders of a workload that are to be told now."""
        waiting = self._cache.waiting(subject.uid)
        if not waiting:
            return
        yield from self._state_before(workload, now)
        if not self._states.lets_demand(subject.uid):
            self._hold(subject, max(now + self._timing.gather, self._pace(subject.uid).renewal_due(now)))
            return
        leaders, volumes = tuple(leaders_in_demand(workload, waiting)), mounted_volumes(waiting)
        told = self._to_tell_now(workload, leaders, now)
        if told:
            self._states.tell_demand(workload)
            self._demand.tell(workload, told)
        self._repeat_volumes(subject.uid, now, whole=len(told) == len(leaders), mounts=bool(volumes))
        self._schedule_rest(subject, workload, leaders, now)
        if told:
            ref, requests = with_time(workload, now).ref, workload.requests
            facts = tuple(SlicesWanted(workload=ref, requests=requests, waiting=part) for part in parts_of(told))
            yield Due(subject, facts, Mounted(volumes, now) if volumes else None)

    def _state_before(self, workload: Workload, now: datetime) -> Iterator[Due]:
        """Yield the state before demand, which says that a workload is active; if it says all, the state need not."""
        state = State(workload.ref.owner.uid)
        at = self._agenda.get(state)
        if at is not None and at > now and not self._states.is_known(state.uid):
            self._agenda.drop(state)
            return
        for due in self._due_state(state, workload, now):
            self._agenda.drop(state)
            yield due

    def _to_tell_now(
        self, workload: Workload, leaders: Sequence[WaitingLeader], now: datetime
    ) -> Sequence[WaitingLeader]:
        """Return the leaders to be told now; if they are a renewal, all that were not told as they are."""
        uid = workload.ref.owner.uid
        if uid in self._asked or self._demand.repeats(uid, now):
            self._asked.discard(uid)
            return leaders
        new, joining, renewed = self._demand.unlike(workload, leaders)
        pace = self._pace(uid)
        if (renewed and pace.renewal_due(now) <= now) or (joining and pace.is_quiet(now)):
            self._renew(uid, now)
            self._paces[uid] = self._paces[uid].joined(now)
            return (*new, *joining, *renewed)
        if joining and pace.joining_due(now) <= now and self._states.to_tell(workload) is not ToTell.RENEWAL:
            self._paces[uid] = pace.joined(now)
            return (*new, *joining)
        return new

    def _repeat_volumes(self, uid: WorkloadUid, now: datetime, *, whole: bool, mounts: bool) -> None:
        """Let demand be repeated while leaders mount volumes: nothing tells the relay what becomes of these."""
        if not mounts:
            self._demand.repeat(uid, None)
        elif whole or self._demand.repeat_at(uid) is None:
            self._demand.repeat(uid, now + self._timing.repeat)

    def _schedule_rest(
        self, subject: Demand, workload: Workload, leaders: Sequence[WaitingLeader], now: datetime
    ) -> None:
        """Schedule what was not told yet, and what is repeated."""
        _, joining, renewed = self._demand.unlike(workload, leaders)
        pace = self._pace(subject.uid)
        if (at := self._demand.repeat_at(subject.uid)) is not None:
            self._agenda.schedule(subject, at)
        state_waits = self._states.to_tell(workload) is ToTell.RENEWAL
        if renewed or (joining and state_waits):
            self._hold(subject, pace.renewal_due(now))
        if joining and not state_waits:
            self._agenda.schedule(subject, pace.joining_due(now))


def with_time(workload: Workload, now: datetime) -> Workload:
    """Return a workload with the time at which it is told, if its state may change without its generation."""
    dated = workload.queue or workload.reserved
    return replace(workload, ref=replace(workload.ref, as_of=now)) if dated else workload
