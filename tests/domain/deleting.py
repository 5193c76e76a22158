"""A pool that is to be deleted: a look at it, and the course of the questions to the relay about its hosts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from tests.builders import MINUTE, NOW, a_record, hosts_changed, settings, some_hosts
from tests.domain.cases import GUEST, OURS, owned, seen, terminating
from tpu_slices.domain.model.facts import HostsChanged, WorkloadState
from tpu_slices.domain.model.observations import Absent, Observation
from tpu_slices.domain.reconciling.case import Known, Situation
from tpu_slices.domain.reconciling.decisions import CloseHosts, DeletePool, OpenHosts
from tpu_slices.domain.reconciling.occupancy import counted
from tpu_slices.domain.reconciling.terminating import Followed, follow
from tpu_slices.domain.records.attempts import TerminatingAttempt

ENDED = owned(WorkloadState.COMPLETED)
GRANTED = replace(ENDED, slots={1: 7})
UNASKED = terminating(hosts=some_hosts())
MANY = 1000


def followed(
    attempt: TerminatingAttempt,
    found: Observation = OURS,
    known: Known = GRANTED,
    at: datetime = NOW,
    **changes: object,
) -> Followed:
    record = replace(a_record(attempt=2, terminating=(attempt,)), **changes)  # type: ignore[arg-type]
    if at != NOW:
        known = replace(known, relay=replace(known.relay, last_at=at))
    return follow(Situation(record, seen(Absent(), a1=found), at, settings(), known))


@dataclass(slots=True)
class Deletion:
    """Questions and reports that are under way arrive when the test says so, late and twice; the relay is honest."""

    now: datetime = NOW
    pool: TerminatingAttempt = UNASKED
    deleted: bool = False
    asked: list[CloseHosts | OpenHosts] = field(default_factory=list)
    """By the functions."""
    answers: set[int] = field(default_factory=set)
    """The numbers of the questions whose answers have arrived."""
    reports: list[HostsChanged] = field(default_factory=list)
    """By the relay."""
    highest: int = 0
    """The number of the question that it heeds; 0: none."""
    times: dict[int, datetime] = field(default_factory=dict)
    """When each was asked."""
    closed: bool = False
    used: bool = False

    def look(self) -> None:
        """Let the functions decide; what must never happen is asserted."""
        before = self.pool.hosts
        after = followed(self.pool, at=self.now)
        (self.pool,) = after.attempts
        for action in after.actions:
            if isinstance(action, CloseHosts | OpenHosts):
                again = action in self.asked[-1:]
                assert again or action.number > max([before.highest, before.answered, *self.numbers])
                self.asked.append(action)
                asked = self.pool.hosts.asked
                self.times.update({action.number: asked.at} if asked else {})
            elif isinstance(action, DeletePool):
                (last,) = self.asked[-1:]
                assert isinstance(last, CloseHosts), "the latest question opens the hosts"
                assert last.number in self.answers, "the latest question was not answered"
                assert last.number == self.pool.hosts.highest, "the relay heeds a later one"
                assert not self.used, "somebody is on the hosts"
                self.deleted = True

    @property
    def numbers(self) -> list[int]:
        return [each.number for each in self.asked]

    def question_arrives(self, late: int = 0) -> None:
        """Let a question reach the relay: the latest, or one that was asked before it."""
        if self.asked:
            question = self.asked[-1 - late % len(self.asked)]
            self.heed(question.number, close=isinstance(question, CloseHosts))

    def heed(self, number: int, *, close: bool) -> None:
        """Let the relay do as a question says, and answer; or tell that the question counts no more."""
        if number >= self.highest:
            self.highest, self.closed = number, close and not self.used
        self.report(answers=number if number == self.highest else None)

    def report(self, answers: int | None = None) -> None:
        report = hosts_changed(
            usable=0 if self.closed else 4,
            closed=4 if self.closed else 0,
            occupants=(GUEST,) if self.used else (),
            sequence=len(self.reports) + 2,
            answers=answers,
            asked_at=self.times.get(answers or 0),
            highest=self.highest,
        )
        self.reports.append(report)

    def report_arrives(self, late: int = 0) -> None:
        """Let a report reach the functions: the latest, or an earlier one."""
        if self.reports:
            fact = self.reports[-1 - late % len(self.reports)]
            hosts, known = counted(self.pool.hosts, fact, self.now), self.pool.hosts.highest
            if hosts is not None:
                assert hosts.highest >= known, "the numbers go down"
                self.pool = replace(self.pool, hosts=hosts)
                self.answers |= {fact.answers} if fact.answers else set()

    # what tests let happen

    def others_ask(self, *, close: bool) -> None:
        """Let a question arrive that was asked before the database was set back: it is not on record."""
        self.heed(max([self.highest, *self.numbers]) + MANY, close=close or self.closed)

    def come(self) -> None:
        """Let a Job come to the hosts, if they are open."""
        self.used = self.used or not self.closed
        self.report()

    def passes(self, minutes: int) -> None:
        self.now += minutes * MINUTE

    def leave(self) -> None:
        self.used = False
        self.report()
