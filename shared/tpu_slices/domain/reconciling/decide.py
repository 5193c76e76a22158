"""The central decision: a slice's next record and actions, from its record and what is observed of its pools."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import assert_never

from tpu_slices.domain.capacity.spares import failures_of
from tpu_slices.domain.capacity.warmth import spare_told
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.observations import (
    Absent,
    Begun,
    Broken,
    Busy,
    Creating,
    Deleting,
    Failure,
    Observed,
    Running,
    Unowned,
    Unreadable,
)
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import SliceSpec, same_request
from tpu_slices.domain.reconciling import messages
from tpu_slices.domain.reconciling.binding import Bound, bind, without_gone
from tpu_slices.domain.reconciling.case import Known, Situation
from tpu_slices.domain.reconciling.decisions import Arm, CreatePool, Decision
from tpu_slices.domain.reconciling.deletion import Assessment
from tpu_slices.domain.reconciling.ending import Ending, ending, is_gone, keyed_until
from tpu_slices.domain.reconciling.evidence import seen_so, with_look, with_seen
from tpu_slices.domain.reconciling.frozen import as_held, hosts_awaited_since, unchanged, unread, why_frozen
from tpu_slices.domain.reconciling.giving_up import unowned
from tpu_slices.domain.reconciling.joining import joining
from tpu_slices.domain.reconciling.patience import due
from tpu_slices.domain.reconciling.relabelling import labels_replaced, relabelling
from tpu_slices.domain.reconciling.returning import reason_of, returning
from tpu_slices.domain.reconciling.taking import changes_hands
from tpu_slices.domain.records.attempts import Relabelling
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.use import unused


def decide(
    record: SliceRecord, seen: Observed, now: datetime, settings: ClusterSettings, known: Known | None = None
) -> Decision:
    """Return the decision on a claim and its slice, or on a slice that no claim has.

    Pure, so that `slices explain` can show it at any time.

    | the case                                                              | decided by                          |
    |-----------------------------------------------------------------------|-------------------------------------|
    | an operator holds it, the cluster is paused, or the vendor does not   | `frozen`: nothing is created or     |
    | say how its slice is                                                  | deleted; what is seen is told       |
    | else: which slice it has, and whether one is made                     | `binding.bind`                      |
    | - it goes, or no claim has it: what is done for its end               | `ending.ending`, by `deletion`      |
    | - else: what it says                                                  | the arms of `Case`, below           |

    | its slice is seen | then                                                                                    |
    |-------------------|-----------------------------------------------------------------------------------------|
    | Creating          | wait while its operation runs                                                           |
    | Running           | READY when every host is usable                                                         |
    | - its hosts are   | wait, however long it takes                                                             |
    |   awaited         |                                                                                         |
    | - its hosts have  | wait until nobody uses them, and they are the claim's by their key                      |
    |   another's key   |                                                                                         |
    | - its labels were | LABELS_REPLACED, and they are put back                                                  |
    |   replaced        |                                                                                         |
    | - it was adopted, | ADOPTED                                                                                 |
    |   hosts not told  |                                                                                         |
    | - others are on   | USED_BY_OTHERS                                                                          |
    |   it alone        |                                                                                         |
    | - other request   | SPEC_DRIFTED                                                                            |
    | - it is a spare   | SPARE                                                                                   |
    | - held for its    | READY                                                                                   |
    |   gang            |                                                                                         |
    | - vacant, and its | LEADER_STILL_WAITING                                                                    |
    |   leader waits    |                                                                                         |
    | - does not train  | PODS_NOT_RUNNING, PODS_APART or IDLE, by `use.unused`                                   |
    | Busy              | every host usable: as Running; else wait, for as long as the cause of the work has      |
    |                   | patience                                                                                |
    | Broken            | every host usable: as Running; in use: kept                                             |
    | Unowned           | its Job runs there: told, and never touched                                             |

    A slice that goes is RELEASING while it stands or may still come, and GONE then; so is its claim.
    """
    case = Case(as_held(record, now), seen, now, settings, known or Known())
    frozen = why_frozen(case)
    if frozen is not None:
        case = without_gone(case)
        return unchanged(case, frozen, case.told_while_frozen(*frozen))
    bound = Bound(case) if record.unclaimed else bind(case)
    rest = bound.case
    end = ending(rest) if rest.record.goes and not is_gone(rest) else None
    arm = bound.waits or Case(rest.record, rest.seen, now, settings, rest.known).arm(end.why if end else None)
    return _decision(bound, arm, end)


def _decision(bound: Bound, arm: Arm, end: Ending | None) -> Decision:
    case = bound.case
    creates = (CreatePool(case.record.attempt),) if arm.creates else ()
    hosts, labels = joining(case), relabelling(case)
    record = with_seen(case.record, case.seen, case.now).with_claim(unawaited_since=case.unawaited_since)
    if end is not None:
        current = seen_so(end.attempt, case.seen.pool, case.now, case.seen.by)
    else:
        current = replace(
            record.current,
            create_requested_at=None if case.nothing_stands else case.record.current.create_requested_at,
            slot=case.record.current.slot if case.creates_current else None,
            hosts_awaited_since=hosts_awaited_since(case.record, arm, case.now),
            returning=returning(case),
            relabelling=labels.state,
        )
    after = arm.said_of(replace(record, current=current, join_asked=hosts.asked), case.now)
    after = after.with_changes(slot_awaited=end.slot_awaited if end else arm.slot_awaited)
    by_itself = due(after, end.why if end else None, case.now, case.limits, case.held_until)
    times = (by_itself, hosts.until, labels.until, keyed_until(case))
    next_at = min((time for time in times if time is not None), default=None)
    after = with_look(case.record, after, next_at, case.seen.by)
    actions = (*bound.opened, *(end.actions if end else ()), *creates, *labels.actions, *hosts.actions)
    return Decision(after, actions, arm.reason, arm.message, bound.let_go)


class Case(Situation):
    """The arms of the table, as methods."""

    __slots__ = ()

    def told_while_frozen(self, reason: Reason, message: str) -> Arm | None:
        """Return what is told of a slice to which nothing is done; None: nothing else than before."""
        if not self.record.goes and isinstance(self.seen.pool, Creating | Running | Busy | Broken):
            serves = self._serving()
            return replace(serves, message=f"{message} {serves.message}") if reason is Reason.HELD else serves
        if reason is Reason.POOL_UNREADABLE:
            return unread(self)
        settled = self.record.phase is Phase.GONE and not self.record.wanted
        if reason is not Reason.HELD or settled or isinstance(self.seen.pool, Unreadable):
            return None
        claim = {"retry_at": None, "blocked_settings_version": None}
        current = {"create_requested_at": None} if self.nothing_stands and self.record.attempt else {}
        return Arm(Reason.HELD, f"{message} {messages.held_course(self)}", claim, current)

    def arm(self, why: Assessment | None) -> Arm:
        """Return what a slice says that stays, or that goes; `why`: why it still stands."""
        return self._releasing(why) if self.record.goes else self._serving()

    def _serving(self) -> Arm:
        match self.seen.pool:
            case Creating():
                return self._creating()
            case Running(lacking=lacking) if lacking and self.whole:
                return self._relabelled(lacking)
            case Running():
                return self._running(self.seen.pool)
            case Busy(message):
                return self._busy(message)
            case Broken(why):
                return self._running(Running()) if self.whole else self._broken(why)
            case Unowned(message):
                told = f"{unowned(self, message)} Its Job runs there."
                return Arm(Reason.UNOWNED_POOL, told, {"retry_at": self.now + self.limits.resync_after})
            case Absent() | Begun() | Deleting() | Unreadable():
                raise AssertionError(f"{self.seen.pool} is no case of a slice that stands")
            case _:
                assert_never(self.seen.pool)

    def _creating(self) -> Arm:
        return Arm(Reason.CREATING, messages.creating(self.record, self.settings, self.now))

    def _running(self, seen: Running) -> Arm:
        record, spec = self.record, self.record.made_as
        served = {"failures": failures_of(record, self.now) if record.owner.kind.is_spare else 0, "retry_at": None}
        if record.spec is None or spec is None or (record.attempt == 0 and not record.current.hosts.known):
            return Arm(Reason.ADOPTED, messages.adopted(record))
        if self.unfilled:
            return self._awaiting_hosts(seen.awaiting)
        if (why := changes_hands(self)) is not None:
            return Arm(Reason.HOSTS_JOINING, messages.changing_hands(record, why.message))
        if not self.whole:
            return self._incomplete(spec, seen)
        if record.lent and not record.owner.kind.declares:
            user = record.current.hosts.occupants[0].owner.told_in(record.owner.namespace)
            return Arm(Reason.USED_BY_OTHERS, f"Its hosts are used by {user}, which cannot have them.", served)
        if not same_request(seen.fingerprint, record.spec):
            return Arm(Reason.SPEC_DRIFTED, messages.drifted(record), served)
        if (vacant := self._vacant()) is not None:
            return Arm(*vacant, served)
        if (idle := unused(record, self.now, silent=self.known.relay.silent(self.now))) is not None:
            return Arm(*idle, served)
        return Arm(Reason.READY, messages.ready(record, spec, self.now), served)

    def _vacant(self) -> tuple[Reason, str] | None:
        """Return what a spare says, or a slice that its leader should be on, or may not come to yet; None: neither."""
        if self.record.owner.kind.is_spare:
            return Reason.SPARE, spare_told(self.record, self.settings, self.now)
        if not self.may_be_used and not self.record.occupied:
            return Reason.READY, messages.HELD_FOR_ITS_GANG
        if self.leader_should_be_here:
            return Reason.LEADER_STILL_WAITING, messages.LEADER_STILL_WAITING
        return None

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

    def _broken(self, why: Failure) -> Arm:
        reports = f"{self.vendor} reports an error for the {self.vendor.pool}"
        return Arm(Reason.POOL_BROKEN, f"{reports}, which may be in use: {why.message}")

    def _releasing(self, still: Assessment | None) -> Arm:
        """Return RELEASING, or GONE once neither a pool nor a late create request is left."""
        record = self.record
        claim = {"retry_at": None, "failures": 0, "blocked_settings_version": None}
        why = record.why_it_goes
        if still is not None and still.reason is Reason.WARM:
            return Arm(Reason.WARM, still.message, claim)
        if still is not None:
            return Arm(still.reason, f"Releasing ({why}): {still.message.rstrip('.')}.", claim)
        if record.claim.earlier:
            names = " and ".join(record.claim.earlier)
            message = f"Releasing ({why}): waiting for {self.vendor.pool} {names}, which it had before, to go."
            return Arm(Reason.EARLIER_SLICE_STANDS, message, claim)
        expires = {"expire_at": record.expire_at or self.now + self.limits.gone_ttl}
        if record.claim.tried == 1 and record.legacy_pool is None and not (record.unclaimed or record.current.gone):
            return Arm(Reason.NEVER_CREATED, f"No {self.vendor.pool} was created: {why}.", claim, record=expires)
        return Arm(Reason.RELEASED, f"Released: {why}.", claim, record=expires)
