"""Counts the pods of the Jobs on the hosts of a pool. Pure.

| the pods of a Job that is on the hosts                    | told                                                |
|-----------------------------------------------------------|-----------------------------------------------------|
| as many run, or have ended, as its template demands       | so, at once                                         |
| fewer, for less than `settles`                            | as before, or nothing if nothing was told           |
| fewer, for longer                                         | how many do not, and how it is with the worst       |
| - as was told, and the scheduler or the kubelet says it   | as before: the words of the scheduler change with   |
|   in other words                                          | each node that comes or goes                        |

They can be fewer no longer than since all were last seen to run, or since the Job has been on the hosts: its pods
waited for these before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from relay.pod_status import PodStatus
from tpu_slices.domain.model.facts import TemplateRequest
from tpu_slices.domain.model.pods import JobPods, PodTrouble, Trouble
from tpu_slices.domain.planning.sharing import share_slice

_WORST = tuple(PodTrouble)


class PodSeen(Protocol):
    """A pod of a Job, its leader or another."""

    @property
    def pod(self) -> str: ...

    @property
    def node(self) -> str | None: ...

    @property
    def status(self) -> PodStatus: ...


@dataclass(frozen=True, slots=True)
class JobSeen:
    """A Job on the hosts of a pool, and its pods wherever they are."""

    pod_uid: str
    """That of its occupant."""
    needed: int
    """How many of its pods run at a time."""
    pods: Sequence[PodSeen]
    hosts: Collection[str]
    """The nodes of the pool."""
    lacking_since: datetime | None = None
    """Since when some of its pods do not run, which all did before; None: all do, or were never seen to."""

    @property
    def since(self) -> datetime | None:
        """Since when some of its pods may not run; None: that is not said."""
        came = (each.status.bound_at for each in self.pods if each.node in self.hosts)
        return self.lacking_since or min((at for at in came if at is not None), default=None)

    @property
    def here(self) -> Sequence[PodSeen]:
        return [each for each in self.pods if not each.status.departing]

    @property
    def running(self) -> int:
        """How many of its pods run, or have ended with success."""
        return sum(each.status.trouble is None for each in self.here)


def pods_needed(request: TemplateRequest) -> int:
    """Return how many pods of a Job or group, or of the Jobs that share a slice, run at a time; 0: it is not known."""
    if share_slice(request):
        return request.replicas
    at_a_time = [each for each in (request.parallelism, request.completions) if each is not None]
    return min(at_a_time, default=0)


def counted(
    job: JobSeen, told: JobPods | None, now: datetime, settles: timedelta
) -> tuple[JobPods | None, datetime | None]:
    """Return what is told of a Job's pods, by the table above, and when that changes by itself.

    `told`: what was told of the Job; None: nothing.
    """
    running = [each for each in job.here if each.status.trouble is None and not each.status.ended]
    apart = sum(each.node not in job.hosts for each in running)
    found = JobPods(pod_uid=job.pod_uid, needed=job.needed, running=job.running, apart=apart)
    lacking = job.needed - found.running
    if lacking <= 0:
        return found, None
    trouble = _worst(job, lacking, now)
    if now < trouble.since + settles:
        return told, trouble.since + settles
    found = replace(found, trouble=trouble)
    return (told if told is not None and _goes_on(told, found) else found), None


def _goes_on(told: JobPods, found: JobPods) -> bool:
    """Return whether the same pod does not run for the same reason as was told, in whatever words."""
    (before, counts), (after, counts_now) = ((each.trouble, replace(each, trouble=None)) for each in (told, found))
    if before is None or after is None or counts != counts_now:
        return False
    return (before.kind, before.pods, before.pod) == (after.kind, after.pods, after.pod)


def _worst(job: JobSeen, lacking: int, now: datetime) -> Trouble:
    """Return how it is with the pods that do not run: with the worst of them, of several with the first by name."""
    since = job.since or now
    troubled = sorted((each for each in job.pods if each.status.trouble), key=lambda each: each.pod)
    missing = lacking > len(troubled)
    worst = max(troubled, key=lambda each: _rank(each.status.trouble), default=None)
    if worst is None or (missing and _rank(worst.status.trouble) < _rank(PodTrouble.MISSING)):
        departing = next((f"pod {each.pod} {each.status.words}" for each in job.pods if each.status.departing), "")
        return Trouble(kind=PodTrouble.MISSING, pods=lacking, pod="", words=departing, since=since)
    status = worst.status
    assert status.trouble is not None
    began = max(since, status.since or since)
    return Trouble(kind=status.trouble, pods=lacking, pod=worst.pod, words=status.words, since=began)


def _rank(trouble: PodTrouble | None) -> int:
    return _WORST.index(trouble) if trouble is not None else -1
