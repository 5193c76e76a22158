"""Questions about the hosts of a pool, which are to be closed to new pods, or opened again, first. Pure.

| question | answered                                                                     | while it is the latest |
|----------|------------------------------------------------------------------------------|------------------------|
| close    | at once if a Job is on the hosts: none is closed                             | -                      |
|          | at once if there are none                                                    | new hosts are closed   |
|          | else once all hosts are closed, or after `answer_within`, as they are then   | new hosts are closed   |
| close,   | once all hosts are closed and the pods on them evicted (`relay.node_groups`), or | new hosts are closed   |
| evict    | at `evict_by`, as they are then                                              |                        |
| open     | once the relay closes no host, or after `answer_within`, as they are then    | hosts are opened       |
| open,    | once the relay closes no host, and all carry the key, or after                | hosts are opened that  |
| with key | `answer_within`, as they are then                                            | carry it; others are   |
|          |                                                                              | closed, get it once no |
|          |                                                                              | pod is under way to    |
|          |                                                                              | them, and are opened   |

A host is closed by cordoning its node. An annotation with the question's number marks the cordon as ours: it outlives
the relay, and a cordon without it is somebody else's, which is left alone. A key says which pods may come; those that
are there stay. Hosts that may come to other namespaces get their namespace with it, in the same patch. Questions may be
late, doubled or out of order: only the one with the highest number counts. For another one the hosts are reported at
once, without an answer, with the highest number: the functions ask anew by the next, as they do if their database was
set back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Any

from relay.agenda import Timing
from relay.host_counts import Count
from relay.hosts.cordons import Cordons
from relay.objects import Host, Pool, PoolKey
from tpu_slices.domain.model.facts import HostsChanged
from tpu_slices.domain.model.host_keys import is_keyed, parted
from tpu_slices.domain.model.questions import HostsQuestion
from tpu_slices.domain.planning.keys import KEY_LABEL
from tpu_slices.domain.planning.pool_labels import PARENT_NAMESPACE_LABEL
from tpu_slices.domain.records.hosts import MOST_BELIEVED

CLOSED = "google.com/tpu-slice-closed"
"""The annotation of a node that the relay cordoned."""
_NUMBER = re.compile(r"[0-9]{1,13}")
_SHORTEST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=2), timedelta(seconds=30)


class Progress(Enum):
    """How far a question has come."""

    ASKED = auto()
    LATE = auto()
    """Answered before all hosts were closed, or opened."""
    DONE = auto()
    DECLINED = auto()
    """Answered without closing any host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The latest question about a pool."""

    key: PoolKey
    close: bool
    number: int
    asked_at: datetime
    """As the question says: returned in the answer alone."""
    since: datetime
    """When it was first received, by the relay's clock."""
    host_key: str = ""
    """The key that hosts are opened with; empty: that which they have."""
    progress: Progress = Progress.ASKED
    overruled: bool = False
    """Whether somebody opened a host that was closed for it: no more are closed."""
    empty_since: datetime | None = None
    """Since when the pool has had no hosts."""
    evict_by: datetime | None = None
    """Hosts are closed whoever is on them, and all pods evicted, until then at the latest; None: neither."""
    again_at: datetime | None = None
    """Before which it is not answered that nobody is there: that could not be proven, or a pod just left."""
    evicted: bool = False
    """Whether no pod was left on the hosts after they were closed."""
    withheld_since: datetime
    """Since when the hosts have been closed or keyed as it asks, whatever numbers it had meanwhile."""

    def lacks_key(self, host: Host) -> bool:
        """Return whether a host is to get another key than it has."""
        return bool(self.host_key) and not is_keyed(host.key, self.host_key)

    def is_like(self, question: HostsQuestion) -> bool:
        """Return whether another question opens the hosts with the same key."""
        return not self.close and not question.close and self.host_key == question.key

    def closes(self, host: Host) -> bool:
        """Return whether a host is to be closed."""
        return self.close or self.lacks_key(host)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the reports of a pool's hosts say of questions about it."""

    highest: int
    """The highest number of a question that was seen."""
    key: PoolKey | None = None
    """The slice and attempt whose question it is about; None: it is about none."""
    answers: Asked | None = None
    """That question, if it is answered."""
    overtaken: int = 0
    """Its number, if it counts no more."""

    def said(self, key: PoolKey, fact: HostsChanged) -> HostsChanged:
        """Return the report for a slice's attempt with what is said of its question."""
        if key != self.key or self.answers is None:
            own = self.overtaken + 1 if key == self.key and self.overtaken else 0
            return replace(fact, highest=max(self.highest, own))
        return replace(fact, highest=self.highest, answers=self.answers.number, asked_at=self.answers.asked_at)


class Closing:
    """The latest question about each pool, until the pool has had no hosts for `forget_after`."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self.cordons = Cordons(timing.settle)
        self._asked: dict[Pool, Asked] = {}
        self._overtaken: dict[Pool, HostsQuestion] = {}

    @property
    def pools(self) -> tuple[Pool, ...]:
        """The pools that were asked about."""
        return tuple({**self._asked, **self._overtaken})

    def ask(self, pool: Pool, question: HostsQuestion, hosts: Iterable[Host], now: datetime) -> None:
        """Record a question: a new one, or the latest once more. Another one counts no more, which is to be told.

        After a restart, the latest is only known by the hosts that were closed for it, perhaps by another relay.
        """
        key, latest, highest = pool_key(question), self._asked.get(pool), self.highest(pool, hosts)
        again = question.number == highest and (latest is None or (latest.key, latest.close) == (key, question.close))
        if not again and question.number <= highest:
            self._overtaken[pool] = question
            return
        self._asked[pool] = Asked(
            key=key,
            close=question.close,
            number=question.number,
            asked_at=question.asked_at,
            since=latest.since if again and latest else now,
            withheld_since=latest.withheld_since if latest and (again or latest.is_like(question)) else now,
            host_key=question.key,
            evict_by=question.evict_by,
        )

    def highest(self, pool: Pool, hosts: Iterable[Host]) -> int:
        """Return the highest number of a question about a pool that was seen, here or on the nodes; 0: none was."""
        asked = self._asked.get(pool)
        return max([asked.number if asked else 0, *(host.closed_for or 0 for host in hosts)])

    def evicting(self, pool: Pool) -> datetime | None:
        """Return until when the pods on a pool's hosts are evicted; None: they are not, or not any more."""
        asked = self._asked.get(pool)
        return asked.evict_by if asked and asked.close and not asked.evicted else None

    def evicted(self, pool: Pool) -> None:
        """Record that no pod is left on the hosts of a pool, which were closed."""
        if (asked := self._asked.get(pool)) is not None:
            self._asked[pool] = replace(asked, evicted=True)

    def saw(self, host: Host, before: Host | None) -> None:
        """Record a host: one that somebody opened, be it another relay, is not closed again for the same question."""
        asked = self._asked.get(host.pool)
        if asked is None or before is None or before.uid != host.uid or before.closed_for is None:
            return
        if asked.closes(host) and before.closed_for >= asked.number and before.cordoned and not host.cordoned:
            self._asked[host.pool] = replace(asked, overruled=True)

    def is_answerable(self, pool: Pool, count: Count, now: datetime) -> bool:
        asked = self._asked.get(pool)
        return pool in self._overtaken or (asked is not None and self._outcome(asked, count, now) is not None)

    def reply(self, pool: Pool, count: Count, hosts: Iterable[Host], now: datetime) -> Reply:
        """Return what is said of questions with this count, and record that it is."""
        asked, overtaken, highest = self._asked.get(pool), self._overtaken.pop(pool, None), self.highest(pool, hosts)
        outcome = self._outcome(asked, count, now) if asked else None
        if asked is not None and outcome is not None:
            self._asked[pool] = replace(asked, progress=outcome)
            return Reply(highest, asked.key, answers=asked)
        return Reply(highest) if overtaken is None else Reply(highest, pool_key(overtaken), overtaken=overtaken.number)

    def unproven(self, pool: Pool, now: datetime) -> datetime:
        """Let a question be unanswered again whose answer could not be proven; return when to look at it once more.

        The longer the answer takes, the longer is the pause: pods that are being deleted may have hours.
        """
        asked = self._asked.get(pool)
        if asked is None:
            return now
        again_at = now + min(_LONGEST_PAUSE, max(_SHORTEST_PAUSE, (now - asked.since) / 2))
        if asked.progress is not Progress.DECLINED:
            self._asked[pool] = replace(asked, progress=Progress.ASKED, again_at=again_at)
        return again_at

    def replaced_until(self, pool: Pool, at: datetime) -> None:
        """Let it not be answered before then that nobody is there: the pod that left may be replaced until then."""
        asked = self._asked.get(pool)
        if asked is not None and asked.progress is Progress.ASKED:
            self._asked[pool] = replace(asked, again_at=max(at, asked.again_at or at))

    def answered_by(self, pool: Pool, count: Count, now: datetime) -> datetime | None:
        """Return until when the relay withholds reports of hosts that it closes or keys: its answer says all at once.

        None: none are; or a pod came onto hosts that are to be closed, so that the relay tells each count as it sees
        it; or the relay has to tell the functions that their question counts no more.
        """
        asked = None if pool in self._overtaken else self._asked.get(pool)
        if asked is None or asked.progress is not Progress.ASKED or asked.evict_by is not None:
            return None
        if count.hosts.occupants if asked.close else not asked.host_key:
            return None
        at = asked.withheld_since + self._timing.answer_within
        return at if at > now else None

    def next_change(self, pool: Pool, count: Count, now: datetime) -> datetime | None:
        """Return when the question must be looked at although nothing has changed; forget one without hosts."""
        asked = self._asked.get(pool)
        if asked is None:
            return None
        if count.hosts.joined:
            if asked.empty_since is not None:
                self._asked[pool] = replace(asked, empty_since=None)
            at = asked.evict_by or asked.since + self._timing.answer_within
            at = min(at, asked.again_at) if asked.again_at is not None and asked.again_at > now else at
            return at if asked.progress is Progress.ASKED and at > now else None
        empty_since = asked.empty_since or now
        self._asked[pool] = replace(asked, empty_since=empty_since)
        if now >= empty_since + self._timing.forget_after:
            del self._asked[pool]
            return None
        return empty_since + self._timing.forget_after

    def patches(self, pool: Pool, hosts: Iterable[Host], now: datetime) -> Iterator[tuple[Host, Mapping[str, Any]]]:
        """Yield the hosts that the latest question closes or opens, each with the JSON merge patch for its node."""
        asked = self._asked.get(pool)
        if asked is None or asked.progress is Progress.DECLINED:
            return
        for host in hosts:
            if asked.closes(host) and not host.cordoned and not asked.overruled:
                yield host, _patch(host, asked.number)
            elif not asked.close and host.closed_for is not None and host.closed_for <= asked.number:
                lacks = asked.lacks_key(host)
                if not lacks or self.cordons.is_closed(host, now):
                    yield host, _patch(host, None, asked.host_key if lacks else "")

    def withholds(self, pool: Pool, host: Host) -> bool:
        """Return whether the latest question about a pool keeps new pods off a host: it is closed, or gets a key."""
        asked = self._asked.get(pool)
        return asked is not None and asked.progress is not Progress.DECLINED and asked.closes(host)

    def closes(self, pool: Pool) -> bool:
        """Return whether the latest question closes the hosts of a pool."""
        asked = self._asked.get(pool)
        return asked is not None and asked.close

    def _outcome(self, asked: Asked, count: Count, now: datetime) -> Progress | None:
        """Return how an unanswered question is answered by this count; None if it is not yet, or was already."""
        if asked.progress in {Progress.DONE, Progress.DECLINED}:
            return None
        if asked.again_at is not None and now < asked.again_at and not count.hosts.occupants:
            return None
        if not count.hosts.joined:
            return Progress.DONE
        if asked.evict_by is not None:
            over = now >= asked.evict_by or (asked.evicted and count.all_closed)
            return Progress.DONE if over else None
        if asked.close and count.hosts.occupants:
            return Progress.DECLINED
        if count.all_closed if asked.close else not (count.ours or count.hosts.lacking(asked.host_key)):
            return Progress.DONE
        if asked.progress is Progress.ASKED and now >= asked.since + self._timing.answer_within:
            return Progress.LATE
        return None


def pool_key(question: HostsQuestion) -> PoolKey:
    return PoolKey(question.slice_id, question.attempt)


def _patch(host: Host, number: int | None, key: str = "") -> Mapping[str, Any]:
    """Return the patch that closes a node for a question, or opens it (None), with another key if that is not empty.

    A key with a namespace is that of a host that may come to others: it is for that one from then on.
    It has the resourceVersion that it is based on: it must not mark a cordon that somebody else has made meanwhile.
    """
    annotations = {CLOSED: None if number is None else str(number)}
    metadata: dict[str, Any] = {"resourceVersion": host.version, "annotations": annotations}
    if key:
        namespace, key = parted(key)
        metadata["labels"] = {KEY_LABEL: key, **({} if namespace is None else {PARENT_NAMESPACE_LABEL: namespace})}
    return {"metadata": metadata, "spec": {"unschedulable": number is not None}}


def closed_for(node: Mapping[str, Any]) -> int | None:
    """Return the number of the question for which the relay cordoned a v1 Node; None: the relay did not.

    A cordon with another text is ours all the same, of before the first question.
    """
    text = (node["metadata"].get("annotations") or {}).get(CLOSED)
    if text is None:
        return None
    number = int(text) if _NUMBER.fullmatch(text) else 0
    return number if number <= MOST_BELIEVED else 0
