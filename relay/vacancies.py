"""Proves, before it is answered that nobody is on hosts, that the watches of nodes and leader pods are not late.

A watch whose connection stalls says nothing for minutes before it counts as failed, while others go on. What is deleted
on an answer must not depend on that: so the nodes of the pool are listed, and the leader pods of each. A node or a pod
that its watch has not shown takes the answer from the report. The functions ask again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from relay.objects import Pool
from tpu_slices.domain.model.facts import Fact, HostsChanged
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

LISTS_AT_ONCE = 8


class Lists(Protocol):
    """What `relay.cluster.Cluster` lists; both raise Temporary or Permanent."""

    def nodes_of(self, pool: Pool) -> Collection[str]: ...

    def leaders_on(self, node: str) -> Mapping[str, str]: ...


@dataclass(frozen=True, slots=True)
class Vacancy:
    """An answer that nobody is on hosts, and the nodes and pods that it was made of."""

    pool: Pool
    nodes: Collection[str]
    """The nodes of the pool that the watch has shown; none: the pool is said to have no hosts."""
    shown: Collection[str]
    """The UIDs of leader pods that the watch has shown on these nodes, whether or not they count as occupants."""


class Vacancies:
    """Checks reports that answer a question and say that nobody is on the hosts."""

    def __init__(self, lists: Lists) -> None:
        self._lists = lists

    def checked(self, fact: Fact, vacancy: Vacancy | None) -> Fact:
        """Return a fact; without its answer if that is not sure."""
        if vacancy is None or not isinstance(fact, HostsChanged):
            return fact
        doubt = self._doubt(vacancy)
        if not doubt:
            return fact
        _log.warning(LogEvent.VACANCY_UNCERTAIN, slice=fact.slice_id, attempt=fact.attempt, error=doubt)
        return replace(fact, answers=None)

    def _doubt(self, vacancy: Vacancy) -> str:
        try:
            unseen = sorted(set(self._lists.nodes_of(vacancy.pool)) - set(vacancy.nodes))
            if unseen:
                return f"the watch has not shown that node {unseen[0]} is one of the hosts"
            leaders = self._leaders(sorted(vacancy.nodes))
        except (Temporary, Permanent) as trouble:
            return str(trouble)
        unknown = [pod for uid, pod in leaders.items() if uid not in vacancy.shown]
        return f"the watch has not shown that pod {unknown[0]} is on one of the hosts" if unknown else ""

    def _leaders(self, nodes: Sequence[str]) -> dict[str, str]:
        with ThreadPoolExecutor(LISTS_AT_ONCE) as threads:
            lists = [threads.submit(self._lists.leaders_on, node) for node in nodes]
            try:
                return {uid: pod for each in lists for uid, pod in each.result().items()}
            except (Temporary, Permanent):
                threads.shutdown(cancel_futures=True)
                raise
