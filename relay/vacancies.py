"""Proves, before it is answered that nobody is on hosts, that the watch of leader pods is not late.

A watch whose connection stalls says nothing for minutes before it counts as failed, while that of nodes goes on. What
is deleted on an answer must not depend on that: so the leader pods of each host are listed, and one that the watch has
not shown there takes the answer from the report. The functions ask again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import structlog

from tpu_slices.domain.model.facts import Fact, HostsChanged
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.ports.log_events import LogEvent

_log = structlog.get_logger()

LISTS_AT_ONCE = 8

LeadersOn = Callable[[str], Mapping[str, str]]
"""As `relay.cluster.Cluster.leaders_on`; raises Temporary or Permanent."""


@dataclass(frozen=True, slots=True)
class Vacancy:
    """An answer that nobody is on hosts, and the nodes and pods that it was made of."""

    nodes: Sequence[str]
    shown: Collection[str]
    """The UIDs of leader pods that the watch has shown on these nodes, whether or not they count as occupants."""


class Vacancies:
    """Checks reports that answer a question and say that nobody is on the hosts."""

    def __init__(self, leaders_on: LeadersOn) -> None:
        self._leaders_on = leaders_on

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
            leaders = self._listed(vacancy.nodes)
        except (Temporary, Permanent) as trouble:
            return str(trouble)
        unseen = [pod for uid, pod in leaders.items() if uid not in vacancy.shown]
        return f"the watch has not shown that pod {unseen[0]} is on one of the hosts" if unseen else ""

    def _listed(self, nodes: Sequence[str]) -> dict[str, str]:
        with ThreadPoolExecutor(LISTS_AT_ONCE) as threads:
            lists = [threads.submit(self._leaders_on, node) for node in nodes]
            try:
                return {uid: pod for each in lists for uid, pod in each.result().items()}
            except (Temporary, Permanent):
                threads.shutdown(cancel_futures=True)
                raise
