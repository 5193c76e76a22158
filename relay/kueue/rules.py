"""What may be written of a check, and when. Pure.

| the Workload                        | the check          | what is written                                         |
|-------------------------------------|--------------------|---------------------------------------------------------|
| finished, deactivated, being deleted| any                | nothing                                                 |
| is being evicted                    | any                | nothing: Kueue resets it to Pending                     |
| has no quota                        | Ready              | Pending: with quota again, it would be admitted by this |
|                                     | any other          | nothing                                                 |
| has quota                           | Retry, Rejected    | nothing: Kueue evicts it by this                        |
| has quota, and is admitted          | any other          | Retry or Rejected; nothing else: it runs                |
| has quota, and is not admitted      | any other          | what is found; the same state with another message only |
|                                     |                    | once `TELL_EVERY` has passed since the last             |

Kueue writes the same fields with force, whatever is there, and its own writes are ordered by its view of the Workload.
So each write here has the version of the Workload that it was judged by: one that is late is refused, and judged anew.

With Retry no `requeueAfterSeconds` is written: until they are over Kueue 0.19 evicts nobody, and the workload keeps its
quota and its pods (sigs.k8s.io/kueue pkg/controller/core/workload_controller.go, RequeueAt). Without them it is evicted
at once, and queues behind those that wait.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from relay.kueue.objects import Check, CheckState, Queued

TELL_EVERY = timedelta(seconds=30)
"""Kueue makes an Event of each message, on the workload itself."""
LONGEST_MESSAGE = 1_000
NO_QUOTA = "It has no quota any more: its slices are judged anew once it has."
_OUTCOMES = (CheckState.RETRY, CheckState.REJECTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is found of a workload that has quota: what its checks are to say."""

    state: CheckState
    message: str


def to_write(
    queued: Queued, ours: Collection[str], finding: Finding | None, now: datetime, told_at: datetime | None = None
) -> Finding | None:
    """Return what is to be written of all checks of ours that a Workload lists; None: nothing.

    `finding`: None if it is not known. `told_at`: when a message was written last; None: that is not known.
    """
    checks = [each for each in queued.checks if each.name in ours]
    if queued.over or queued.evicted or any(each.state in _OUTCOMES for each in checks):
        return None
    if queued.reserved_at is None:
        stale = any(each.state is CheckState.READY for each in checks)
        return Finding(state=CheckState.PENDING, message=NO_QUOTA) if stale else None
    if finding is None or (queued.admitted and finding.state not in _OUTCOMES):
        return None
    if any(each.state is not finding.state for each in checks):
        return finding
    is_news = any(each.message != _message(finding) for each in checks)
    return finding if is_news and (told_at is None or now - told_at >= TELL_EVERY) else None


def applied(queued: Queued, ours: Collection[str], finding: Finding, now: datetime) -> Mapping[str, Any]:
    """Return a Workload as it is applied: with every check of ours that it lists, as those left out would go."""
    checks = [_applied(each, finding, now) for each in queued.checks if each.name in ours]
    metadata = {"name": queued.name, "namespace": queued.namespace, "resourceVersion": queued.version}
    return {"kind": "Workload", "metadata": metadata, "status": {"admissionChecks": checks}}


def _applied(check: Check, finding: Finding, now: datetime) -> Mapping[str, Any]:
    changed = check.state is not finding.state
    return {
        "name": check.name,
        "state": finding.state.value,
        "message": _message(finding),
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ") if changed else check.since,
    }


def _message(finding: Finding) -> str:
    return finding.message[:LONGEST_MESSAGE]
