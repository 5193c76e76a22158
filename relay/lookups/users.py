"""Who is on the hosts of a pool, by lists of their pods.

| a pod that holds chips, and has not ended                      | keeps the hosts                          |
|----------------------------------------------------------------|------------------------------------------|
| is being deleted, within its own grace, or on a Ready host     | whoever owns it: it writes its checkpoint|
| is being deleted beyond its grace, on a host that is not Ready | no: nothing will end it there            |
| its owner is live, and controls it                             | whatever its index, or its template then |
| - but its leader waits, for half an hour, while hosts of the   | no: it cannot run there, and follows its |
|   pool are missing (`looking`)                                 | leader                                   |
| any other                                                      | no                                       |

A watch whose connection stalls says nothing for minutes before it counts as failed, while others go on. What is deleted
on an answer must not depend on that: before it is said that nobody is on hosts, their nodes, the pods on each and the
workloads of these pods are read anew, and anything that was not expected takes the answer from the report.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol, TypeVar

import structlog

from relay.hosts.occupants import HostPod, occupant_of
from relay.objects import Pool, Workload, WorkloadName
from tpu_slices.domain.model.facts import Fact, HostsChanged, Occupant
from tpu_slices.domain.records.hosts import Job, job_of
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()
K = TypeVar("K")
V = TypeVar("V")

LISTS_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class PodsOn:
    """A question: who is on the hosts of a pool."""

    pool: Pool
    nodes: Mapping[str, bool]
    """The nodes of the pool that the watch has shown, and whether each is Ready."""
    behind: frozenset[Job] = frozenset()
    """The Jobs whose pods do not keep the hosts: their leaders wait in vain for others of the pool."""


@dataclass(frozen=True, slots=True)
class Users:
    """Who is on the hosts of a pool."""

    occupants: tuple[Occupant, ...] = ()
    """The live Jobs, each by the first of its pods."""
    ending: tuple[HostPod, ...] = ()
    """The pods that are being deleted, and end in their time."""


class Lists(Protocol):
    """What `relay.cluster.Cluster` reads; each raises Temporary or Permanent."""

    def nodes_of(self, pool: Pool) -> Collection[str]: ...

    def chip_pods_on(self, node: str, *, exactly: bool) -> Sequence[HostPod]: ...

    def workload_named(self, name: WorkloadName) -> Workload | None: ...


class Each(Protocol):
    """Asks about each of several things."""

    def __call__(self, ask: Callable[[K], V], things: Sequence[K], /) -> list[V]: ...


def at_once(ask: Callable[[K], V], things: Sequence[K]) -> list[V]:
    """Return what is answered about each of these things, asked in threads; raise what one of them raises."""
    with ThreadPoolExecutor(LISTS_AT_ONCE) as threads:
        asked = [threads.submit(ask, each) for each in things]
        try:
            return [each.result() for each in asked]
        except (Temporary, Permanent):
            threads.shutdown(cancel_futures=True)
            raise


def in_turn(ask: Callable[[K], V], things: Sequence[K]) -> list[V]:
    """Return what is answered about each of these things, of what answers without delay."""
    return [ask(each) for each in things]


class Looks:
    """Looks who is on hosts, and checks answers that nobody is."""

    def __init__(self, lists: Lists, now: Callable[[], datetime], each: Each = at_once) -> None:
        self._lists, self._now, self._each = lists, now, each

    def looked(self, facts: Sequence[Fact], asked: PodsOn) -> tuple[list[Fact], Users | None]:
        """Return facts on one pool, without the answer if that is not sure, and who is on its hosts; None: unknown."""
        answer = answers(facts)
        try:
            unseen = sorted({*self._lists.nodes_of(asked.pool)} - {*asked.nodes}) if answer else []
            users = self._users(asked, exactly=answer)
        except (Temporary, Permanent) as trouble:
            return _unanswered(facts, str(trouble)), None
        if unseen:
            return _unanswered(facts, f"the watch has not shown that node {unseen[0]} is one of the hosts"), users
        if answer and users.ending:
            return _unanswered(facts, ends_by=max(pod.ends_by for pod in users.ending if pod.ends_by)), users
        doubt = _doubt(users, asked.behind) if answer else ""
        return _unanswered(facts, doubt) if doubt else [*facts], users

    def _users(self, asked: PodsOn, *, exactly: bool) -> Users:
        lists = self._each(lambda node: self._lists.chip_pods_on(node, exactly=exactly), sorted(asked.nodes))
        pods = [pod for each in lists for pod in each]
        ending = tuple(pod for pod in pods if pod.ends_by is not None and self._ends(pod, asked.nodes))
        staying = (pod for pod in pods if pod.ends_by is None)
        members = [pod.member for pod in (*staying, *ending) if pod.member is not None]
        names = sorted({member.workload for member in members})
        workloads = dict(zip(names, self._each(self._lists.workload_named, names), strict=True))
        found: dict[Job, Occupant] = {}
        for member in sorted(members, key=lambda member: member.pod):
            workload = workloads[member.workload]
            occupant = occupant_of(member, workload) if workload is not None else None
            if occupant is not None:
                found.setdefault(job_of(occupant), occupant)
        return Users(tuple(found.values()), ending)

    def _ends(self, pod: HostPod, nodes: Mapping[str, bool]) -> bool:
        """Return whether a pod that is being deleted will end in its time."""
        return nodes[pod.node] or (pod.ends_by is not None and self._now() < pod.ends_by)


def answers(facts: Sequence[Fact]) -> bool:
    """Return whether facts answer a question about hosts."""
    return any(isinstance(fact, HostsChanged) and fact.answers is not None for fact in facts)


def _doubt(users: Users, behind: frozenset[Job]) -> str:
    """Return why it cannot be said that nobody is on hosts; empty: it can."""
    for occupant in users.occupants:
        if job_of(occupant) in behind:
            continue
        return f"{occupant.owner.full_name} has a pod on them, of Job {occupant.job}"
    return ""


def _unanswered(facts: Sequence[Fact], doubt: str = "", ends_by: datetime | None = None) -> list[Fact]:
    """Return facts on one pool without an answer; `ends_by`: until when pods on its hosts have to end."""
    return [_without_answer(fact, doubt, ends_by) if isinstance(fact, HostsChanged) else fact for fact in facts]


def _without_answer(fact: HostsChanged, doubt: str, ends_by: datetime | None) -> HostsChanged:
    if fact.answers is not None and doubt:
        _log.warning(LogEvent.VACANCY_UNCERTAIN, slice=fact.slice_id, attempt=fact.attempt, error=doubt)
    return replace(fact, answers=None, ends_by=ends_by)
