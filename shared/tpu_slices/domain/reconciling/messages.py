"""The messages of a slice on its way to READY, where they depend on how its hosts are provisioned. Pure."""

from __future__ import annotations

from datetime import datetime

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.observations import Absent, Cause, Running, Unowned
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import PoolName, SliceSpec, at_rung
from tpu_slices.domain.model.texts import clock
from tpu_slices.domain.model.vendors import Vendor
from tpu_slices.domain.reconciling.case import Situation
from tpu_slices.domain.records import attempts_told
from tpu_slices.domain.records.awaited import Shortage
from tpu_slices.domain.records.returning import Returning
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.use import own_pods

HELD_FOR_ITS_GANG = "All hosts are ready; they are held until the other slices of its gang stand."
LEADER_STILL_WAITING = "All hosts are ready, but the leader is not scheduled: see its events. No other slice is bought."


def created(spec: SliceSpec) -> str:
    """Return what is requested from GKE."""
    hosts = f"{spec.hosts} x {spec.machine_type} in {spec.zone}"
    return f"{hosts}, by flex-start and empty until GKE has them" if spec.is_flex_start else hosts


def creating(record: SliceRecord, settings: ClusterSettings, now: datetime) -> str:
    """Return what is being created, and the attempts before."""
    spec, ahead = record.made_as, attempt_ahead(record, settings.vendor, now)
    if settings.self_managed:
        return f"Compute Engine is creating its instance group, and what that needs, step by step{ahead}."
    if spec is not None and spec.is_flex_start:
        return f"GKE is creating the empty node pool in {spec.zone}, to which it then adds hosts by flex-start{ahead}."
    what = f"{spec.hosts} hosts ({spec.chips} chips) in {spec.zone}" if spec else "its hosts"
    return f"GKE is creating {what}{ahead or _lasts(record, settings.vendor, now)}."


def attempt_ahead(record: SliceRecord, vendor: Vendor, now: datetime) -> str:
    """Return the number of the attempt that is being made after others failed, as the end of a sentence; or nothing."""
    ahead = attempts_told.ahead([record])
    return f"; {ahead}{_waiting_since(record, now)}{_lasts(record, vendor, now)}" if ahead else ""


def stepped_on(case: Situation) -> str:
    """Return why a claim asks at its place, as another sentence, if its workload stepped there; else nothing."""
    spec, on = case.record.spec, case.on_ladder
    there = spec is not None and on is not None and at_rung(spec, on.rung).rung == spec.rung
    return f" {on.message[0].upper()}{on.message[1:]}." if on is not None and there and on.message else ""


def failed_so_far(record: SliceRecord, now: datetime) -> str:
    """Return how many attempts failed so far, if this was not the first, as the end of a sentence."""
    several = sum(record.claim.setbacks.values()) > 1
    return f"; {attempts_told.failed([record])}{_waiting_since(record, now)}" if several else ""


def held(record: SliceRecord) -> str:
    """Return who holds a slice, and what follows."""
    return f"H{record.held[1:]}: nothing is created or deleted."


def held_course(case: Situation) -> str:
    """Return whether a held slice is needed, and what stands of it."""
    record = case.record
    needed = "" if record.wanted else f"It is not needed: {record.why_it_goes}. "
    noun = case.vendor.pool
    if isinstance(case.seen.pool, Absent | Unowned):
        before = " but those that it had before" if record.claim.earlier else ""
        return f"{needed}No {noun} of it stands{before}."
    usable = f" with {record.current.hosts.usable} usable hosts" if isinstance(case.seen.pool, Running) else ""
    return f"{needed}There is {noun} {record.pool}{usable}."


def awaiting_turn(record: SliceRecord, shortage: Shortage, now: datetime) -> str:
    """Return what ran out when, so that a slice waits for its turn to try, and how often it did so far."""
    so_far = f"{attempts_told.failed([record])}{_waiting_since(record, now)}"
    return f"{attempts_told.ran_out(record, shortage)}; {so_far}."


def _lasts(record: SliceRecord, vendor: Vendor, now: datetime) -> str:
    lasts = attempts_told.lasts([record], vendor, now)
    return f"; {lasts}" if lasts else ""


def _waiting_since(record: SliceRecord, now: datetime) -> str:
    since = record.claim.waits_since or record.claim.awaited_since
    return f" since {clock(since, now)}" if since else ""


def awaiting_flex_start(record: SliceRecord, spec: SliceSpec, now: datetime) -> str:
    """Return since when a flex-start pool has had no hosts, and what follows."""
    since = _since(record, Reason.AWAITING_FLEX_START, now)
    again = "GKE took its hosts back; waiting again" if _was_ready(record) else "Waiting"
    return (
        f"{again} for flex-start capacity since {since:%Y-%m-%d %H:%M} UTC: GKE adds all {spec.hosts} hosts "
        f"({spec.chips} chips) in {spec.zone} when it has them, and takes them back after {spec.run_duration}."
    )


def awaiting_capacity(record: SliceRecord, spec: SliceSpec, why: str, now: datetime) -> str:
    """Return since when Compute Engine has had too few hosts for a group, and in its words why."""
    since = _since(record, Reason.AWAITING_CAPACITY, now)
    return (
        f"Waiting since {since:%Y-%m-%d %H:%M} UTC: Compute Engine starts all {spec.hosts} hosts ({spec.chips} chips) "
        f"in {spec.zone} when it has them, and goes on trying. It says: {why}"
    )


def changing_hands(record: SliceRecord, why: str) -> str:
    """Return what a claim says whose hosts carry another claim's key; `why`: what the relay has to prove first."""
    made_as = record.made_as
    if record.first_job is None and made_as is not None and made_as.crosses:
        return f"The hosts of {record.pool}, which may be handed on to other namespaces, become its own: {why}."
    return f"The hosts of {record.pool}, which were another's, become its own: {why}."


def hosts_awaited(record: SliceRecord, spec: SliceSpec) -> str:
    """Return how many hosts are there, and why the others cannot join, if that is known."""
    there = f"{record.current.hosts.usable} of {spec.hosts} hosts are ready and offer their chips"
    asked = record.join_asked
    if asked is None or asked.attempt != record.attempt:
        return f"{there}."
    if asked.failure:
        return f"{there}; they cannot be given the token to join with: {asked.failure}"
    if asked.handed_on_at is not None:
        return f"{there}; they have a token to join with since {asked.handed_on_at:%H:%M:%S} UTC."
    return (
        f"{there}; the relay was asked at {asked.at:%H:%M:%S} UTC for a token to join with, and has not answered yet."
    )


def what_brings_back(known: Returning, record: SliceRecord, vendor: Vendor) -> str:
    """Return what is done about hosts that are away, and since when."""
    several = record.current.hosts.maintained > 1
    what = {
        Cause.UPGRADE: f"{vendor} upgrades the {vendor.pool} and makes its hosts anew",
        Cause.REPAIR: f"{vendor} repairs the {vendor.pool} and makes its hosts anew",
        Cause.WORK: f"{vendor} works on the {vendor.pool}",
        Cause.MAINTENANCE: f"Google maintains the machine{'s of hosts' if several else ' of a host'}",
        Cause.PREEMPTED: f"spot hosts were taken, and {vendor} has asked for them again",
    }
    return f"{what[known.cause]} since {known.since:%Y-%m-%d %H:%M} UTC"


def away(known: Returning, record: SliceRecord, spec: SliceSpec, settings: ClusterSettings, says: str = "") -> str:
    """Return that hosts are known to come back, how many are there, and what follows if they do not."""
    what = what_brings_back(known, record, settings.vendor)
    text = f"{what[0].upper()}{what[1:]}: {record.current.hosts.usable} of {spec.hosts} hosts are ready."
    if known.late:
        text = f"{text} That is longer than usual."
    if not record.owner.kind.declares:
        ends = f"{known.ends(settings.limits):%Y-%m-%d %H:%M} UTC"
        text = f"{text} If they are not back by {ends}, and no Job is on the others, it is replaced."
    return f"{text} {settings.vendor} says: {says}" if says and known.cause is Cause.WORK else text


def demand_stale(record: SliceRecord) -> str:
    """Return what is not known lately of the demand for a slice."""
    if record.owner.kind.declares:
        return f"Waiting for the relay to be heard, and with it that the {record.owner.kind} stands."
    return "Waiting for the relay to confirm that the leader pod still needs this slice."


def drifted(record: SliceRecord) -> str:
    why = "has changed since" if record.first_job is None else "is another one: its Job came to it, or it has changed"
    return f"Ready, but the {record.owner.kind}'s request {why}; not rebuilt under a running Job."


def adopted(record: SliceRecord) -> str:
    maker = "TPU operator" if record.owner.kind.declares else "TPU Provisioner"
    found = "Found without a record" if record.legacy_pool is None else f"Made by {maker}"
    return f"{found}; kept while its {record.owner.kind} is live."


def ready(record: SliceRecord, spec: SliceSpec, now: datetime) -> str:
    """Return that all hosts are ready, and until when at the latest if GKE takes them back: they started before."""
    pods = own_pods(record)
    used = f"; {pods.running} of {pods.needed} pods run" if pods else ""
    text = f"All {spec.hosts} hosts are ready and offer their chips{used}"
    longest = spec.capacity.max_run_duration
    if longest is None:
        return f"{text}."
    until = (record.since if record.phase is Phase.READY else now) + longest
    ends = f"{spec.run_duration} after their start, before {until:%Y-%m-%d %H:%M} UTC"
    return f"{text}; by flex-start, so GKE takes them back {ends}."


def not_said(pool: PoolName, vendor: Vendor, since: datetime, now: datetime) -> str:
    """Return since when the vendor has not said how a pool is."""
    return f"{vendor} has not said since {clock(since, now)} how {vendor.pool} {pool} is, and is asked again"


def unreadable(record: SliceRecord, vendor: Vendor, since: datetime, why: str, now: datetime) -> str:
    """Return since when the vendor has not said how a pool is, in its words why, and what that means for the slice."""
    text = f"{not_said(record.pool, vendor, since, now)}; nothing is created or deleted for the slice meanwhile: {why}"
    if record.goes:
        return f"Releasing ({record.why_it_goes}): {text}"
    return f"All hosts were usable when it was last seen. {text}" if record.phase is Phase.READY else text


def _since(record: SliceRecord, reason: Reason, now: datetime) -> datetime:
    """Return since when the slice has had this reason, now if it has another one."""
    last = record.transitions[-1] if record.transitions else None
    return last.at if last is not None and last.reason is reason else now


def _was_ready(record: SliceRecord) -> bool:
    """Return whether the current attempt was READY before, as far back as its history goes."""
    for transition in reversed(record.transitions):
        if transition.phase is Phase.READY or transition.reason is Reason.CREATION_STARTED:
            return transition.phase is Phase.READY
    return False
