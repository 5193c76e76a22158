"""When a claim has its slice no more, though it needs one. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from tpu_slices.domain.model.hosts import AHEAD
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    FailureKind,
    Running,
    Unowned,
)
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import same_request
from tpu_slices.domain.model.texts import clock, duration
from tpu_slices.domain.reconciling.case import Situation
from tpu_slices.domain.reconciling.messages import what_brings_back
from tpu_slices.domain.reconciling.patience import FAILED
from tpu_slices.domain.reconciling.refusals import refusal_of
from tpu_slices.domain.reconciling.returning import AWAY, returning
from tpu_slices.domain.reconciling.taking import changes_hands
from tpu_slices.domain.records.claims import Refusal
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.use import not_running_since
from tpu_slices.domain.records.workloads import WorkloadRecord

BELIEVED = timedelta(minutes=5)
"""How old what is known of pods may be to let a slice go under them."""
HOSTS_AWAITED = frozenset({Reason.HOSTS_JOINING, Reason.HOSTS_LOST, Reason.POOL_BROKEN, *AWAY})


@dataclass(frozen=True, slots=True)
class GivingUp:
    """How a claim comes to have a slice no more."""

    why: str = ""
    """Why the slice goes, as told; empty: see `failure` and `unowned`."""
    fits: bool = False
    """Nothing is wrong with it: its claim has it again if that waits for one when nobody uses it any more."""
    unneeded: bool = False
    """Nobody uses it, and its claim waits for none: it goes, and is the claim's again if it is needed meanwhile."""
    failure: Failure | None = None
    rejection: Refusal | None = None
    evicts: bool = False
    """It goes although its own Job is on it."""
    unowned: str = ""
    """That somebody else has a pool of its name; empty: nobody has."""

    @property
    def told(self) -> str:
        """Why the slice goes."""
        return f"it failed, {FAILED[self.failure.kind]}" if self.failure is not None else self.why


def giving_up(case: Situation) -> GivingUp | None:
    """Return how the slice of a claim that needs one ends, or None if it stays. The first row that holds counts.

    | the slice                                                   | the claim has it no more                          |
    |-------------------------------------------------------------|---------------------------------------------------|
    | adopted, and its pool is gone: the name is not ours to use  | yes                                               |
    | being deleted by somebody                                   | yes                                               |
    | not ours: somebody else has a pool of its name, and its own | yes: the next attempt has another name            |
    | Job is not there                                            |                                                   |
    | begun, and not to be bought any more                        | yes                                               |
    | a pool on which only others run, while its own Job waits    | yes                                               |
    | its Job's alone; pods of that have not run for              | refused, and its Job's pods are evicted           |
    | `not_running_after`, or the run is given up (`wedged`)      |                                                   |
    | its creation failed, or was forgotten by GKE                | failed                                            |
    | broken later, and unused                                    | failed                                            |
    | of a gang that waits since its slices were let go, unused   | yes                                               |
    | unused, and its workload asks elsewhere for it by now       | yes                                               |
    | made for another request, changed since, unused             | yes                                               |
    | of a TPUNodeGroup, in none of the cases above               | no                                                |
    | the vendor awaits its hosts, while no leader waits          | unneeded, after `restart_grace`; while one waits: |
    |                                                             | no                                                |
    | unused, and without some usable hosts that the vendor is    | failed, once they are away for the `patience`     |
    | known to bring back, or was (`returning`)                   | of the cause, or back for `hosts_timeout`         |
    | unused, and without some usable hosts, whose reservation is | yes: nothing comes back                           |
    | over                                                        |                                                   |
    | else unused and without some usable hosts                   | failed, after `hosts_timeout`                     |
    | changing hands for `restart_grace`, or pods of others there | yes                                               |
    | have more than a minute to end                              |                                                   |
    | held for its gang                                           | no                                                |
    | a spare, with a host that is maintained within the hour     | failed                                            |
    | any other spare                                             | no                                                |
    | ready and unused for `idle_after`                           | unneeded; while its leader waits: refused, or     |
    |                                                             | yes, if its gang waits                            |
    """
    match case.seen.pool:
        case Absent() | Begun():
            return GivingUp(why="it is not to be made any more") if _not_to_be_made(case) else None
        case Deleting() | Unowned() as seen:
            return _taken_away(case, seen)
        case Creating() | Running() | Busy() | Broken() if case.deprived:
            return GivingUp(why="others run on its hosts, and its own Job waits", fits=True)
        case Running() | Busy() | Broken() if (why := wedged(case)) is not None:
            return why
        case Creating() as seen:
            return _creation_lost(case, seen)
        case Broken(failure) if not case.whole:
            return GivingUp(failure=failure) if _failed_before_use(case) or case.unused else None
        case Running() | Broken() | Busy() as seen:
            return _not_useful(case, seen)
        case _:
            return None


def wedged(case: Situation) -> GivingUp | None:
    """Return how a slice ends whose run does not run, where the settings have it let go: not by what is long known.

    | the slice                                                             | it goes                               |
    |-----------------------------------------------------------------------|---------------------------------------|
    | the relay is silent, or the records of hosts have not agreed with     | no                                    |
    | what it sees for BELIEVED                                             |                                       |
    | Jobs of others are on it, or may come back                            | no                                    |
    | some pods of its Job have not run for `not_running_after`             | yes                                   |
    | of a JobSet, another slice of which was let go for that               | yes                                   |
    """
    lasts, relay = case.limits.not_running_after, case.known.relay
    seen_at = None if relay.silent(case.now) else relay.confirmed_at
    if lasts is None or seen_at is None or case.now - seen_at > BELIEVED or case.users.without(case.record.owner.uid):
        return None
    since = not_running_since(case.record)
    if since is not None and case.now - since >= lasts:
        told = (
            f"Its slice was let go after {duration(lasts)}, as `limits.not_running_after` says: {case.record.message}"
        )
        return _evicted("pods of its Job do not run", told)
    return _evicted("pods of its run do not run", GIVEN_UP) if case.run_given_up else None


GIVEN_UP = "Pods of another Job of its run did not run, so that the slices of all were let go."


def with_given_up(workload: WorkloadRecord, slices: Iterable[SliceRecord]) -> WorkloadRecord:
    """Return the record of a workload that is given up at its generation if one of these slices was let go for that."""
    rejections = (record.claim.rejection for record in slices)
    let_go = {each.generation for each in rejections if each is not None and each.reason is Reason.PODS_DID_NOT_RUN}
    return replace(workload, given_up=workload.edition) if workload.edition in let_go else workload


def _evicted(why: str, message: str) -> GivingUp:
    refusal = Refusal(reason=Reason.PODS_DID_NOT_RUN, message=message)
    return GivingUp(why=why, rejection=refusal, evicts=True)


def _taken_away(case: Situation, seen: Deleting | Unowned) -> GivingUp | None:
    if isinstance(seen, Deleting):
        return GivingUp(why="somebody deletes it")
    return None if case.record.occupied else GivingUp(unowned=unowned(case, seen.message))


def unowned(case: Situation, message: str) -> str:
    """Return what is told of a pool under the attempt's name that nothing proves to be ours."""
    return f"{case.vendor.a_pool} named {case.record.pool} exists that is not ours, and is left alone: {message}"


def _not_to_be_made(case: Situation) -> bool:
    """Return whether a pool that does not stand, or only in part, is not to be made under its name."""
    if case.record.attempt == 0 or isinstance(case.seen.pool, Absent):
        return case.record.attempt == 0
    gang_waits = case.gang is not None and case.gang.waits
    return not case.waiting or gang_waits or refusal_of(case.record, case.settings, case.known.held) is not None


def _creation_lost(case: Situation, seen: Creating) -> GivingUp | None:
    if (let_go := _of_a_gang_let_go(case) or _left_behind(case)) is not None and case.unused:
        return let_go
    requested = case.record.current.create_requested_at
    if seen.operation_runs or requested is None or case.now - requested <= case.limits.create_timeout:
        return None
    lost = Failure(FailureKind.UNKNOWN, "No operation runs for it any more, and it is still not created.")
    return GivingUp(failure=lost) if case.unused else None


def _failed_before_use(case: Situation) -> bool:
    """Return whether the creation failed before any host was reported."""
    return case.record.current.under_creation and not case.record.current.hosts.joined and not case.users


def _not_useful(case: Situation, seen: Running | Broken | Busy) -> GivingUp | None:
    record = case.record
    if not case.unused:
        return None
    if (let_go := _of_a_gang_let_go(case) or _left_behind(case)) is not None:
        return let_go
    drifted = isinstance(seen, Running) and record.spec and not same_request(seen.fingerprint, record.spec)
    if drifted and record.claim.rebuild_allowed:
        return GivingUp(why="its request has changed")
    if record.owner.kind.declares:
        return None
    if case.unfilled:
        return GivingUp(why="nobody waits for it", unneeded=True) if case.long_unawaited else None
    if changes_hands(case) is not None:
        return _never_its_own(case)
    if not case.whole:
        return _hosts_missing(case)
    return _maintained_soon(case) if record.owner.kind.is_spare else _idle(case)


def _of_a_gang_let_go(case: Situation) -> GivingUp | None:
    """Return how a slice ends that nobody uses, as its gang waits since its slices were let go."""
    gang = case.gang
    return GivingUp(why=gang.let_go, fits=True) if gang is not None and gang.waits and gang.let_go else None


def _left_behind(case: Situation) -> GivingUp | None:
    """Return how a slice ends for which its workload asks elsewhere; None: it does not."""
    asked = case.left_for
    return GivingUp(why=f"it is asked for as {asked.how} now", fits=not case.unfilled) if asked is not None else None


def _never_its_own(case: Situation) -> GivingUp | None:
    """Return whether a claim waits no longer for hosts that were another's, and that others' pods keep."""
    ends_by, since = case.record.current.hosts.ends_by, case.record.current.hosts_awaited_since
    if ends_by is not None and ends_by - case.now > case.limits.requeue_after:
        return GivingUp(why=f"pods on its hosts have until {ends_by:%Y-%m-%d %H:%M} UTC to end")
    if since is None or case.now - since < case.limits.restart_grace:
        return None
    return GivingUp(why=f"its hosts did not become its claim's within {duration(case.limits.restart_grace)}")


def _hosts_missing(case: Situation) -> GivingUp | None:
    record, since = case.record, case.record.current.hosts_awaited_since
    if since is None or record.made_as is None:
        return None
    if case.known.reservation_ended:
        return GivingUp(why="its reservation is over, and its hosts went with it")
    known = returning(case)
    if case.now < (since + case.limits.hosts_timeout if known is None else known.ends(case.limits)):
        return None
    usable = f"{record.current.hosts.usable} of {record.made_as.hosts} hosts"
    message = f"{usable} became usable within {duration(case.limits.hosts_timeout)}."
    if known is not None and known.over_at is None:
        why = what_brings_back(known, record, case.vendor)
        message = f"{usable} are usable: {why}, and nobody waits for that any longer."
    return GivingUp(failure=Failure(FailureKind.HOSTS, message))


def _maintained_soon(case: Situation) -> GivingUp | None:
    """Return how a spare ends that nobody is given any more; the hosts of the next one may be announced as well."""
    announced = case.record.current.hosts.announced
    if announced is None or announced.begins is None or case.now < announced.begins - AHEAD:
        return None
    message = f"Google has announced maintenance of its hosts from {clock(announced.begins, case.now)}."
    return GivingUp(failure=Failure(FailureKind.HOSTS, message))


def _idle(case: Situation) -> GivingUp | None:
    record = case.record
    if record.phase is not Phase.READY or case.held_until is not None:
        return None
    since = case.vacant_since
    if case.now - since < case.limits.idle_after:
        return None
    confirmed = record.claim.demand_confirmed_at
    minutes = f"{case.limits.idle_after.total_seconds() / 60:.0f} minutes"
    if confirmed is None or not case.waiting:
        return GivingUp(why=f"nobody used it for {minutes}", unneeded=True)
    if not case.may_be_used:
        return GivingUp(why=f"its gang waited for {minutes}", fits=True)
    if confirmed <= since:
        return None
    message = f"The slice was ready for {minutes}, but its leader was not scheduled onto it: see the pod's events."
    why = "its leader was not scheduled onto it"
    return GivingUp(why=why, rejection=Refusal(reason=Reason.LEADER_UNSCHEDULABLE, message=message))
