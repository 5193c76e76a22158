"""The central decision: a slice's next record and actions, from its record and what is observed of its pools."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, assert_never

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    PoolObservations,
    Running,
    Unowned,
    Unreadable,
    Witness,
)
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import LAST_ATTEMPT, SliceSpec, same_request
from tpu_slices.domain.reconciling import messages
from tpu_slices.domain.reconciling.case import Known, Situation
from tpu_slices.domain.reconciling.decisions import Action, Arm, CreatePool, Decision
from tpu_slices.domain.reconciling.deletion import TOLD_FIRST, Assessment
from tpu_slices.domain.reconciling.evidence import with_look, with_seen
from tpu_slices.domain.reconciling.frozen import as_held, hosts_awaited_since, unchanged, unread, why_frozen
from tpu_slices.domain.reconciling.giving_up import GivingUp, giving_up, unowned
from tpu_slices.domain.reconciling.joining import joining
from tpu_slices.domain.reconciling.limiter import slot_awaited
from tpu_slices.domain.reconciling.patience import due, failure
from tpu_slices.domain.reconciling.refusals import refusal_of
from tpu_slices.domain.reconciling.relabelling import labels_replaced, relabelling
from tpu_slices.domain.reconciling.returning import reason_of, returning
from tpu_slices.domain.reconciling.terminating import (
    Followed,
    follow,
    unreadable_attempt,
    with_best_attempt,
    without_current,
)
from tpu_slices.domain.records.attempts import Relabelling
from tpu_slices.domain.records.hosts import Hosts
from tpu_slices.domain.records.seen import Seen
from tpu_slices.domain.records.slices import PoolOperation, Refusal, Rejection, SliceRecord


def decide(
    record: SliceRecord, seen: PoolObservations, now: datetime, settings: ClusterSettings, known: Known | None = None
) -> Decision:
    """Return the decision on a slice. Pure, so that `slices explain` can show it at any time.

    | seen, by desire   | PRESENT                                               | ABSENT                        |
    |-------------------|-------------------------------------------------------|-------------------------------|
    | Absent            | its Job runs elsewhere: READY; an earlier pool that   | GONE once no create request   |
    |                   | could serve is Unreadable: wait; demand fresh,        | can arrive                    |
    |                   | allowed, and a slot: create; else REFUSED, QUEUED ... |                               |
    | Begun             | as Absent: create goes on, in its slot                | given up                      |
    | Creating          | wait while its operation runs                         | given up                      |
    | Running           | READY when every host is usable                       | given up                      |
    | - its hosts are   | wait, however long it takes                           | given up                      |
    |   awaited         |                                                       |                               |
    | - others on it    | READY; its Job waits: for the slice that they left,   | given up                      |
    |                   | else given up, next attempt                           |                               |
    | - other request   | rebuilt if changed while suspended and unused,        | given up                      |
    |                   | else SPEC_DRIFTED                                     |                               |
    | Busy              | every host usable: as Running; else wait, for as long | given up                      |
    |                   | as the cause of the work has patience                 |                               |
    | - its hosts come  | wait likewise                                         | given up                      |
    |   back            |                                                       |                               |
    | Broken            | every host usable: as Running; in use: kept;          | given up                      |
    |                   | else given up, next attempt by kind of failure        |                               |
    | Deleting          | next attempt                                          | wait                          |
    | - its labels were | READY, and they are put back                          | given up                      |
    |   replaced        |                                                       |                               |
    | Unowned           | next attempt; never touched                           | as Absent; never touched      |
    | Unreadable        | change nothing, and tell it after `resync_after`      | likewise                      |

    What is given up (`giving_up` has the table) is deleted by the rule in `deletion`, or taken back if it is needed
    again (`terminating`). While an operator holds the slice, or the cluster is paused, nothing is created or deleted,
    and what is seen of its pool is told.
    """
    case = Case(as_held(record, now), seen, now, settings, known or Known())
    frozen = why_frozen(case)
    if frozen is not None:
        return unchanged(case, frozen, case.told_while_frozen(*frozen))
    rest, ended, opened = _with_attempt(case)
    followed = follow(rest)
    arm = Case(rest.record, rest.seen, now, settings, rest.known).arm(ended, followed.assessments)
    return _decision(rest, arm, followed, opened)


def _with_attempt(case: Situation) -> tuple[Situation, GivingUp | None, tuple[Action, ...]]:
    """Return the case with the attempt that is current from now on, how the last ended, and what opens its hosts."""
    best, opened = with_best_attempt(case)
    ended = giving_up(best)
    if ended is None:
        return best, None, opened
    rest, reopened = with_best_attempt(without_current(best, ended))
    taken_back = rest.record.current.create_requested_at is not None
    still = (each for each in opened if each.attempt == rest.record.attempt)
    return rest, None if taken_back else ended, (*still, *reopened)


def _decision(case: Situation, arm: Arm, followed: Followed, opened: tuple[Action, ...]) -> Decision:
    creates = (CreatePool(case.record.attempt),) if arm.creates else ()
    hosts, labels = joining(case), relabelling(case)
    record = with_seen(replace(case.record, terminating=followed.attempts), case.seen, case.now)
    changes = {
        "join_asked": hosts.asked,
        **arm.changes,
        "slot_awaited": followed.slot_awaited or arm.slot_awaited,
    }
    current = {
        "create_requested_at": None if case.nothing_stands else case.record.current.create_requested_at,
        "slot": case.record.current.slot if case.creates_current else None,
        "hosts_awaited_since": hosts_awaited_since(case.record, arm, case.now),
        "returning": returning(case),
        "relabelling": labels.state,
        **arm.current,
    }
    after = record.transitioned(case.now, arm.reason, arm.message).with_changes(**changes).with_current(**current)
    times = (due(after, followed.assessments, case.now, case.limits), hosts.until, labels.until)
    next_at = min((time for time in times if time is not None), default=None)
    after = with_look(case.record, after, next_at, case.seen.by)
    return Decision(
        after, (*opened, *followed.actions, *creates, *labels.actions, *hosts.actions), arm.reason, arm.message
    )


class Case(Situation):
    """The arms of the table, as methods."""

    __slots__ = ()

    def told_while_frozen(self, reason: Reason, message: str) -> Arm | None:
        """Return what is told of a slice to which nothing is done; None: nothing else than before."""
        if self.record.wanted and isinstance(self.seen.current, Creating | Running | Busy | Broken):
            serves = self._serving()
            return replace(serves, message=f"{message} {serves.message}") if reason is Reason.HELD else serves
        if reason is Reason.POOL_UNREADABLE:
            return unread(self)
        settled = self.record.phase is Phase.GONE and not self.record.wanted
        if reason is not Reason.HELD or settled or isinstance(self.seen.current, Unreadable):
            return None
        changes = {"retry_at": None, "blocked_settings_version": None}
        current = {"create_requested_at": None} if self.nothing_stands and self.record.attempt else {}
        return Arm(Reason.HELD, f"{message} {messages.held_course(self)}", changes, current)

    def arm(self, ended: GivingUp | None, assessments: tuple[Assessment, ...]) -> Arm:
        if not self.record.wanted:
            return self._releasing(assessments)
        if ended is not None and ended.failure is not None and not self.runs_elsewhere:
            return self._failed(ended.failure)
        if ended is not None and ended.rejection is not None:
            return self._rejected(ended.rejection)
        if ended is not None and ended.unowned and not self.runs_elsewhere:
            told = f"{ended.unowned} The next attempt has another name."
            return Arm(Reason.UNOWNED_POOL, told, {"retry_at": self.now})
        return self._serving()

    def _serving(self) -> Arm:
        match self.seen.current:
            case Absent() | Begun():
                return self._absent()
            case Creating():
                return self._creating()
            case Running(lacking=lacking) if lacking and self.whole and not self.runs_elsewhere:
                return self._relabelled(lacking)
            case Running():
                return self._running(self.seen.current)
            case Busy(message):
                return self._busy(message)
            case Broken(why):
                return self._running(Running()) if self.whole else self._broken(why)
            case Unowned(message):
                told = f"{unowned(self, message)} Its Job runs there."
                return Arm(Reason.UNOWNED_POOL, told, {"retry_at": self.now + self.limits.resync_after})
            case Deleting() | Unreadable():
                raise AssertionError(f"{self.seen.current} is no case of a pool that is kept")
            case _:
                assert_never(self.seen.current)

    # PRESENT

    def _absent(self) -> Arm:
        if self.runs_elsewhere:
            return self._elsewhere()
        refusal = refusal_of(self.record, self.settings, self.known.held, self.known.limited)
        if refusal is not None and (refusal.reason is not Reason.CHIP_LIMIT_REACHED or not self.unawaited):
            changes = {"retry_at": None, "blocked_settings_version": None}
            return Arm(refusal.reason, refusal.message, changes)
        if self._has_to_wait():
            return Arm(self.record.reason, self.record.message)
        if not self.waiting or self.record.spec is None:
            return Arm(Reason.DEMAND_STALE, messages.demand_stale(self.record))
        if self.record.attempt > LAST_ATTEMPT:
            message = f"All {LAST_ATTEMPT} attempts failed: delete and re-create the {self.record.owner.kind}."
            return Arm(Reason.ATTEMPTS_EXHAUSTED, message)
        if (unread := unreadable_attempt(self)) is not None:
            earlier, seen = unread
            pool = f"{self.vendor.pool} {self.record.pool_of(earlier.number)}"
            message = f"{self.vendor} does not say whether {pool} stands, which could serve: {seen.message}"
            return Arm(Reason.EARLIER_POOL_UNREADABLE, message)
        slot = self.record.current.slot if self.record.current.slot is not None else self.slot_for(self.record.attempt)
        return self._without_slot() if slot is None else self._create(slot)

    def _has_to_wait(self) -> bool:
        """Return whether to wait for `retry_at`; a slice blocked under other settings is retried at once."""
        if self.record.phase not in {Phase.WAITING, Phase.BLOCKED}:
            return False
        if self.record.blocked_settings_version not in {None, self.settings.version}:
            return False
        return self.record.retry_at is not None and self.now < self.record.retry_at

    def _without_slot(self) -> Arm:
        awaits = slot_awaited(self.record, PoolOperation.CREATE, self.record.attempt, self.now)
        shortage = self.known.shortage
        if shortage is None:
            message = "Waiting for another operation to end: the cluster's limit is reached."
            return Arm(Reason.OPERATION_LIMIT, message, slot_awaited=awaits)
        awaits = replace(awaits, shortage=shortage)
        return Arm(Reason.AWAITING_TURN, messages.awaiting_turn(self.record, shortage, self.now), slot_awaited=awaits)

    def _create(self, slot: int) -> Arm:
        spec = self.record.spec
        what = messages.created(spec) if spec else "hosts"
        first, begun = self.record.current.create_requested_at is None, isinstance(self.seen.current, Begun)
        known = self.record.current
        current = {
            "create_requested_at": self.now,
            "ordered": self.record.made_as if begun else spec,
            "slot": slot,
            "operation": None,
            "seen": Seen(pool=Creating(), since=self.now, by=Witness.REQUEST),
            "ours_since": known.ours_since if begun else None,
            "hosts": Hosts(sequence=known.hosts.sequence, highest=known.hosts.highest),
        }
        changes = {
            "retry_at": None,
            "blocked_settings_version": None,
            "rejection": None,
            "expire_at": None,
            "pinned_settings": self.settings.pools if first else self.record.pinned_settings,
        }
        noun, seen = self.vendor.pool, self.seen.current
        if isinstance(seen, Begun):
            message = f"Creating {noun} {self.record.pool} goes on, {seen.message} stands."
            return Arm(Reason.CREATING, message, changes, current, creates=True)
        ahead = messages.attempt_ahead(self.record.with_current(create_requested_at=self.now), self.vendor, self.now)
        message = f"Creating {noun} {self.record.pool}: {what}{ahead}."
        return Arm(Reason.CREATION_STARTED, message, changes, current, creates=True)

    def _creating(self) -> Arm:
        return Arm(Reason.CREATING, messages.creating(self.record, self.settings, self.now))

    def _running(self, seen: Running) -> Arm:
        record, spec = self.record, self.record.made_as
        served = {"failures": 0, "retry_at": None}
        if self.runs_elsewhere:
            return self._elsewhere()
        if record.spec is None or spec is None or (record.attempt == 0 and not record.current.hosts.known):
            return Arm(Reason.ADOPTED, messages.adopted(record))
        if self.unfilled:
            return self._awaiting_hosts(seen.awaiting)
        if self.deprived and self.known.left is not None:
            guest = record.current.hosts.occupants[0].owner.full_name
            return Arm(Reason.HOSTS_EXCHANGED, messages.hosts_exchanged(guest, self.known.left))
        if not self.whole:
            return self._incomplete(spec, seen)
        if not same_request(seen.fingerprint, record.spec):
            return Arm(Reason.SPEC_DRIFTED, messages.drifted(record), served)
        if record.lent(record.current.hosts) and not record.owner.kind.declares:
            user = record.current.hosts.occupants[0].owner.full_name
            return Arm(Reason.USED_BY_OTHERS, f"{user} runs on its hosts; its own Job does not need them now.", served)
        if self.leader_should_be_here:
            return Arm(Reason.LEADER_STILL_WAITING, messages.LEADER_STILL_WAITING, served)
        return Arm(Reason.READY, messages.ready(record, spec, self.now), served)

    def _relabelled(self, lacking: str) -> Arm:
        return Arm(Reason.LABELS_REPLACED, self._labels_replaced(lacking), {"failures": 0, "retry_at": None})

    def _labels_replaced(self, lacking: str) -> str:
        state = relabelling(self).state or Relabelling(lacking=lacking, again_at=self.now)
        return labels_replaced(state, self.vendor, frozen=why_frozen(self) is not None)

    def _awaiting_hosts(self, why: str = "") -> Arm:
        record, spec = self.record, self.record.made_as
        assert spec is not None
        if not spec.is_flex_start:
            return Arm(Reason.AWAITING_CAPACITY, messages.awaiting_capacity(record, spec, why, self.now))
        return Arm(Reason.AWAITING_FLEX_START, messages.awaiting_flex_start(record, spec, self.now))

    def _busy(self, says: str) -> Arm:
        replaced = self.record.current.relabelling
        if self.whole:
            return self._running(Running()) if replaced is None else self._relabelled(replaced.lacking)
        if self.unfilled:
            return self._awaiting_hosts()
        known, spec = returning(self), self.record.made_as
        if known is None or spec is None:
            return Arm(Reason.POOL_BUSY, f"{self.vendor} is working on the {self.vendor.pool}: {says}")
        message = messages.away(known, self.record, spec, self.settings, says)
        return Arm(reason_of(known.cause, self.vendor), message)

    def _incomplete(self, spec: SliceSpec, seen: Running) -> Arm:
        """Return why not all hosts of a pool that runs are usable."""
        record, known = self.record, returning(self)
        labels = f" {self._labels_replaced(seen.lacking)}" if seen.lacking else ""
        if known is not None and known.over_at is None:
            message = messages.away(known, record, spec, self.settings, seen.awaiting)
            return Arm(reason_of(known.cause, self.vendor), f"{message}{labels}")
        lost = record.phase is Phase.READY or record.seen_as is Reason.HOSTS_LOST
        message = messages.hosts_awaited(record, spec)
        return Arm(Reason.HOSTS_LOST if lost else Reason.HOSTS_JOINING, f"{message}{labels}")

    def _elsewhere(self) -> Arm:
        place = self.record.runs_on
        assert place is not None
        verb = "runs" if place.left_at is None else "ran moments ago, and may restart,"
        return Arm(Reason.RUNS_ELSEWHERE, f"Its Job {verb} on the hosts of slice {place.slice_id}.")

    def _broken(self, why: Failure) -> Arm:
        reports = f"{self.vendor} reports an error for the {self.vendor.pool}"
        return Arm(Reason.POOL_BROKEN, f"{reports}, which may be in use: {why.message}")

    def _failed(self, why: Failure) -> Arm:
        return failure(self.record, why, self.now, self.settings)

    def _rejected(self, why: Refusal) -> Arm:
        rejection = Rejection(reason=why.reason, message=why.message, settings_version=self.settings.version)
        return Arm(why.reason, why.message, {"rejection": rejection})

    # ABSENT

    def _releasing(self, assessments: tuple[Assessment, ...]) -> Arm:
        """Return RELEASING, or GONE once neither a pool nor a late create request is left."""
        changes: dict[str, Any] = {"retry_at": None, "failures": 0, "blocked_settings_version": None}
        own = self.known.workloads.get(self.record.owner.uid)
        if own is not None and own.state is not WorkloadState.ACTIVE:
            changes["runs_on"] = None
        why = self.record.desire_message or "no longer in demand"
        if assessments:
            told = min(assessments, key=lambda each: TOLD_FIRST.index(each.reason))
            return Arm(told.reason, f"Releasing ({why}): {told.message.rstrip('.')}.", changes)
        changes["expire_at"] = self.record.expire_at or self.now + self.limits.gone_ttl
        if self.record.attempts == 1 and self.record.legacy_pool is None:
            return Arm(Reason.NEVER_CREATED, f"No {self.vendor.pool} was created: {why}.", changes)
        return Arm(Reason.RELEASED, f"Released: {why}.", changes)
