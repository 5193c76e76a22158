"""Facts on their way out: kept until they are taken, the newest of each subject only."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence

import structlog

from shared.domain.facts import (
    Answer,
    Fact,
    Heartbeat,
    HostsChanged,
    JobSetChanged,
    LeaderBound,
    SlicesWanted,
)
from shared.ports import Temporary
from shared.wire.messages import Message, encode_fact

_log = structlog.get_logger()

MOST = 10_000
"""Facts that are kept; beyond that the oldest go: the relay repeats what is still true."""
AT_ONCE = 100
LONGEST_PAUSE = 30.0

Send = Callable[[Sequence[Message]], None]
"""Returns once the messages are taken; Temporary where they are not."""


class Outbox:
    """Sends facts in the order they came; those that were not taken are tried again until they are."""

    def __init__(self, send: Send, chance: random.Random, most: int = MOST) -> None:
        self._send = send
        self._chance = chance
        self._most = most
        self._waiting: dict[Hashable, Message] = {}
        self._sending: dict[Hashable, Message] = {}
        self._changed = threading.Condition()
        self._closing = False

    def post(self, facts: Iterable[Fact]) -> None:
        """Take facts to be sent; a newer one takes the place of an older of the same subject."""
        with self._changed:
            for fact in facts:
                self._put(fact)
            while len(self._waiting) > self._most:
                dropped = self._waiting.pop(next(iter(self._waiting)))
                _log.error("fact-dropped", **dropped.attributes)
            self._changed.notify_all()

    def run(self) -> None:
        """Send until the box is closed and empty, or abandoned."""
        failures = 0
        while batch := self._take():
            try:
                self._send(batch)
                failures = 0
            except Temporary as trouble:
                failures += 1
                _log.warning("facts-not-taken", facts=len(batch), why=str(trouble))
                self._put_back()
                self._rest(min(LONGEST_PAUSE, 0.25 * 2**failures))
            else:
                self._sent()

    def close(self, patience: float) -> bool:
        """Let `run` end once all is sent; False where that took longer than `patience` seconds."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not (self._waiting or self._sending), patience)

    def _put(self, fact: Fact) -> None:
        try:
            message = encode_fact(fact)
        except ValueError as too_large:
            _log.error("fact-dropped", kind=type(fact).__name__, why=str(too_large))
            return
        self._waiting.pop(subject_of(fact), None)
        self._waiting[subject_of(fact)] = message

    def _take(self) -> list[Message]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            for subject in list(self._waiting)[:AT_ONCE]:
                self._sending[subject] = self._waiting.pop(subject)
            return list(self._sending.values())

    def _put_back(self) -> None:
        with self._changed:
            newer, self._waiting = self._waiting, self._sending
            self._waiting.update(newer)
            self._sending = {}

    def _sent(self) -> None:
        with self._changed:
            self._sending = {}
            self._changed.notify_all()

    def _rest(self, at_most: float) -> None:
        with self._changed:
            if self._changed.wait_for(lambda: self._closing, at_most * self._chance.uniform(0.5, 1)):
                self._changed.wait(0.2)


def subject_of(fact: Fact) -> Hashable:
    """Say what a fact is about: of two facts about the same, only the later need be known."""
    match fact:
        case SlicesWanted(jobset=jobset, waiting=waiting):
            return ("SlicesWanted", jobset.uid, waiting[0].replicated_job, waiting[0].job_index)
        case JobSetChanged(jobset=jobset):
            return ("JobSetChanged", jobset.uid)
        case HostsChanged(slice_id=slice_id, attempt=attempt):
            return ("HostsChanged", slice_id, attempt)
        case LeaderBound(slice_id=slice_id, attempt=attempt, occupant=occupant):
            return ("LeaderBound", slice_id, attempt, occupant.pod_uid)
        case Heartbeat(uids=uids):
            return ("Heartbeat", uids is None)
        case Answer(jobset=jobset):
            return ("Answer", jobset.uid)
