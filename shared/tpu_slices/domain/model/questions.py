"""The questions to the relay, and the words to it that have no answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tpu_slices.domain.model.facts import Family
from tpu_slices.domain.model.joining import JoinEnded, JoinQuestion
from tpu_slices.domain.model.node_groups import NodesExpected, NodesGone
from tpu_slices.domain.model.slices import ClaimId, Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to the relay: the state of this JobSet."""

    owner: Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuestion:
    """A question to the relay: all that it sees of a family, with `asked_at` in each part."""

    family: Family
    asked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatQuestion:
    """A question to the relay: the last facts about these keys of a family, each published again.

    Of a workload: about its state and its demand.
    """

    family: Family
    keys: tuple[str, ...]


ANSWERED_WITHIN = timedelta(minutes=1)
"""In which time the relay answers a `HostsQuestion` that does not evict pods, even if hosts are not closed by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsQuestion:
    """A question to the relay: the hosts of a pool, once they are closed to new pods (`close`), or opened to them."""

    slice_id: ClaimId
    attempt: int
    number: int
    """From 1 on; returned in the answer. Of questions about a pool the highest counts: see `relay.hosts.closing`."""
    asked_at: datetime
    """Returned in the answer; no order follows from it."""
    close: bool
    legacy_pool: str | None = None
    """The name of the pool if TPU Provisioner made it: its nodes name a JobSet, which may be gone, and no slice."""
    key: str = ""
    """Of one that opens them: the key that each host is to carry, which is closed for that first; empty: any."""
    evict_by: datetime | None = None
    """Of a TPUNodeGroup that was deleted: all pods are evicted from its hosts, Jobs too, until then; None: none is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoQuestion:
    """A question to the relay: an Echo."""

    asked_at: datetime
    by_updates: bool = False
    """It comes by `updates-{cluster}`, as what becomes Events does, instead of by `questions-{cluster}`."""


FactQuestion = ListQuestion | RepeatQuestion | HostsQuestion
"""Questions that are answered by the facts that would be published anyway."""
AnyQuestion = Question | EchoQuestion | JoinQuestion | JoinEnded | NodesExpected | NodesGone | FactQuestion
