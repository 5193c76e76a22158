"""What the relay counts of the pods of a Job that is on a slice's hosts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

MOST_JOBS = 20
"""Of how many Jobs on one slice the pods are told: more than one there are only where nothing pins pods."""
MOST_WORDS = 300
"""Characters of a pod's trouble."""


class PodTrouble(StrEnum):
    """Why a pod does not run, the worst last: of several, the report names the worst."""

    STARTING = "starting"
    """Its containers have not been started, and nothing says why."""
    GATED = "gated"
    """It has scheduling gates."""
    MISSING = "missing"
    """It does not exist."""
    UNSCHEDULABLE = "unschedulable"
    INIT = "init"
    """An init container fails."""
    IMAGE = "image"
    """An image cannot be pulled."""
    CRASHING = "crashing"
    """A container ends with an error again and again."""
    OUT_OF_MEMORY = "out of memory"
    """A container is killed since it uses too much memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Pods of a Job that do not run, by the worst of them."""

    kind: PodTrouble
    pods: int
    """How many do not run, whatever the reason."""
    pod: str
    """The name of the worst; empty: it does not exist."""
    words: str
    """What the scheduler, or the kubelet, says of it, at most MOST_WORDS."""
    since: datetime
    """Since when it has been so, or the Job on the hosts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPods:
    """The pods of a Job on a slice's hosts, and elsewhere."""

    pod_uid: str
    """That of the occupant by which the Job is known."""
    needed: int
    """How many run at a time, by its template."""
    running: int
    """How many run, or have ended with success."""
    apart: int = 0
    """How many run on hosts of other slices, or on nobody's."""
    trouble: Trouble | None = None
    """None: all run, or have ended."""

    @property
    def text(self) -> str:
        """What is compared of it; since when there is trouble is not."""
        why = f"{self.trouble.kind} {self.trouble.pods} {self.trouble.pod} {self.trouble.words}" if self.trouble else ""
        return f"{self.pod_uid} {self.needed} {self.running} {self.apart} {why}"
