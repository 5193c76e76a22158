"""Whether a slice that is let go is kept warm: closed, with nobody on it, for the next claim that fits. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from tpu_slices.domain.capacity.crossing import may_cross
from tpu_slices.domain.capacity.spares import not_needed
from tpu_slices.domain.model.capacity import Across, Warm
from tpu_slices.domain.model.clusters import ClusterSettings, Policy
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.observations import Observation, Running
from tpu_slices.domain.model.reasons import Phase, Reason
from tpu_slices.domain.model.slices import SliceId, SliceSpec
from tpu_slices.domain.model.texts import clock
from tpu_slices.domain.planning.costs import Price, price_of
from tpu_slices.domain.records.matching import offers
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.domain.records.warmth import Warmth
from tpu_slices.domain.records.workloads import WorkloadRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a setting keeps warm beside a slice, of what became so after it."""

    chips: int = 0
    usd_an_hour: float = 0.0


NOTHING_KEPT = Kept()
TOO_MANY = Kept(chips=10**12, usd_an_hour=10.0**12)
"""More are kept than are looked at: no limit has room."""
BEING_DELETED = frozenset(
    {Reason.CLOSING_HOSTS, Reason.DELETION_QUEUED, Reason.DELETION_POSTPONED, Reason.DELETION_STARTED}
)
"""The reasons of slices whose chips are free in some minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What is known beside a slice that goes."""

    settings: ClusterSettings
    own: WorkloadRecord | None
    """The workload that it is, or was, of."""
    beside: Kept = NOTHING_KEPT


def kept_warm(record: SliceRecord, seen: Observation, around: Around, now: datetime) -> Warmth | None:
    """Return how a slice that nobody uses is kept warm, or None if it goes on to its end.

    The first row that holds counts.

    | the slice                                                                  | is kept                      |
    |----------------------------------------------------------------------------|------------------------------|
    | no setting keeps those of its namespace, or the cluster is retired         | no                           |
    | serves no other claim (`matching.offers`)                                  | no                           |
    | is of a workload that is not on record, or only missing                    | no                           |
    | is of a gang that let its slices go: others wait for what it held, or it   | no                           |
    | was held for too long                                                      |                              |
    | does not run, lacks labels or hosts, or has one that does not work, or is  | no                           |
    | about to be maintained; pods of its last Job did not run there             | no                           |
    | was not deleted although that was asked for                                | no                           |
    | was kept for the whole time, or its chips are needed (`Warmth.ended`)      | no                           |
    | exceeds a limit of the setting, with what became warm later                | no                           |
    | else                                                                       | until the time is over, or a |
    |                                                                            | host is about to be          |
    |                                                                            | maintained                   |

    So of too many those go first that have been warm longest.
    """
    settings, own = around.settings, around.own
    warm, kept_by = settings.warm_in(record.owner.namespace)
    spec, before = record.made_as, record.current.warm
    if warm is None or spec is None or settings.retired is not None or offers(record) is None:
        return None
    if own is None or own.state is WorkloadState.MISSING or not _is_sound(record, seen, spec, now):
        return None
    gang = own.gang(record.replicated_job)
    if gang is not None and gang.waits and gang.let_go:
        return None
    since = before.since if before is not None else now
    if now >= since + warm.lasts or (before is not None and before.ended):
        return None
    price = price_of(spec, settings)
    if not _fits(spec, price, warm, around.beside):
        return None
    cents = round(100 * (price.usd_per_hour or 0))
    announced = record.current.hosts.announced
    until = min(since + warm.lasts, (announced and announced.near_from) or since + warm.lasts)
    return Warmth(since=since, until=until, kept_by=kept_by, cents_an_hour=cents)


def _is_sound(record: SliceRecord, seen: Observation, spec: SliceSpec, now: datetime) -> bool:
    hosts, current = record.current.hosts, record.current
    if not isinstance(seen, Running) or seen.lacking or seen.awaiting:
        return False
    if current.refused or current.hindered is not None or hosts.leave_soon(now):
        return False
    used_last = next((each.reason for each in reversed(record.transitions) if each.phase is Phase.READY), None)
    return min(hosts.joined, hosts.working) >= spec.hosts and used_last is not Reason.PODS_NOT_RUNNING


def _fits(spec: SliceSpec, price: Price, warm: Warm, beside: Kept) -> bool:
    """Return whether a slice fits the limits; what has no known price fits no limit of dollars."""
    if warm.most_chips is not None and beside.chips + spec.chips > warm.most_chips:
        return False
    if warm.most_usd_an_hour is None or price.reserved:
        return True
    dollars = price.usd_per_hour
    return dollars is not None and beside.usd_an_hour + dollars <= warm.most_usd_an_hour


def is_limited(record: SliceRecord, settings: ClusterSettings) -> bool:
    """Return whether the setting that keeps a slice limits how many."""
    warm, _ = settings.warm_in(record.owner.namespace)
    return warm is not None and not (warm.most_chips is None and warm.most_usd_an_hour is None)


def kept_with(record: SliceRecord, warm: Iterable[SliceRecord], settings: ClusterSettings) -> tuple[SliceRecord, ...]:
    """Return the other slices that are warm by the same setting, the one that has been so longest first."""
    _, kept_by = settings.warm_in(record.owner.namespace)
    others = [each for each in warm if each.id != record.id and is_warm(each)]
    same = [each for each in others if settings.warm_in(each.owner.namespace)[1] == kept_by]
    return tuple(sorted(same, key=_order))


def is_warm(record: SliceRecord) -> bool:
    return record.reason is Reason.WARM and record.current.warm is not None and not record.current.warm.ended


def kept_after(record: SliceRecord, others: Iterable[SliceRecord], now: datetime) -> Kept:
    """Return what of other slices that are warm became so after this one, which is or may become it now."""
    since = record.current.warm.since if record.current.warm is not None else now
    later = [each for each in others if _order(each) > (since, record.id)]
    chips = sum(each.made_as.chips for each in later if each.made_as is not None)
    cents = sum(each.current.warm.cents_an_hour for each in later if each.current.warm is not None)
    return Kept(chips=chips, usd_an_hour=cents / 100)


def _order(record: SliceRecord) -> tuple[datetime, str]:
    """Return since when a slice has been warm; of two at once, the one whose name comes first is the older."""
    since = record.current.warm.since if record.current.warm is not None else record.since
    return since, record.id


def told(warmth: Warmth, record: SliceRecord, settings: ClusterSettings, now: datetime) -> str:
    """Return what a slice that is kept warm says."""
    warm, _ = settings.warm_in(record.owner.namespace)
    if warm is not None and warm.across is Across.WORKLOAD:
        whom = f"Job of {record.owner.kind} {record.owner.name}"
    elif warm is not None and warm.is_for_all and record.made_as is not None and record.made_as.crosses:
        whom = f"slice, of namespace {record.owner.namespace} or another one"
    else:
        whom = f"slice of namespace {record.owner.namespace}"
    until = f"until {clock(warmth.until, now)} for the next {whom}"
    return f"Kept warm {until} ({_price(record, settings)}).{_maintenance(record, now)}"


def spare_told(record: SliceRecord, settings: ClusterSettings, now: datetime) -> str:
    """Return what a spare says that stands."""
    whom = f"the next slice of namespace {record.owner.namespace}"
    return f"A spare for {whom} ({_price(record, settings)}).{_maintenance(record, now)}"


def _maintenance(record: SliceRecord, now: datetime) -> str:
    """Return that Google announces maintenance of the hosts of a slice; empty: it does not."""
    announced = record.current.hosts.announced
    if announced is None or announced.begins is None or announced.near_from is None:
        return ""
    begins, given = clock(announced.begins, now), clock(announced.near_from, now)
    return f" Google has announced maintenance of its hosts from {begins}: nobody is given it from {given}."


def _price(record: SliceRecord, settings: ClusterSettings) -> str:
    price = price_of(record.made_as, settings) if record.made_as is not None else None
    if price is None or (price.usd_per_hour is None and not price.reserved):
        return "at an unknown price"
    return "paid with its reservation" if price.reserved else f"{price.usd_per_hour:,.2f} dollars an hour"


def may_get(claim: SliceRecord, slice_: SliceRecord, settings: ClusterSettings) -> bool:
    """Return whether a claim may get a slice that is let go, as the setting says, or a spare."""
    if claim.owner.namespace != slice_.owner.namespace:
        return is_warm(slice_) and may_cross(claim, slice_, settings)
    warm, _ = settings.warm_in(slice_.owner.namespace)
    same = claim.owner.uid == slice_.owner.uid or slice_.owner.kind.is_spare
    return same or warm is None or warm.across is not Across.WORKLOAD


@dataclass(frozen=True, slots=True)
class Needed:
    """The chips for which somebody waits in a namespace."""

    chips: int
    """Of all who wait."""
    least: int
    """Of the one who needs the fewest: with fewer nobody is served."""
    held: int
    """Those that the namespace holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Short:
    """How many chips lack for those who wait for them: so many lie beyond limits."""

    needed: Mapping[str, Needed]
    """By namespace."""
    in_namespaces: Mapping[str, int]
    """None are missing where the number is not above zero."""
    in_cluster: int = 0

    def __bool__(self) -> bool:
        return any(chips > 0 for chips in (self.in_cluster, *self.in_namespaces.values()))


def short_of(needed: Mapping[str, Needed], in_cluster: int, policy: Policy) -> Short:
    """Return how many chips lack in namespaces that need so many more than they hold, and in the cluster in all."""
    lacks = {}
    for namespace, each in needed.items():
        most = policy.allowed(namespace).chips_per_namespace
        lacks[namespace] = 0 if most is None else each.held + each.chips - most
    most = policy.chips_per_cluster
    total = sum(each.chips for each in needed.values())
    return Short(needed=needed, in_namespaces=lacks, in_cluster=0 if most is None else in_cluster + total - most)


def in_the_way(short: Short, releasing: Iterable[SliceRecord]) -> tuple[SliceRecord, ...]:
    """Return which slices are kept no longer, since their chips are needed, and serve somebody who waits.

    Those that have been warm longest go first, then the oldest spares. `releasing`: the slices of the cluster that go,
    and spares. The chips of those that are being deleted will be free without that.
    """
    every = [*releasing]
    freed = [each for each in every if each.current.delete_requested_at is not None or _is_ended(each)]
    spare = sorted(filter(_is_kept_spare, every), key=lambda each: (each.since, each.id))
    kept = [*sorted(filter(is_warm, every), key=_order), *spare]
    served = _served(short, {each.id: each for each in (*freed, *kept)}.values())
    lacks, in_cluster = Counter[str](served.in_namespaces), served.in_cluster
    ended = dict[SliceId, SliceRecord]()
    for each in freed:
        lacks[each.owner.namespace] -= each.chips_bought
        in_cluster -= each.chips_bought
    for each in kept:
        if lacks[each.owner.namespace] > 0:
            ended[each.id] = each
            lacks[each.owner.namespace] -= each.chips_bought
            in_cluster -= each.chips_bought
    for each in kept:
        if in_cluster > 0 and each.id not in ended:
            ended[each.id] = each
            in_cluster -= each.chips_bought
    return tuple(ended.values())


def _served(short: Short, free: Iterable[SliceRecord]) -> Short:
    """Return what lacks for those who would be served if the chips of all of these slices were free."""
    chips = Counter[str]()
    for each in free:
        chips[each.owner.namespace] += each.chips_bought
    needed = {}
    for namespace, waiting in short.needed.items():
        room = waiting.chips - max(0, short.in_namespaces[namespace] - chips[namespace])
        if room >= waiting.least:
            needed[namespace] = room
    in_cluster = short.in_cluster - sum(it.chips - needed.get(name, 0) for name, it in short.needed.items())
    room = sum(needed.values()) - max(0, in_cluster - chips.total())
    if not needed or room < min(short.needed[namespace].least for namespace in needed):
        needed, in_cluster = {}, 0
    lacks = {namespace: lacks for namespace, lacks in short.in_namespaces.items() if namespace in needed}
    return Short(needed=short.needed, in_namespaces=lacks, in_cluster=in_cluster)


def _is_kept_spare(record: SliceRecord) -> bool:
    return record.reason is Reason.SPARE and record.wanted and not record.hold


def _is_ended(record: SliceRecord) -> bool:
    """Return whether a slice is kept no longer, since its chips are needed, or as a spare."""
    if record.owner.kind.is_spare:
        return not record.wanted
    return record.current.warm is not None and bool(record.current.warm.ended)


def kept_no_longer(record: SliceRecord) -> SliceRecord:
    """Return a slice that is kept no longer, since its chips are needed."""
    why = "its chips are needed"
    if record.owner.kind.is_spare:
        return not_needed(record, why)
    return record.with_current(warm=record.current.warm and replace(record.current.warm, ended=why))


def beyond_limits(
    record: SliceRecord, others: Iterable[SliceRecord], settings: ClusterSettings
) -> tuple[SliceRecord, ...]:
    """Return which slices exceed a limit of the setting that keeps them, since another one is kept, too."""
    every = [record, *others]
    found = []
    for each in every:
        warm, _ = settings.warm_in(each.owner.namespace)
        spec = each.made_as
        if warm is None or spec is None:
            continue
        beside = kept_after(each, (it for it in every if it.id != each.id), each.since)
        if not _fits(spec, price_of(spec, settings), warm, beside):
            found.append(each)
    return tuple(found)
