"""What can be decided about a slice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.records.awaited import SlotAwaited
from tpu_slices.domain.records.slices import SliceRecord


@dataclass(frozen=True, slots=True)
class CreatePool:
    attempt: int


@dataclass(frozen=True, slots=True)
class DeletePool:
    attempt: int


@dataclass(frozen=True, slots=True)
class DeleteRemains:
    """Delete what stands of a pool without hosts. If its hosts stand after all, nothing is deleted."""

    attempt: int


@dataclass(frozen=True, slots=True)
class CancelCreation:
    attempt: int


@dataclass(frozen=True, slots=True)
class Relabel:
    """Put the labels back that name a pool's slice. No host is made anew for it."""

    attempt: int


@dataclass(frozen=True, slots=True)
class CloseHosts:
    """Ask the relay to close the hosts to new pods, and then who is on them."""

    attempt: int
    number: int
    evict_by: datetime | None = None
    """Close them whoever is on them, and evict all pods, until then at the latest; None: neither."""


@dataclass(frozen=True, slots=True)
class OpenHosts:
    """Ask the relay to open the hosts, each with this key; empty: with the one that it has."""

    attempt: int
    number: int
    key: str = ""


@dataclass(frozen=True, slots=True)
class AskJoin:
    """Ask the relay for a bootstrap token for the hosts that are missing."""

    attempt: int
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class EndJoin:
    """Remove the bootstrap token from the hosts' metadata, and ask the relay to delete it."""

    attempt: int


Action = CreatePool | DeletePool | DeleteRemains | CancelCreation | Relabel | CloseHosts | OpenHosts | AskJoin | EndJoin


@dataclass(frozen=True, slots=True)
class Arm:
    """What one row of a table says of a claim and its slice: the reason, what changes, whether a pool is created."""

    reason: Reason
    message: str
    claim: Mapping[str, Any] = field(default_factory=dict)
    """The changes of the claim."""
    current: Mapping[str, Any] = field(default_factory=dict)
    """The changes of the current attempt."""
    record: Mapping[str, Any] = field(default_factory=dict)
    """The other changes."""
    creates: bool = False
    slot_awaited: SlotAwaited | None = None

    def said_of(self, record: SliceRecord, now: datetime) -> SliceRecord:
        """Return the record after this was said of it."""
        told = record.transitioned(now, self.reason, self.message).with_changes(**self.record)
        return told.with_claim(**self.claim).with_current(**self.current).used(now)


@dataclass(frozen=True, slots=True)
class Decision:
    """The record to save, and the actions to take once it is saved. Same record and no actions: nothing to do."""

    record: SliceRecord
    actions: tuple[Action, ...]
    reason: Reason
    message: str
    let_go: SliceRecord | None = None
    """The slice that the claim had, as a record without a claim; None: it has what it had."""

    @property
    def changes_pools(self) -> bool:
        """Whether GKE is asked to change anything."""
        return any(not isinstance(action, CloseHosts | OpenHosts) for action in self.actions)

    @property
    def creates(self) -> bool:
        return any(isinstance(action, CreatePool) for action in self.actions)
