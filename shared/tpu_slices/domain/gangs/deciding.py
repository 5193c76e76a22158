"""Whether slices of a gang are made, held or let go. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from tpu_slices.domain.capacity.reservations import beyond_reservation
from tpu_slices.domain.gangs.members import Members, refused_for_good, withheld
from tpu_slices.domain.model.clusters import ClusterSettings, Limits, Policy
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import ClaimId, WorkloadUid
from tpu_slices.domain.model.texts import clock, lasting
from tpu_slices.domain.planning.costs import spent
from tpu_slices.domain.planning.gangs import GangSize, beyond_limits
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.records.gangs import Gang, GangKey, GangState, InLine, reserved
from tpu_slices.domain.records.limiters import CapacityPool
from tpu_slices.domain.records.reservations import Reservation
from tpu_slices.domain.records.slices import SliceRecord

FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=5), timedelta(hours=1)
"""How long a gang waits whose slices were held for too long: twice as long each time, a fifth more or less."""
SPREAD = 0.2
MOST_NAMES = 3
"""The most workloads that are named in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A gang, its slices, and what is known beside them."""

    workload: WorkloadUid
    name: str
    """Of the workload."""
    namespace: str
    key: GangKey
    gang: Gang
    members: Members
    line: Mapping[GangKey, InLine]
    now: datetime
    settings: ClusterSettings
    held: Held | None
    """The chips of slices of other workloads, and those that are reserved for their gangs; None: no limit counts."""
    silent: bool = False
    """Whether the relay is not heard, or the cluster is paused: the clock of holding stands still."""
    reservations: Mapping[CapacityPool, Reservation] = field(default_factory=dict)
    """What is known of those that its slices are of."""

    @property
    def limits(self) -> Limits:
        return self.settings.limits

    @property
    def policy(self) -> Policy:
        return self.settings.policy


def decided(case: Case) -> Gang:
    """Return how a gang stands from now on. The first row that holds counts.

    | the gang                                                       | then                                       |
    |----------------------------------------------------------------|--------------------------------------------|
    | each of its claims has a slice that stands or is used, or      | STANDS                                     |
    | needs none                                                     |                                            |
    | stands; only slices that cannot be read may be missing         | STANDS: as before                          |
    | waits, and is to be tried again later                          | WAITS: as before                           |
    | waits; some of its slices cannot be read                       | WAITS: which                               |
    | waits; one of its claims is refused as it is requested         | WAITS: which, and why                      |
    | waits; an operator holds or released one of its claims         | WAITS: which                               |
    | waits; it has more chips than a limit allows, or needs more    | WAITS: GANG_TOO_LARGE                      |
    | hosts than its reservation has as a whole                      |                                            |
    | waits; its chips do not fit beside those of others             | WAITS: how many are free                   |
    | waits; one before it in line lacks the same capacity           | WAITS: who                                 |
    | waits                                                          | FORMS                                      |
    | stood, or forms; has nothing, and its chips do not fit beside  | WAITS: how many are free                   |
    | those of others, and of gangs before it in line                |                                            |
    | stood, or forms; some of its Jobs run                          | FORMS: nothing of it is let go             |
    | forms, and never stood; one of its claims is refused as it is  | WAITS: which, and why; what it has goes    |
    | requested, or got none by an operator's word                   |                                            |
    | forms, and never stood; one before it lacks the same capacity  | WAITS: at once if it has nothing, else     |
    |                                                                | after `gang_yield_after`                   |
    | stood, or forms; slices were held for `gang_hold_for` while    | WAITS, and is tried again after a pause,   |
    | others could not be made, and cannot now; or for               | behind those that wait then                |
    | `gang_hold_at_most`                                            |                                            |
    | stood, or forms; has had nothing for `gang_hold_for`           | FORMS, behind those that wait: what it     |
    |                                                                | lacks may be there for them                |
    | stood, or forms                                                | FORMS                                      |
    """
    gang, now = case.gang, case.now
    if case.members.satisfied >= gang.claims:
        return replace(gang if gang.state is GangState.STANDS else _stands(gang, now), runs=_runs(case))
    if gang.state is GangState.STANDS and case.members.satisfied + len(case.members.unread) >= gang.claims:
        return gang
    if gang.waits:
        if (why := next(_whys(case), None)) is not None:
            return replace(gang, reason=why[0], message=why[1])
        return _timed(_forms(_untimed(gang), now), case)
    if not case.members.chips and (why := next(_no_room(_beside_those_before(case)), None)) is not None:
        return _waiting(gang, *why, case)
    gang = _timed(gang if gang.forms else _forms(gang, now), case)
    if case.members.used:
        return gang
    if not gang.ran and not case.silent and (never := _never(case.members)):
        let_go = "another claim of its gang gets no slice" if case.members.chips else ""
        return _waiting(gang, Reason.AWAITING_GANG, never, case, let_go)
    if _has_had_its_turn(gang, case):
        gang = replace(gang, since=now)
        case = replace(case, gang=gang)
    if (before := _yields_to(gang, case)) is not None:
        return _yielded(gang, before, case)
    return _let_go(gang, case) if _is_held_too_long(gang, case) else gang


def _runs(case: Case) -> bool:
    """Return whether some of its Jobs run, or left slices of it so lately that they may restart there."""
    restarting = case.now - case.limits.restart_grace
    left = ((each, it) for each in case.members.standing for it in each.current.hosts.departures)
    return bool(case.members.used) or any(it.at > restarting and each.is_of(it.user) for each, it in left)


def lacks_chips(case: Case, gang: Gang) -> bool:
    """Return whether a gang that was decided on so waits for chips alone, which others hold."""
    if not gang.waits or (gang.back_at is not None and case.now < gang.back_at) or _never(case.members):
        return False
    whys = [reason for reason, _ in _no_room(case)]
    return bool(whys) and Reason.GANG_TOO_LARGE not in whys


def in_line(case: Case, gang: Gang) -> InLine | None:
    """Return the place in line of a gang that was decided on so; None: it stands, and its pods came.

    Until they came, a slice that is lost is told by nothing that has the gang decided on again. Nothing is reserved for
    a gang that has nothing as none can be had: that may last for days.
    """
    if gang.state is GangState.STANDS and not case.members.standing:
        return None
    tries = case.members.chips or not case.members.lacks
    reserves, hold_for = gang.forms and tries and case.held is not None, _hold_for(gang, case)
    return InLine(
        workload=case.workload,
        namespace=case.namespace,
        workload_name=case.name,
        since=gang.since,
        chips=max(0, gang.chips - case.members.chips) if reserves else 0,
        lacks=case.members.lacks if gang.forms else (),
        holds_until=gang.held_since + hold_for if gang.forms and gang.held_since is not None else None,
    )


def _stands(gang: Gang, now: datetime) -> Gang:
    return replace(
        _untimed(gang), state=GangState.STANDS, state_since=now, ran=True, tries=0, let_go="", back_at=None, message=""
    )


def _forms(gang: Gang, now: datetime) -> Gang:
    lacks_since = now if gang.state is GangState.STANDS else gang.lacks_since
    forms = replace(gang, state=GangState.FORMS, state_since=now, let_go="", back_at=None, message="", yielded=False)
    return replace(forms, lacks_since=lacks_since)


def _untimed(gang: Gang) -> Gang:
    return replace(gang, held_since=None, stuck_since=None, stuck_for=timedelta(0))


def _whys(case: Case) -> Iterator[tuple[Reason, str]]:
    """Yield why a gang waits, the first reason first."""
    gang = case.gang
    if gang.back_at is not None and case.now < gang.back_at:
        yield gang.reason, gang.message
    if unread := case.members.unread:
        yield Reason.AWAITING_GANG, f"{_not_read(unread)}, so nothing is bought for the others"
    if never := _never(case.members):
        yield Reason.AWAITING_GANG, never
    yield from _no_room(case)
    if (before := _before(case, case.members.wants)) is not None:
        yield Reason.AWAITING_GANG, _behind(before, case, went_back=bool(gang.let_go))


def _never(members: Members) -> str:
    """Return which claim gets no slice however long the others are held, and why; empty: none."""
    if (refused := refused_for_good(members)) is not None:
        why = refused.claim.refusal.message if refused.claim.refusal is not None else refused.message
        return f"{refused.job.job_name} is refused, so nothing is bought for the others either: {why}"
    by_operator = withheld(members)
    return f"{by_operator}, so nothing is bought for the others either" if by_operator else ""


def _no_room(case: Case) -> Iterator[tuple[Reason, str]]:
    """Yield which limits of chips, or which reservation, a gang exceeds, by itself or beside others."""
    gang = case.gang
    for pool, hosts in case.members.of_reservations.items():
        if (beyond := beyond_reservation(case.reservations.get(pool), hosts, case.now)) is not None:
            yield Reason.GANG_TOO_LARGE, beyond
    for why in beyond_limits(GangSize(gang.claims, gang.chips), case.namespace, case.policy):
        yield Reason.GANG_TOO_LARGE, why
    if case.held is None:
        return
    held = {"chips_per_namespace": case.held.in_namespace, "chips_per_cluster": case.held.in_cluster}
    others = {"chips_per_namespace": _in_namespace(case), "chips_per_cluster": _in_cluster(case.held)}
    needs = f"{GangSize(gang.claims, gang.chips).needs} at once"
    for setting, most in case.policy.limits(case.namespace).items():
        if held[setting] + gang.chips > most:
            free = f"{max(0, most - held[setting])} of {most} are free"
            why = f"policy.{setting}: {needs}, and {free}: {others[setting]}. Nothing is bought until all fit"
            yield Reason.AWAITING_GANG, why


def _in_namespace(case: Case) -> str:
    """Return who holds chips of the namespace, as a clause: of others it is known how many, and which gangs form."""
    held = case.held.in_namespace if case.held is not None else 0
    forming = [each for each in case.line.values() if each.chips and each.namespace == case.namespace]
    names = sorted({each.workload_name for each in forming if each.workload != case.workload})
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    among = f" (gangs among them: {', '.join(names[:MOST_NAMES])}{more})" if names else ""
    return f"others of the namespace have {held}{among}"


def _in_cluster(held: Held) -> str:
    return f"others have {held.in_cluster}, {held.in_namespace} of them in this namespace"


def _beside_those_before(case: Case) -> Case:
    """Return the case without what is reserved for gangs behind this one in line: they give way."""
    if case.held is None:
        return case
    own = (case.gang.since, case.key)
    behind = {key: each for key, each in case.line.items() if (each.since, key) > own}
    before = {key: each for key, each in case.line.items() if key not in behind}
    in_namespace = case.held.in_namespace - reserved(behind, case.namespace)
    held = Held(in_namespace=in_namespace, in_cluster=case.held.in_cluster - reserved(behind))
    return replace(case, held=held, line=before)


def _before(case: Case, pools: Collection[str]) -> InLine | None:
    """Return the first gang before this in line that lacks capacity of these pools; None: there is none."""
    own = (case.gang.since, case.key)
    lacking = ((each.since, key, each) for key, each in case.line.items() if not set(pools).isdisjoint(each.lacks))
    return next((each for since, key, each in sorted(lacking, key=lambda it: it[:2]) if (since, key) < own), None)


def _named(other: InLine, case: Case) -> str:
    """Return a gang's workload by its name, if that is of the same namespace."""
    return other.workload_name if other.namespace == case.namespace else "a workload of another namespace"


def _first_of(before: InLine, case: Case) -> str:
    """Return the first capacity pool that one gang lacks and another is made of."""
    return next(each for each in before.lacks if each in case.members.wants | case.members.holds)


def _behind(before: InLine, case: Case, *, went_back: bool) -> str:
    """Return that a gang waits as another is before it in line; `went_back`: slices of it were let go for that."""
    first = f"{_named(before, case)}, which is before it in line, lacks {_first_of(before, case)}"
    elder = sum((each.since, key) < (case.gang.since, case.key) for key, each in case.line.items())
    if elder > 1:
        first = f"{first} ({elder} gangs of the cluster came before it)"
    return f"{first}: its slices that stood went back" if went_back else first


def _timed(gang: Gang, case: Case) -> Gang:
    """Return the gang with its clock: how long what stands is held while others cannot be made."""
    gang = replace(gang, runs=_runs(case))
    if case.members.used or not case.members.standing:
        return _untimed(gang)
    held_since = gang.held_since or case.now
    runs = case.members.stuck and not case.silent and not _is_free(case)
    if runs:
        return replace(gang, held_since=held_since, stuck_since=gang.stuck_since or case.now)
    made_since = case.members.made_since(gang.stuck_since or case.now)
    until = case.now if case.members.stuck or made_since is None else made_since
    return replace(gang, held_since=held_since, stuck_since=None, stuck_for=gang.held_for(until))


def _is_free(case: Case) -> bool:
    """Return whether holding what stands costs nothing, and keeps it from nobody."""
    wanted = any(not case.members.holds.isdisjoint(each.lacks) for key, each in case.line.items() if key != case.key)
    return case.members.costs_nothing and not wanted


def _yields_to(gang: Gang, case: Case) -> InLine | None:
    """Return the gang for which this one waits, as it is before it in line; None: it goes on."""
    if gang.ran or case.silent:
        return None
    if gang.held_since is None:
        return _before(case, case.members.wants) if case.members.chips == 0 else None
    return _before(case, case.members.holds) if case.now - gang.held_since >= case.limits.gang_yield_after else None


def _has_had_its_turn(gang: Gang, case: Case) -> bool:
    """Return whether a gang has lacked capacity for so long, without any slice, that others may try."""
    lacks = bool(case.members.lacks) and not case.members.chips and not case.silent
    return lacks and case.now - max(gang.since, gang.state_since) >= case.limits.gang_hold_for


def _yielded(gang: Gang, before: InLine, case: Case) -> Gang:
    let_go = f"{_named(before, case)}, which waits longer, lacks such" if case.members.standing else ""
    waits = _waiting(gang, Reason.AWAITING_GANG, _behind(before, case, went_back=bool(let_go)), case, let_go)
    return replace(waits, yielded=bool(let_go))


def _waiting(gang: Gang, reason: Reason, message: str, case: Case, let_go: str = "") -> Gang:
    """Return a gang that formed as it waits; `let_go`: why what it has goes, empty if it has nothing."""
    waits = replace(_untimed(gang), state=GangState.WAITS, state_since=case.now, runs=False)
    return replace(waits, reason=reason, message=message, let_go=let_go)


def _hold_for(gang: Gang, case: Case) -> timedelta:
    return gang.hold_for or case.limits.gang_hold_for


def _is_held_too_long(gang: Gang, case: Case) -> bool:
    """Return whether what stands is let go: as others cannot be made now, or never came. See `decided`."""
    if gang.held_since is None or case.silent or _is_free(case):
        return False
    too_long = gang.stuck_since is not None and gang.held_for(case.now) >= _hold_for(gang, case)
    return too_long or case.now - gang.held_since >= case.limits.gang_hold_at_most


def _let_go(gang: Gang, case: Case) -> Gang:
    """Return the gang whose slices were held for too long: they go, and it goes behind those that wait."""
    now, tries, members = case.now, gang.tries + 1, case.members
    back_at = now + pause_after(tries, case.key)
    held, cost = lasting(now - (gang.held_since or now)), spent(members.standing, case.settings, now)
    lacking = _lacking([*members.stuck, *members.made], members.unread)
    message = (
        f"{members.satisfied} of {gang.claims} slices stood for {held}{f' ({cost})' if cost else ''}, and {lacking}. "
        f"All were let go, and are tried again at {clock(back_at, now)}; if they are let go again, after about "
        f"{lasting(_pause(tries + 1))}"
    )
    waits = _waiting(gang, Reason.LET_GO_WITH_GANG, message, case, let_go=f"its gang was held for {held}")
    return replace(waits, since=now, back_at=back_at, tries=tries)


def _not_read(claims: Collection[ClaimId]) -> str:
    return f"the record of {' and of '.join(sorted(claims)[:2])} cannot be read"


def _lacking(others: list[SliceRecord], unread: Collection[ClaimId]) -> str:
    """Return what became of the slices that did not come: of the first of them, and how many others there are."""
    if not others:
        return _not_read(unread) if unread else "not all of the others came"
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    first = others[0]
    return f"{first.job.job_name}{more} did not come ({first.reason}: {first.message.rstrip('.')})"


def pause_after(tries: int, key: GangKey) -> timedelta:
    """Return how long a gang waits whose slices were held for too long so often in succession.

    It differs from gang to gang, so that those that gave up together do not come back together.
    """
    drawn = int.from_bytes(hashlib.sha256(f"{key} {tries}".encode()).digest()[:4]) / (1 << 32)
    return _pause(tries) * (1 + SPREAD * (2 * drawn - 1))


def _pause(tries: int) -> timedelta:
    return min(FIRST_PAUSE * (1 << min(tries - 1, 10)), LONGEST_PAUSE)
