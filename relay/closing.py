"""Questions about the hosts of a pool, which are to be closed to new pods, or opened again, first. Pure.

| question | answered                                                                     | while it is the latest |
|----------|------------------------------------------------------------------------------|------------------------|
| close    | at once if a Job is on the hosts: none is closed                             | -                      |
|          | at once if there are none                                                    | new hosts are closed   |
|          | else once all hosts are closed, or after `answer_within`, as they are then   | new hosts are closed   |
| close,   | once all hosts are closed and the pods on them evicted (`relay.node_groups`), or | new hosts are closed   |
| evict    | at `evict_by`, as they are then                                              |                        |
| open     | once the relay closes no host, or after `answer_within`, as they are then    | hosts are opened       |

A host is closed by cordoning its node. An annotation with the question's time marks the cordon as ours: it outlives the
relay, and a cordon without it is somebody else's, which is left alone. Questions may be late, doubled or out of order:
only the latest about a pool counts. An earlier one asks for the answer to that again: by it whoever asked learns that
the question counts no more, as another's clock may be ahead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Any

from relay.agenda import Timing
from relay.host_counts import Count
from relay.objects import Host, Pool, PoolKey
from tpu_slices.domain.model.facts import HostsQuestion

CLOSED = "google.com/tpu-slice-closed"
"""The annotation of a node that the relay cordoned."""
_MOMENT = timedelta(microseconds=1)
_AHEAD = timedelta(hours=1)
"""No clock is so far ahead: an annotation with a later time was written by somebody else, such as who owns the node."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=2), timedelta(seconds=30)
_LONG_AGO = datetime.fromtimestamp(0, UTC)


class Progress(Enum):
    """How far a question has come."""

    ASKED = auto()
    LATE = auto()
    """Answered before all hosts were closed, or opened."""
    DONE = auto()
    DECLINED = auto()
    """Answered without closing any host."""
    DECLINED_ONCE_MORE = auto()
    """Declined, and to be answered again, still without closing any host: who was on them may be back."""


_DECLINED = frozenset({Progress.DECLINED, Progress.DECLINED_ONCE_MORE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The latest question about a pool."""

    key: PoolKey
    close: bool
    at: datetime
    since: datetime
    """When it was first received, by the relay's clock."""
    progress: Progress = Progress.ASKED
    overruled: bool = False
    """Whether somebody opened a host that was closed for it: no more are closed."""
    empty_since: datetime | None = None
    """Since when the pool has had no hosts."""
    evict_by: datetime | None = None
    """Hosts are closed whoever is on them, and all pods evicted, until then at the latest; None: neither."""
    again_at: datetime | None = None
    """Before which it is not answered that nobody is there: that could not be proven a moment ago."""
    evicted: bool = False
    """Whether no pod was left on the hosts after they were closed."""


class Closing:
    """The latest question about each pool, until the pool has had no hosts for `forget_after`."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._asked: dict[Pool, Asked] = {}

    @property
    def pools(self) -> tuple[Pool, ...]:
        """The pools that were asked about."""
        return tuple(self._asked)

    def ask(self, pool: Pool, question: HostsQuestion, hosts: Iterable[Host], now: datetime) -> None:
        """Record a question, or ask the latest one again: that is also what the hosts were closed for.

        Of the latter little is known after a restart, as whether pods were to be evicted. Whoever asked it must not
        take the answer for that to its own question: it is answered as one asked a moment later, so that it asks anew.
        """
        key, at, latest = PoolKey(question.slice_id, question.attempt), question.asked_at, self._asked.get(pool)
        times = (host.closed_at for host in hosts if host.closed_at)
        closed_at = max((each for each in times if each <= now + _AHEAD), default=at)
        if latest is not None and latest.at >= closed_at and latest.at > at:
            again = Progress.DECLINED_ONCE_MORE if latest.progress in _DECLINED else Progress.ASKED
            self._asked[pool] = replace(latest, key=key, progress=again)
        elif closed_at > at:
            self._asked[pool] = Asked(key=key, close=True, at=closed_at + _MOMENT, since=now)
        else:
            since = latest.since if latest is not None and latest.at == at else now
            self._asked[pool] = Asked(key=key, close=question.close, at=at, since=since, evict_by=question.evict_by)

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
        if asked is None or before is None or before.uid != host.uid or before.closed_at is None:
            return
        if asked.close and before.closed_at >= asked.at and before.cordoned and not host.cordoned:
            self._asked[host.pool] = replace(asked, overruled=True)

    def is_answerable(self, pool: Pool, count: Count, now: datetime) -> bool:
        asked = self._asked.get(pool)
        return asked is not None and self._outcome(asked, count, now) is not None

    def answer(self, pool: Pool, count: Count, now: datetime) -> Asked | None:
        """Return the question that this count answers, and record that it is answered; None if there is none."""
        asked = self._asked.get(pool)
        outcome = self._outcome(asked, count, now) if asked else None
        if asked is None or outcome is None:
            return None
        self._asked[pool] = replace(asked, progress=outcome)
        return asked

    def unproven(self, pool: Pool, now: datetime) -> datetime:
        """Let a question be unanswered again whose answer could not be proven; return when to look at it once more.

        The longer the answer takes, the longer is the pause: pods that are being deleted may have hours.
        """
        asked = self._asked.get(pool)
        if asked is None:
            return now
        again_at = now + min(_LONGEST_PAUSE, max(_SHORTEST_PAUSE, (now - asked.since) / 2))
        if asked.progress not in _DECLINED:
            self._asked[pool] = replace(asked, progress=Progress.ASKED, again_at=again_at)
        return again_at

    def answered_by(self, pool: Pool, count: Count, now: datetime) -> datetime | None:
        """Return when hosts that are being closed are told of at the latest: with the answer, which says all at once.

        None: none are being closed, or somebody came onto them, so that what is seen of them is told as it comes.
        """
        asked = self._asked.get(pool)
        if asked is None or not asked.close or asked.progress is not Progress.ASKED or count.hosts.occupants:
            return None
        if asked.evict_by is not None:
            return None
        at = asked.since + self._timing.answer_within
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
            return at if asked.progress is Progress.ASKED and at > now else None
        empty_since = asked.empty_since or now
        self._asked[pool] = replace(asked, empty_since=empty_since)
        if now >= empty_since + self._timing.forget_after:
            del self._asked[pool]
            return None
        return empty_since + self._timing.forget_after

    def patches(self, pool: Pool, hosts: Iterable[Host]) -> Iterator[tuple[Host, Mapping[str, Any]]]:
        """Yield the hosts that the latest question closes or opens, each with the JSON merge patch for its node."""
        asked = self._asked.get(pool)
        if asked is None or asked.progress in _DECLINED or asked.overruled:
            return
        for host in hosts:
            if asked.close and not host.cordoned:
                yield host, _patch(host, asked.at)
            elif not asked.close and host.closed_at is not None and host.closed_at <= asked.at:
                yield host, _patch(host, None)

    def closes(self, pool: Pool) -> bool:
        """Return whether the latest question closes the hosts of a pool."""
        asked = self._asked.get(pool)
        return asked is not None and asked.close

    def _outcome(self, asked: Asked, count: Count, now: datetime) -> Progress | None:
        """Return how an unanswered question is answered by this count; None if it is not yet, or was already."""
        if asked.progress in {Progress.DONE, Progress.DECLINED}:
            return None
        if asked.progress is Progress.DECLINED_ONCE_MORE:
            return Progress.DECLINED
        if asked.again_at is not None and now < asked.again_at and not count.hosts.occupants:
            return None
        if not count.hosts.joined:
            return Progress.DONE
        if asked.evict_by is not None:
            over = now >= asked.evict_by or (asked.evicted and count.all_closed)
            return Progress.DONE if over else None
        if asked.close and count.hosts.occupants:
            return Progress.DECLINED
        if count.all_closed if asked.close else not count.ours:
            return Progress.DONE
        if asked.progress is Progress.ASKED and now >= asked.since + self._timing.answer_within:
            return Progress.LATE
        return None


class Cordons:
    """The cordoned hosts (`spec.unschedulable`), whoever cordoned them.

    A host counts as closed once it has been seen cordoned for `settle`: a pod that was under way to it has arrived.
    """

    def __init__(self, settle: timedelta) -> None:
        self._settle = settle
        self._since: dict[str, datetime] = {}

    def saw(self, host: Host, now: datetime) -> None:
        if host.cordoned:
            self._since.setdefault(host.node, now)
        else:
            self._since.pop(host.node, None)

    def lost(self, node: str) -> None:
        self._since.pop(node, None)

    def closed(self, hosts: Iterable[Host], now: datetime) -> int:
        """Return how many of these hosts are closed."""
        return sum(now >= at for at in self._closed_at(hosts))

    def next_change(self, hosts: Iterable[Host], now: datetime) -> datetime | None:
        """Return when the last of those that are cordoned will count as closed; None if all of them do."""
        return max((at for at in self._closed_at(hosts) if at > now), default=None)

    def _closed_at(self, hosts: Iterable[Host]) -> Iterable[datetime]:
        return (self._since[host.node] + self._settle for host in hosts if host.node in self._since)


def _patch(host: Host, at: datetime | None) -> Mapping[str, Any]:
    """Return the patch that closes a node for a question, or opens it (None).

    It has the resourceVersion that it is based on: it must not mark a cordon that somebody else has made meanwhile.
    """
    annotations = {CLOSED: at.isoformat() if at else None}
    metadata = {"resourceVersion": host.version, "annotations": annotations}
    return {"metadata": metadata, "spec": {"unschedulable": at is not None}}


def closed_at(node: Mapping[str, Any]) -> datetime | None:
    """Return when the question was asked for which the relay cordoned a v1 Node; None: the relay did not.

    One whose time cannot be parsed is ours all the same, of long ago.
    """
    text = (node["metadata"].get("annotations") or {}).get(CLOSED)
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return _LONG_AGO
    return at if at.tzinfo else _LONG_AGO
