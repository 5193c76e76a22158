"""Which of the pods that the scheduling gate of gangs holds may start now. Pure: time is passed in.

| a pod that is held                                                 | is                                          |
|--------------------------------------------------------------------|---------------------------------------------|
| of a workload that is suspended, over or cannot be parsed, or of   | left alone                                  |
| an earlier one of its name                                         |                                             |
| of a gang that stands (`relay.gangs.standing`)                     | let go                                      |
| of a gang that does not                                            | held                                        |
| of a workload that is not known                                    | held for `UNKNOWN_FOR`, as that may come    |
|                                                                    | late; then as any other                     |
| any other: its workload opted out, its template is of no gang or   | let go, and its workload told: nothing else |
| has no chips, or nobody controls it                                | ever would                                  |

A workload is judged when something comes that may change this: a pod of it, its object, a host with the key that it
lacks; at most once each `PAUSE`, or a time that grows with its slices; and each `AGAIN` for what comes with no object.
Nothing is let go while a watch is interrupted: hosts may be other than they were.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from relay.fact_queue import FactQueue
from relay.gangs.standing import Standing
from relay.hosts.occupants import is_controlled, is_live
from relay.notices.gangs import NOT_HELD, Notice
from relay.objects import Follower, Host, JobPod, Leader, Seen, Unparseable, Workload, WorkloadName
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.model.host_keys import parted
from tpu_slices.domain.model.reasons import OwnerReason
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

PAUSE, PAUSE_PER_SLICE = timedelta(milliseconds=50), timedelta(milliseconds=0.2)
AGAIN = timedelta(seconds=10)
UNKNOWN_FOR = timedelta(minutes=1)
Held = Leader | Follower
Open = Callable[[WorkloadName, Sequence[JobPod]], None]


@dataclass(slots=True)
class Judged:
    """What becomes of the held pods of a workload."""

    go: list[Held] = field(default_factory=list)
    strays: list[Notice] = field(default_factory=list)
    """What is told of pods that are let go, as no gang ever will."""
    keys: set[str] = field(default_factory=set)
    """Of each gang that does not stand, the key of hosts that it lacks."""
    gangs: set[str] = field(default_factory=set)
    """Those that stand."""
    again_at: datetime | None = None


class Gates:
    """Judges workloads in the thread that owns the fact queue; `open` takes all pods of one that may start now."""

    def __init__(self, queue: FactQueue) -> None:
        self._queue, self._cache = queue, queue.cache
        self.standing = Standing(queue.cache, queue.closing)
        self.open: Open = lambda *_: None
        self.tell: Callable[[Notice], None] = lambda _: None
        self._due: dict[WorkloadName, datetime] = {}
        self._judged: dict[WorkloadName, datetime] = {}
        self._lacks: dict[WorkloadName, frozenset[str]] = {}
        self._lacked: defaultdict[str, set[WorkloadName]] = defaultdict(set)
        self._unknown: dict[WorkloadName, datetime] = {}
        self._going: dict[WorkloadName, tuple[frozenset[str], datetime]] = {}
        """The gangs of each workload that are let go, and since when some are."""

    def saw(self, seen: Seen, now: datetime, *, new: bool = False) -> None:
        """Have judged what an object that was added or modified concerns; `new`: a watch said that it was added."""
        match seen:
            case Leader() | Follower():
                if new and self._is_not_held(seen):
                    self.tell(Notice(OwnerReason.GANG_NOT_HELD, seen, NOT_HELD))
                self._concerns([seen.workload], now)
            case Workload():
                self._concerns([seen.name], now)
            case Host():
                self._concerns([*self._lacked.get(parted(seen.key)[1], ())], now)
            case Unparseable():
                pass  # its last known state stays

    def _is_not_held(self, pod: Held) -> bool:
        """Return whether a pod that was just made is to be held, and is not."""
        workload = self._cache.named(pod.workload)
        if workload is None or pod.gated or pod.node is not None or not isinstance(pod, Leader):
            return False
        asks = any(each.gang for each in workload.requests if each.replicated_job == pod.place.replicated_job)
        return asks and is_live(workload) and is_controlled(pod, workload)

    def next_due(self) -> datetime | None:
        """Return when a workload is to be judged next, if nothing changes."""
        return min(self._due.values(), default=None)

    def turn(self, now: datetime) -> None:
        """Judge the workloads that are due."""
        due = [name for name, at in self._due.items() if at <= now]
        blind = self._queue.interrupted
        for name in due:
            held = self._cache.held.of(name)
            if not held:
                self._forget(name)
            elif blind:
                self.open(name, ())
                self._due[name] = now + PAUSE
            else:
                self._judge(name, [*held], now)

    def _concerns(self, names: Iterable[WorkloadName], now: datetime) -> None:
        for name in names:
            if self._cache.held.of(name) or name in self._judged:
                judged = self._judged.get(name)
                at = now if judged is None else max(now, judged + self._pause(name))
                self._due[name] = min(at, self._due.get(name, at))

    def _pause(self, name: WorkloadName) -> timedelta:
        workload = self._cache.named(name)
        return max(PAUSE, PAUSE_PER_SLICE * (workload.slices if workload else 0))

    def _forget(self, name: WorkloadName) -> None:
        """Forget a workload of which nothing is held any more."""
        self._await(name, frozenset())
        for kept in (self._due, self._judged, self._unknown, self._going):
            kept.pop(name, None)
        self.open(name, ())

    def _await(self, name: WorkloadName, keys: frozenset[str]) -> None:
        for key in self._lacks.pop(name, frozenset()):
            self._lacked[key].discard(name)
            if not self._lacked[key]:
                del self._lacked[key]
        if keys:
            self._lacks[name] = keys
        for key in keys:
            self._lacked[key].add(name)

    def _judge(self, name: WorkloadName, held: Sequence[Held], now: datetime) -> None:
        workload = self._cache.named(name)
        found = self._of_unknown(name, held, now) if workload is None else self._of_known(workload, held)
        self._judged[name] = now
        self._await(name, frozenset(found.keys))
        self._due[name] = found.again_at or now + self._go_on(name, frozenset(found.gangs), now)
        for stray in found.strays:
            self.tell(stray)
        self.open(name, (*found.go, *(each.pod for each in found.strays)))

    def _go_on(self, name: WorkloadName, gangs: frozenset[str], now: datetime) -> timedelta:
        """Record which gangs are let go; return when to look again whether they still stand: ever later."""
        before, since = self._going.pop(name, (frozenset[str](), now))
        if not gangs:
            return AGAIN
        self._going[name] = gangs, since
        if begun := gangs - before:
            _log.info(LogEvent.GANG_OPENED, owner=f"{name.namespace}/{name.name}", gangs=sorted(begun))
        return min(AGAIN, max(self._pause(name), (now - since) / 4))

    def _of_unknown(self, name: WorkloadName, held: Sequence[Held], now: datetime) -> Judged:
        since = self._unknown.setdefault(name, now)
        if now - since < UNKNOWN_FOR or any(self._cache.is_unparseable(each) for each in held):
            return Judged(again_at=max(since + UNKNOWN_FOR, now + AGAIN))
        why = f"no {name.kind} {name.name} asks for slices"
        return Judged(strays=[_stray(each, why) for each in held])

    def _of_known(self, workload: Workload, held: Sequence[Held]) -> Judged:
        found = Judged()
        if workload.parse_error is not None or workload.state is not WorkloadState.ACTIVE:
            return found
        of_gangs: defaultdict[str, list[Held]] = defaultdict(list)
        gangs = {request.replicated_job: request.gang for request in workload.requests}
        for pod in (each for each in held if each.may_be_of(workload)):
            why = _why_stray(workload, pod, gangs)
            if why:
                found.strays.append(_stray(pod, why))
            else:
                of_gangs[gangs[pod.place.replicated_job]].append(pod)
        for gang, pods in of_gangs.items():
            missing = self.standing.missing(workload, gang, pods)
            if missing is None:
                found.gangs.add(gang)
                found.go += pods
            else:
                found.keys.add(missing.key)
        return found


def _stray(pod: Held, why: str) -> Notice:
    return Notice(OwnerReason.NOT_IN_GANG, pod, f"{why}: the scheduling gate {GANG} is taken off such pods")


def _why_stray(workload: Workload, pod: Held, gangs: Mapping[str, str]) -> str:
    """Return why no gang will ever let a pod go, as a clause; empty: one will."""
    owner = workload.ref.owner
    itself, replicated_job = f"{owner.kind} {owner.name}", pod.place.replicated_job
    if not workload.served:
        return f"{itself} gets no slices" + (f": {workload.unserved}" if workload.unserved else "")
    if not is_controlled(pod, workload):
        return f"nothing that {itself} made controls it"
    if gang := gangs.get(replicated_job):
        return ""
    part = f"replicatedJob {replicated_job} of {itself}" if replicated_job else itself
    return f"{part} is of no gang" if gang is not None else f"{part} asks for no slices"
