"""When the state of a slice's pool is known without asking GKE. Pure.

Whatever is presumed, nothing is created or deleted for it: GKE is asked before.
"""

from __future__ import annotations

from tpu_slices.domain.model.observations import Absent, PoolObservations, Running
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.records.slices import SliceRecord

_STANDING = frozenset({Reason.HOSTS_JOINING, Reason.READY})


def presumed(
    record: SliceRecord, created: str | None, *, answered: bool = False, stopped: bool = False
) -> PoolObservations | None:
    """Return what is presumed of a slice's pools; None: GKE is to be asked.

    `created`: the operation of which the event that is handled says that it created a pool, and did not fail. A pool
    that somebody deleted is created once more under its name, so that its name says less. `answered`: it is what the
    relay answered about the hosts of a pool. `stopped`: releases are stopped until an operator confirms them.

    | the slice has one pool, and                                        | presumed |
    |--------------------------------------------------------------------|----------|
    | GKE has said that the operation on record, which creates it, ended | it runs  |
    | well; on Compute Engine that may be one step of several            |          |
    | was READY until its workload ended, or needs no slices any more    | it runs  |
    | the relay has just answered about the hosts of a pool that is to   | it runs  |
    | be deleted, and whose creation had ended when it was asked         |          |
    | is to be deleted, which was stopped, and has just been confirmed   | it runs  |
    """
    confirmed = record.reason is Reason.RELEASES_STOPPED and not stopped
    if (answered or confirmed) and _has_one_to_delete(record):
        (last,) = record.terminating
        closing = last.hosts.closing
        is_made = last.operation is None and last.slot is None and (closing is None or not closing.during_creation)
        undisturbed = last.hosts.joined and is_made and last.delete_requested_at is None
        runs = undisturbed and (confirmed or closing is not None)
        return PoolObservations(Absent(), {last.number: Running(None)}) if runs else None
    current = record.current
    if record.terminating or current.create_requested_at is None or record.rebuild_allowed or current.relabelling:
        return None
    told = created is not None and created == current.operation
    made = told and record.under_creation and not record.made_in_steps
    served = record.reason is Reason.READY and not record.wanted
    return PoolObservations(Running(None), {}) if made or served else None


def _has_one_to_delete(record: SliceRecord) -> bool:
    return not record.wanted and len(record.terminating) == 1 and record.current.create_requested_at is None


def stands(record: SliceRecord) -> bool:
    """Return whether a slice has one pool alone, its own, which was seen to run and of which nothing is under way."""
    changing = record.terminating or record.runs_on or record.rebuild_allowed or record.current.relabelling
    undisturbed = not (changing or record.slots)
    return undisturbed and record.spec is not None and record.reason in _STANDING
