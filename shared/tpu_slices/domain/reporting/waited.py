"""How long a slice that is READY was waited for, and for what, as far as its record has it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from types import MappingProxyType

from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import SliceSpec
from tpu_slices.domain.model.texts import lasting
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.transitions import Transition

_LONG, _PART = timedelta(minutes=2), timedelta(minutes=1)
"""A wait that was shorter is not told, nor for what less of one was."""
_MOST_PARTS = 4
_ENDS = frozenset({Phase.READY, Phase.RELEASING, Phase.GONE})
"""What was before such a phase was another need."""
_ATTEMPT = frozenset({Reason.CREATION_STARTED, Reason.CREATING})
_FOR: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.REQUESTED: "its first look",
        Reason.OPERATION_LIMIT: "a slot",
        Reason.AWAITING_TURN: "its turn to try {what} in {zone}",
        Reason.RESERVATION_NOT_OPEN: "its reservation to have room",
        Reason.DEMAND_STALE: "word that it is needed",
        Reason.CREATION_STARTED: "its creation",
        Reason.CREATING: "its creation",
        Reason.AWAITING_FLEX_START: "flex-start capacity in {zone}",
        Reason.AWAITING_CAPACITY: "capacity in {zone}",
        Reason.HOSTS_JOINING: "its hosts to join",
        Reason.HOSTS_LOST: "hosts that were lost",
        Reason.GKE_UPGRADES: "GKE to upgrade its hosts",
        Reason.GKE_REPAIRS: "GKE to repair its hosts",
        Reason.UNDER_MAINTENANCE: "maintenance of its hosts",
        Reason.PREEMPTED: "hosts instead of those that were preempted",
        Reason.STOCKOUT: "stock of {what} in {zone}",
        Reason.QUOTA_EXCEEDED: "quota for {what} in {zone}",
        Reason.RESOURCES_EXHAUSTED: "stock of {what} in {zone}, or quota",
        Reason.RESERVATION_UNAVAILABLE: "its reservation to have room",
        Reason.RESERVATION_AWAITED: "its reservation",
        Reason.IP_SPACE_EXHAUSTED: "IP addresses",
        Reason.TOO_MANY_OPERATIONS: "other operations to end",
        Reason.CLUSTER_BUSY: "other operations to end",
        Reason.CREATION_FAILED: "attempts that failed",
        Reason.HOSTS_NOT_USABLE: "hosts that can be used",
        Reason.CHIP_LIMIT_REACHED: "chips within its limit",
        Reason.NO_RUNG_IN_ZONE: "a rung of its ladder in the zone of its workload",
        Reason.HELD: "the end of its hold",
        Reason.PAUSED: "the end of a pause",
        Reason.AWAITING_GANG: "its gang to get all slices",
        Reason.LET_GO_WITH_GANG: "its gang to be tried again",
        Reason.GANG_TOO_LARGE: "limits that allow its gang",
    }
)
"""For what a slice waits with a reason; with others it waits for what they say themselves."""


def waited(record: SliceRecord) -> str:
    """Return how long a READY slice was waited for and for what, longest first; empty: not for long, or not known.

    The time of attempts that failed counts as that for which they failed.
    """
    wait, whole = _last_wait(record.transitions, record.transition_count)
    if not wait or record.phase is not Phase.READY:
        return ""
    length = wait[-1].at - wait[0].at
    if length < _LONG:
        return ""
    parts = [
        f"{lasting(each)} for {_what(reason, record.spec)}"
        for reason, each in _longest_first(wait)[:_MOST_PARTS]
        if each >= _PART
    ]
    start = "" if whole else "at least "
    return f"{start}{lasting(length)}{': ' if parts else ''}{', '.join(parts)}"


def last_waited(records: Sequence[SliceRecord]) -> str:
    """Return how long the slice was waited for that became READY last; empty: none was."""
    served = [record for record in records if record.phase is Phase.READY]
    last = max(served, key=lambda record: record.since, default=None)
    told = waited(last) if last is not None else ""
    return f"{'waited' if len(records) == 1 else 'the last one waited'} {told}" if told else ""


def _last_wait(transitions: Sequence[Transition], count: int) -> tuple[Sequence[Transition], bool]:
    """Return the transitions of the last wait with that which ended it, and whether its beginning is among them."""
    end = len(transitions) - 1
    while end > 0 and transitions[end].phase is Phase.READY and transitions[end - 1].phase is Phase.READY:
        end -= 1
    first = end
    while first > 0 and transitions[first - 1].phase not in _ENDS:
        first -= 1
    whole = first > 0 or count <= len(transitions)
    return (transitions[first : end + 1], whole) if first < end else ((), True)


def _longest_first(wait: Sequence[Transition]) -> Sequence[tuple[Reason, timedelta]]:
    """Return how long each of what it was for lasted."""
    times: defaultdict[Reason, timedelta] = defaultdict(timedelta)
    for number, (each, after) in enumerate(pairwise(wait)):
        times[_charged(wait, number)] += after.at - each.at
    return sorted(times.items(), key=lambda it: -it[1])


def _charged(wait: Sequence[Transition], number: int) -> Reason:
    """Return for what the time of a transition counts: that of an attempt, for what the attempt failed."""
    for each in wait[number:]:
        if each.reason not in _ATTEMPT:
            return each.reason if each.phase is Phase.WAITING else wait[number].reason
    return wait[number].reason


def _what(reason: Reason, spec: SliceSpec | None) -> str:
    text = _FOR.get(reason, f"{reason}")
    what = f"{spec.accelerator} {spec.topology}" if spec is not None else "its chips"
    return text.format(what=what, zone=spec.zone if spec is not None else "its zone")
