"""A pool that is to be deleted: a look at it, and the course of the questions to the relay about its hosts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from tests.builders import MINUTE, NOW, hosts_changed, settings, some_hosts, with_fields
from tests.domain.cases import GUEST, OURS, going, owned
from tpu_slices.domain.model.clusters import Limits
from tpu_slices.domain.model.facts import HostsChanged, WorkloadState
from tpu_slices.domain.model.observations import Observation, Observed
from tpu_slices.domain.reconciling.case import Known, Situation
from tpu_slices.domain.reconciling.decisions import CloseHosts, DeletePool, OpenHosts
from tpu_slices.domain.reconciling.ending import Ending, ending
from tpu_slices.domain.reconciling.occupancy import counted
from tpu_slices.domain.records.hosts import Asked, Hosts
from tpu_slices.domain.records.slices import SliceRecord

ENDED = owned(WorkloadState.COMPLETED)
GRANTED = replace(ENDED, slots={1: 7})
LIMITS = Limits()
UNASKED = going(hosts=some_hosts())


def followed(
    record: SliceRecord,
    found: Observation = OURS,
    known: Known = GRANTED,
    at: datetime = NOW,
    **changes: object,
) -> Ending:
    """Return a slice that goes, a step nearer to its end."""
    if at != NOW:
        known = replace(known, relay=replace(known.relay, last_at=at))
    return ending(Situation(with_fields(record, **changes), Observed(found), at, settings(), known))


@dataclass(slots=True)
class Deletion:
    """Questions and reports that are under way arrive when the test says so, late and twice; the relay is honest."""

    now: datetime = NOW
    record: SliceRecord = UNASKED
    deleted: bool = False
    """Its deletion was requested: GKE may refuse that, so that the story goes on."""
    backups: list[SliceRecord] = field(default_factory=lambda: [UNASKED])
    """The pool as it was on record, the first at the beginning."""
    asked: list[Asked] = field(default_factory=list)
    """The questions that are under way."""
    answers: set[tuple[int | None, datetime | None]] = field(default_factory=set)
    """The numbers and times of the questions whose answers have arrived."""
    reports: list[HostsChanged] = field(default_factory=list)
    heeded: Asked | None = None
    """By the relay."""
    closed: bool = False
    used: bool = False

    @property
    def hosts(self) -> Hosts:
        return self.record.current.hosts

    def look(self) -> None:
        """Let the functions decide; what must never happen is asserted."""
        before = self.hosts
        after = followed(self.record, at=self.now)
        self.record = replace(self.record, current=after.attempt)
        asked = self.hosts.asked
        for action in after.actions:
            if isinstance(action, CloseHosts | OpenHosts):
                assert asked is not None
                assert (action.number, isinstance(action, CloseHosts)) == (asked.number, asked.close)
                assert asked == before.asked or asked.number > before.highest, "its number is used"
                self.asked.append(asked)
            elif isinstance(action, DeletePool):
                assert asked is not None
                assert asked.close, "the latest question opens the hosts"
                assert (asked.number, asked.at) in self.answers, "the latest question was not answered"
                assert asked.number == self.hosts.highest, "the relay heeds a later one"
                assert not self.used, "somebody is on the hosts"
                self.deleted = True
        self.backups.append(self.record)

    def question_arrives(self, late: int = 0) -> None:
        """Let a question reach the relay: the latest, or one that was asked before it.

        The relay does what it says, and answers; or it tells that the question counts no more.
        """
        if not self.asked:
            return
        asked, heeded = self.asked[-1 - late % len(self.asked)], self.heeded
        again = heeded is not None and (asked.number, asked.close) == (heeded.number, heeded.close)
        if again or heeded is None or asked.number > heeded.number:
            self.heeded, self.closed = asked, asked.close and not self.used
            self.report(answers=asked.number, asked_at=asked.at)
        else:
            self.report(highest=max(heeded.number, asked.number + 1))

    def report(self, **said: Any) -> None:
        fields = {
            "usable": 0 if self.closed else 4,
            "closed": 4 if self.closed else 0,
            "occupants": (GUEST,) if self.used else (),
            "sequence": len(self.reports) + 2,
            "highest": self.heeded.number if self.heeded else 0,
        }
        self.reports.append(hosts_changed(**{**fields, **said}))

    def report_arrives(self, late: int = 0) -> None:
        """Let a report reach the functions: the latest, or an earlier one."""
        if self.reports:
            fact = self.reports[-1 - late % len(self.reports)]
            hosts, known = counted(self.hosts, fact, self.now), self.hosts.highest
            if hosts is not None:
                assert hosts.highest >= known, "the numbers go down"
                self.record = self.record.with_current(hosts=hosts)
                self.answers.add((fact.answers, fact.asked_at))

    # what tests let happen

    def round(self) -> None:
        """Let the functions decide, the relay reply to the latest question, and that arrive."""
        self.look()
        self.question_arrives()
        self.report_arrives()

    def is_set_back(self, backup: int) -> None:
        """Let the database be as it was: numbers that the relay has seen are used once more, for other questions.

        That takes longer than an answer counts, and until all questions that were under way have arrived.
        """
        self.record = self.backups[backup % len(self.backups)]
        self.now += LIMITS.restart_grace + MINUTE
        self.asked.clear()

    def come(self) -> None:
        """Let a Job come to the hosts, if they are open."""
        self.used = self.used or not self.closed
        self.report()

    def passes(self, minutes: int) -> None:
        self.now += minutes * MINUTE

    def leave(self) -> None:
        self.used = False
        self.report()
