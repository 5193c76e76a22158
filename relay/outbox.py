"""Facts to be published: kept until Pub/Sub accepts them, the newest of each subject only.

Demand is told by difference: of a workload's at one generation, what names Jobs that no later fact names is kept.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from relay.agenda import rising_pause
from relay.health import Health
from relay.objects import Place
from tpu_slices.domain.model.facts import (
    Answer,
    Echo,
    Fact,
    Family,
    Heartbeat,
    HostsChanged,
    Listed,
    SliceDeclared,
    SlicesWanted,
    WorkloadChanged,
)
from tpu_slices.domain.model.joining import JoinToken
from tpu_slices.domain.model.questions import RepeatQuestion
from tpu_slices.ports.errors import Temporary
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.messages import Message, encode_fact

_log = structlog.get_logger()

MOST_BYTES = 64_000_000
"""The size of the facts that are kept; beyond it the oldest are dropped: the relay repeats what still holds."""
A_MESSAGE = 1_000
"""The least bytes that a message takes beside its data."""
DEMAND_TTL = timedelta(minutes=6)
"""Demand that could not be published for so long, or what confirms it, has expired: it must not buy any more."""
AT_ONCE, BYTES_AT_ONCE = 100, 8_000_000
"""Roughly the messages and bytes that are passed to the client at once, which holds several copies of them."""
LOOK_EVERY = 30.0

_EXPIRES = (SlicesWanted, Heartbeat, Listed, JoinToken)  # lists and tokens are asked for again

Send = Callable[[Sequence[Message]], None]
"""Returns once Pub/Sub has accepted the messages; raises Temporary if it does not."""


@dataclass(frozen=True, slots=True)
class _Held:
    """The messages on one subject that were posted together."""

    messages: tuple[Message, ...]
    until: datetime | None
    """When they expire; None: never."""
    demand: tuple[tuple[int, frozenset[Place]], ...] = ()
    """Of each message with demand: the workload's generation, and the Jobs that it names."""

    @property
    def size(self) -> int:
        return sum(len(message.data) + A_MESSAGE for message in self.messages)

    def after(self, earlier: _Held | None) -> _Held:
        """Return these messages after those of earlier ones on the subject that they do not stand for."""
        jobs = frozenset[Place]().union(*(each for _, each in self.demand))
        generations = {generation for generation, _ in self.demand}
        each = zip(earlier.messages, earlier.demand, strict=True) if earlier and earlier.demand else ()
        kept = [(message, about) for message, about in each if about[0] in generations and not about[1] <= jobs]
        if earlier is None or not kept:
            return self
        until = min(filter(None, (earlier.until, self.until)), default=None)
        messages, demand = zip(*kept, strict=True)
        return _Held((*messages, *self.messages), until, (*demand, *self.demand))


class Outbox:
    """Sends facts in the order in which they were posted, and retries until Pub/Sub accepts them."""

    def __init__(
        self, send: Send, chance: random.Random, now: Callable[[], datetime], health: Health, most: int = MOST_BYTES
    ) -> None:
        self._send = send
        self._most = most
        self._chance = chance
        self._now = now
        self._health = health
        self._waiting: dict[Hashable, _Held] = {}
        self._sending: dict[Hashable, _Held] = {}
        self._changed = threading.Condition()
        self._closing = False
        self.demand_expired: Callable[[RepeatQuestion], None] = lambda _: None
        """Called about workloads whose demand has expired: what still holds of it is to be posted anew."""

    def post(self, facts: Iterable[Fact]) -> None:
        """Queue facts to be sent; they replace earlier ones on the same subject."""
        fresh: dict[Hashable, _Held] = {}
        for fact in facts:
            self._add(fact, fresh)
        if not fresh:
            return
        with self._changed:
            self._hold(fresh)
            self._drop_beyond_most()
            self._changed.notify_all()

    def run(self) -> None:
        """Send until the outbox is closed and empty."""
        failures = 0
        while batch := self._take():
            try:
                self._send(batch)
                failures = 0
            except Temporary as trouble:
                failures += 1
                _log.warning(LogEvent.FACT_PUBLISH_FAILED, tried=len(batch), held=self.held, error=str(trouble))
                self._health.not_published(str(trouble))
                self._put_back()
                self._back_off(rising_pause(0.5, failures - 1))
            else:
                self._health.published()
                self._sent()

    def close(self, patience: float) -> bool:
        """End `run` once everything is sent; return whether that took no longer than `patience` seconds."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not (self._waiting or self._sending), patience)

    @property
    def held(self) -> int:
        """The number of messages that Pub/Sub has not accepted yet."""
        with self._changed:
            return sum(len(held.messages) for box in (self._waiting, self._sending) for held in box.values())

    def _add(self, fact: Fact, fresh: dict[Hashable, _Held]) -> None:
        try:
            message = encode_fact(fact)
        except ValueError as too_large:
            _log.error(LogEvent.FACT_DROPPED, kind=type(fact).__name__, error=str(too_large))
            return
        subject, until = subject_of(fact), self._now() + DEMAND_TTL if isinstance(fact, _EXPIRES) else None
        fresh[subject] = _Held((message,), until, _demand_of(fact)).after(fresh.pop(subject, None))

    def _hold(self, newer: Mapping[Hashable, _Held]) -> None:
        for subject, held in newer.items():
            self._waiting[subject] = held.after(self._waiting.pop(subject, None))

    def _drop_beyond_most(self) -> None:
        held = sum(each.size for each in self._waiting.values())
        while held > self._most:
            dropped = self._waiting.pop(next(iter(self._waiting)))
            held -= dropped.size
            _log.error(LogEvent.FACT_DROPPED, **dropped.messages[0].attributes)

    def _take(self) -> list[Message]:
        """Wait for facts, and return the first of them; none if the outbox is closed and empty."""
        with self._changed:
            self._drop_expired()
            while not (self._waiting or self._closing):
                self._health.ticked("publish")
                self._changed.wait(LOOK_EVERY)
            self._health.ticked("publish")
            messages: list[Message] = []
            room = BYTES_AT_ONCE
            while self._waiting and len(messages) < AT_ONCE and room > 0:
                subject = next(iter(self._waiting))
                self._sending[subject] = held = self._waiting.pop(subject)
                messages += held.messages
                room -= held.size
            return messages

    def _drop_expired(self) -> None:
        now = self._now()
        expired = [subject for subject, held in self._waiting.items() if held.until and held.until < now]
        messages = [self._waiting.pop(subject).messages[0] for subject in expired]
        for message in messages:
            _log.warning(LogEvent.FACT_EXPIRED, **message.attributes)
        uids = [uid for message in messages if (uid := message.attributes.get("owner_uid"))]
        if uids:
            self.demand_expired(RepeatQuestion(family=Family.DEMAND, keys=tuple(uids)))

    def _put_back(self) -> None:
        with self._changed:
            newer, self._waiting, self._sending = self._waiting, self._sending, {}
            self._hold(newer)

    def _sent(self) -> None:
        with self._changed:
            self._sending = {}
            self._changed.notify_all()

    def _back_off(self, at_most: float) -> None:
        with self._changed:
            if self._changed.wait_for(lambda: self._closing, at_most * self._chance.uniform(0.5, 1)):
                self._changed.wait(0.2)


def _demand_of(fact: Fact) -> tuple[tuple[int, frozenset[Place]], ...]:
    if not isinstance(fact, SlicesWanted):
        return ()
    jobs = frozenset(Place(each.replicated_job, each.job_index) for each in fact.waiting)
    return ((fact.workload.generation, jobs),)


def subject_of(fact: Fact) -> Hashable:
    """Return what a fact is about: of two facts on the same subject, only the later one matters."""
    kind = type(fact).__name__
    match fact:
        case SlicesWanted(workload=workload) | Answer(workload=workload):
            return (kind, workload.owner.uid)
        case SliceDeclared(workload=workload) | WorkloadChanged(workload=workload):
            return ("WorkloadChanged", workload.owner.uid)
        case HostsChanged(slice_id=slice_id, attempt=attempt, answers=answers):
            return (kind, slice_id, attempt, answers is None)  # a later count answers no question
        case JoinToken(slice_id=slice_id, attempt=attempt):
            return (kind, slice_id, attempt)
        case Heartbeat(first=first):
            return (kind, first)
        case Listed(family=family, part=part):
            return (kind, family, part)
        case Echo():
            return (kind,)
