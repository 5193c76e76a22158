"""Messages out: contract of the bus."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tpu_slices.domain.model.facts import Question
from tpu_slices.domain.model.records import Transition
from tpu_slices.domain.model.slices import ClusterId, JobRef, JobSetUid, SliceId
from tpu_slices.domain.model.workloads import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceUpdate:
    """What is told to the cluster about a slice: becomes a Kubernetes Event."""

    job: JobRef
    slice_id: SliceId
    pool: str
    turn: int
    """Which of the slice's transitions it is: with the slice id, the Event's name."""
    transition: Transition


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSetUpdate:
    """What is told to the cluster about a JobSet: becomes one Kubernetes Event, renewed while it lasts."""

    namespace: str
    name: str
    uid: JobSetUid
    report: Report
    at: datetime
    times: int
    """How many times the JobSet was told about, this one included."""


class Bus(Protocol):
    """Messages out. Returns once they are taken; Temporary where they are not."""

    def nudge(self, cluster: ClusterId, slices: Collection[SliceId]) -> None:
        """Say: look at these slices."""

    def tell(self, cluster: ClusterId, updates: Collection[SliceUpdate]) -> None:
        """Tell the cluster's relay what became of slices."""

    def report(self, cluster: ClusterId, updates: Collection[JobSetUpdate]) -> None:
        """Tell the cluster's relay how JobSets stand."""

    def ask(self, cluster: ClusterId, questions: Collection[Question]) -> None:
        """Ask the cluster's relay to look at JobSets."""
