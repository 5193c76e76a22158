"""How the Job whose claim has a slice uses it, as far as that is on record."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from tpu_slices.domain.model.pods import JobPods, PodTrouble, Trouble
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.texts import clock
from tpu_slices.domain.records.slices import SliceRecord

UNUSED_FOR = timedelta(minutes=5)
"""How long nobody is on the hosts of a slice that is READY before it counts as idle."""

_STATES = {
    PodTrouble.STARTING: "has not started",
    PodTrouble.GATED: "is held by a scheduling gate",
    PodTrouble.MISSING: "does not exist",
    PodTrouble.UNSCHEDULABLE: "is not scheduled",
    PodTrouble.INIT: "cannot start, as an init container fails",
    PodTrouble.IMAGE: "cannot start, as an image cannot be pulled",
    PodTrouble.CRASHING: "crashes again and again",
    PodTrouble.OUT_OF_MEMORY: "runs out of memory again and again",
}


def vacant_since(record: SliceRecord) -> datetime:
    """Return since when nobody has been known to be on the hosts, or the slice in its phase, whichever is later."""
    return max(record.since, record.current.hosts.vacant_since or record.since)


def own_pods(record: SliceRecord) -> JobPods | None:
    """Return the pods of the Job whose claim has the slice; None: it is not there, or how they are is not known."""
    own = {each.pod_uid for each in record.current.hosts.occupants if record.is_of(each)}
    return next((each for each in record.current.hosts.pods if each.pod_uid in own), None)


def pods_running(records: Sequence[SliceRecord]) -> tuple[int, int] | None:
    """Return how many pods run, or have ended with success, and how many should; None: it is not known of all."""
    found = [own_pods(record) for record in records]
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    return sum(each.running for each in known), sum(each.needed for each in known)


def not_running_since(record: SliceRecord) -> datetime | None:
    """Return since when some pods of the claim's Job have not run, while the Job is on the hosts; None: they run."""
    pods = own_pods(record)
    if record.reason is not Reason.PODS_NOT_RUNNING or pods is None or pods.trouble is None:
        return None
    return record.transitions[-1].at if record.transitions else record.since


def unused(record: SliceRecord, now: datetime, *, silent: bool) -> tuple[Reason, str] | None:
    """Return why the claim's Job does not train on a slice that is whole, with the message; None: it may.

    `silent`: the relay is not heard.

    | its Job                                              | then             |
    |------------------------------------------------------|------------------|
    | is on it, and some of its pods do not run            | PODS_NOT_RUNNING |
    | is on it, and some of its pods run on other hosts    | PODS_APART       |
    | is not, nor is anybody else, as is known: UNUSED_FOR | IDLE             |
    | anything else, or its pods are not known             | nothing          |
    """
    pods = own_pods(record)
    if pods is not None and pods.trouble is not None:
        return Reason.PODS_NOT_RUNNING, _not_running(pods, pods.trouble, now)
    if pods is not None and pods.apart:
        run = "runs" if pods.apart == 1 else "run"
        return Reason.PODS_APART, f"{_many(pods.apart)} of {pods.needed} {run} on hosts outside this slice."
    vacant = not record.current.hosts.occupants and not silent
    idle = record.phase is Phase.READY and not record.owner.kind.declares and vacant
    if idle and now - vacant_since(record) >= UNUSED_FOR:
        since = clock(vacant_since(record), now)
        return Reason.IDLE, f"All hosts are ready, and nobody has used them since {since}."
    return None


def _not_running(pods: JobPods, trouble: Trouble, now: datetime) -> str:
    """Return how many pods do not run, and how it is with the worst of them, in the words of who says it."""
    pod = f"pod {trouble.pod}" if trouble.pod else "one"
    words = f": {trouble.words.removesuffix('.')}" if trouble.words else ""
    do = "does" if trouble.pods == 1 else "do"
    return (
        f"{_many(trouble.pods)} of {pods.needed} {do} not run: {pod} {_STATES[trouble.kind]} since "
        f"{clock(trouble.since, now)}{words}."
    )


def _many(pods: int) -> str:
    return f"{pods} pod{'' if pods == 1 else 's'}"
