"""Messages out: contract of the publisher."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tpu_slices.domain.model.facts import Question
from tpu_slices.domain.model.records import Transition
from tpu_slices.domain.model.slices import ClusterId, Owner, SliceId, WorkloadJob
from tpu_slices.domain.model.workloads import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceUpdate:
    """What is told to the cluster about a slice: becomes a Kubernetes Event."""

    job: WorkloadJob
    slice_id: SliceId
    pool: str
    transition_number: int
    """Which of the slice's transitions it is: with the slice id, the Event's name."""
    transition: Transition


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadUpdate:
    """What is told to the cluster about a JobSet: becomes one Kubernetes Event, renewed while it lasts."""

    owner: Owner
    report: Report
    at: datetime
    count: int
    """How many times the JobSet was told about, this one included."""


class Publisher(Protocol):
    """Messages out. Returns once they are taken; Temporary where they are not."""

    def request_reconcile(self, cluster: ClusterId, slices: Collection[SliceId]) -> None:
        """Say: look at these slices."""

    def announce(self, cluster: ClusterId, updates: Collection[SliceUpdate]) -> None:
        """Tell the cluster's relay what became of slices."""

    def announce_workloads(self, cluster: ClusterId, updates: Collection[WorkloadUpdate]) -> None:
        """Tell the cluster's relay how JobSets stand."""

    def ask(self, cluster: ClusterId, questions: Collection[Question]) -> None:
        """Ask the cluster's relay to look at JobSets."""
