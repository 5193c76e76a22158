"""What the check of a workload that has quota is to say, by what the relay sees and what the functions told it. Pure.

| the workload                                                          | its check                                   |
|-----------------------------------------------------------------------|---------------------------------------------|
| is not a JobSet or Job, asks for no slices from here, or has opted    | Ready: it starts as it would without        |
| out, as it may run on hosts that stand                                |                                             |
| is not known yet, or a watch is interrupted                           | stays what it is                            |
| cannot be read, or can never get a slice                              | Rejected                                    |
| was let go, as its slices were held for too long, and it runs, or     | Retry: Kueue gives its quota to the others, |
| others wait for quota                                                 | and has it queue behind them                |
| is refused until somebody changes a limit or setting, likewise        | Retry                                       |
| has all its slices                                                    | Ready                                       |
| lacks some                                                            | Pending                                     |

Rejected is for what no wait can mend: Kueue deactivates such a workload, and, by a setting of its, deletes it. Quota
goes back only where others wait, and after `KEEPS_QUOTA` at the earliest: else the same workload would get it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from relay.kueue.objects import CheckState, Queued
from relay.kueue.rules import Finding
from relay.objects import Workload
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.records.mirror import WorkloadShown
from tpu_slices.domain.records.workloads import Wait

KEEPS_QUOTA = timedelta(minutes=1)
NEVER = frozenset({Reason.IMPOSSIBLE_SHAPE, Reason.DOES_NOT_FIT})
"""The reasons of slices that no wait, and nobody but who wrote the workload, can mend."""
NOT_NOW = frozenset({Reason.LET_GO_WITH_GANG, Reason.GANG_TOO_LARGE, Reason.NOT_ALLOWED, Reason.CLUSTER_RETIRED})
"""The reasons of slices of which none is made for a while: others can use the quota."""
NONE_NEEDED = Finding(state=CheckState.READY, message="It gets no slices from the TPU slice provisioner.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A workload in a Kueue queue as the relay sees it."""

    workload: Workload | None
    """None: it is not known."""
    stand: int
    """How many of its slices stand."""
    of: int
    """How many it needs to start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the functions told last of a workload, as of when, and when that was heard."""

    shown: WorkloadShown
    at: datetime
    heard_at: datetime


def finding(queued: Queued, seen: Progress, told: Told | None, now: datetime, *, others_wait: bool) -> Finding | None:
    """Return what the check of a workload that has quota is to say; None: that is not known.

    `told`: what the functions told since it has quota; before that it was suspended.
    """
    workload = seen.workload
    if workload is None:
        return None
    if workload.served and workload.parse_error is not None:
        return _rejected(f"its templates cannot be read: {workload.parse_error}")
    if workload.unserved or not seen.of:
        return NONE_NEEDED
    waits = told.shown.report.waits if told and told.shown.state is WorkloadState.ACTIVE else ()
    if never := next((wait for wait in waits if wait.reason in NEVER), None):
        return _rejected(never.message)
    not_now = next((wait for wait in waits if wait.reason in NOT_NOW), None)
    if not_now is not None and _gives_back(queued, now, others_wait=others_wait):
        return Finding(state=CheckState.RETRY, message=not_now.message)
    if seen.stand == seen.of:
        return Finding(state=CheckState.READY, message=f"{seen.of} of {seen.of} slices stand.")
    return Finding(state=CheckState.PENDING, message=_waiting(seen, waits))


def _gives_back(queued: Queued, now: datetime, *, others_wait: bool) -> bool:
    since = queued.reserved_at
    return queued.admitted or (others_wait and since is not None and now - since >= KEEPS_QUOTA)


def _rejected(why: str) -> Finding:
    return Finding(state=CheckState.REJECTED, message=f"It gets no slice: {why}")


def _waiting(seen: Progress, waits: tuple[Wait, ...]) -> str:
    stand = f"{seen.stand} of {seen.of} slices stand."
    return " ".join([stand, *(f"{wait.count} wait: {wait.message}" for wait in waits[:1])])
