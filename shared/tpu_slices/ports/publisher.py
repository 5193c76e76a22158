"""The publisher of messages: its protocol."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tpu_slices.domain.model.facts import HostsChanged
from tpu_slices.domain.model.joining import JoinToken
from tpu_slices.domain.model.node_groups import NodeGroupStatus
from tpu_slices.domain.model.notifications import Notification
from tpu_slices.domain.model.questions import AnyQuestion
from tpu_slices.domain.model.slices import ClaimId, ClusterId, Owner, SliceId, WorkloadJob, WorkloadUid
from tpu_slices.domain.records.mirror import Mirrored
from tpu_slices.domain.records.transitions import Transition
from tpu_slices.domain.records.workloads import Announced, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceUpdate:
    """A transition of a slice, announced to its cluster's relay, which posts it as a Kubernetes Event."""

    job: WorkloadJob
    slice_id: ClaimId
    pool: str
    transition_number: int
    """The number of the transition of this slice; together with the slice id, the Event's name."""
    transition: Transition


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadUpdate:
    """A report on a JobSet, announced to its cluster's relay, which posts or renews the Event of its reason."""

    owner: Owner
    report: Report
    at: datetime
    count: int
    """The number of announcements about the JobSet, this one included."""
    since: datetime | None = None
    """When the first one for its reason was; None: that is not known."""
    ended: Announced | None = None
    """What was announced before, for another reason, which is over; None: nothing, or that is not known."""

    def came_late(self, last_count: int, last_at: datetime) -> bool:
        """Return whether it was announced before the last one that came: by its number, and by its time.

        Clocks differ, so that its time alone does not say, and numbers begin anew with a record that somebody deleted.
        """
        return self.count <= last_count and self.at < last_at


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroupUpdate:
    """The status of a TPUNodeGroup, announced to its cluster's relay, which writes it, with each decision."""

    owner: Owner
    slice_id: ClaimId
    status: NodeGroupStatus
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorChanged:
    """What objects of the cluster's mirror are to be from now on, told as the records change."""

    objects: tuple[Mirrored, ...]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorListed:
    """All objects of the mirror within a range of keys: what else is there is of no record."""

    objects: tuple[Mirrored, ...]
    after: str | None
    """The range begins after this key; None: with the first one."""
    up_to: str | None
    """The last key of the range; None: the range has no end."""
    at: datetime
    """The records were read later."""

    def within(self, key: str) -> bool:
        """Return whether a key is in the range."""
        return (self.after is None or key > self.after) and (self.up_to is None or key <= self.up_to)


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorConfirmed:
    """The records were, at this time, as the relay's last heartbeat says that its mirror is."""

    at: datetime


AnyMirror = MirrorChanged | MirrorListed | MirrorConfirmed


class Publisher(Protocol):
    """Publishes messages. Every method returns once all are accepted, or raises Temporary.

    Permanent: one of them is larger than a message may be, or no text; then none is published.
    """

    def request_reconcile(
        self,
        cluster: ClusterId,
        slices: Collection[ClaimId | SliceId],
        waiting: WorkloadUid | None = None,
        *,
        ended: bool = False,
    ) -> None:
        """Request a reconcile of these slices, each by its id or by the claim that has it.

        `waiting`: whose pods wait for them, if that is why. `ended`: an operation on a pool of each has ended.
        """

    def pass_on(self, cluster: ClusterId, slice_: SliceId, answer: HostsChanged) -> None:
        """Request a reconcile of the slice that an answer of the relay is about, with the answer."""

    def request_echo(self, cluster: ClusterId, asked_at: datetime) -> None:
        """Request that reconcile records the echo of the question that was asked then."""

    def request_join(self, cluster: ClusterId, token: JoinToken) -> None:
        """Request that reconcile hands this token on to the hosts that it is for."""

    def announce(self, cluster: ClusterId, updates: Collection[SliceUpdate]) -> None:
        """Announce transitions of slices to the cluster's relay."""

    def announce_workloads(self, cluster: ClusterId, updates: Collection[WorkloadUpdate]) -> None:
        """Announce reports on JobSets to the cluster's relay."""

    def announce_node_group(self, cluster: ClusterId, update: NodeGroupUpdate) -> None:
        """Announce the status of a TPUNodeGroup to the cluster's relay."""

    def announce_mirror(self, cluster: ClusterId, told: Collection[AnyMirror]) -> None:
        """Announce to the cluster's relay what its mirror is to show."""

    def notify(self, cluster: ClusterId, notifications: Collection[Notification]) -> None:
        """Request that targets outside the cluster are notified."""

    def try_updates(self, cluster: ClusterId, asked_at: datetime) -> None:
        """Ask the cluster's relay for an Echo by the way that updates take."""

    def ask(self, cluster: ClusterId, questions: Collection[AnyQuestion]) -> None:
        """Ask the cluster's relay about JobSets and hosts."""
