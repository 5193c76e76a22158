"""Spares: slices that are made beside demand, as the settings ask for. Pure.

Each spare has a seat: a claim without pods, which makes its slice as any claim does. A claim that waits gets that slice
at once, and the seat has its next one. Here: which seats there are, and whether a spare may be made now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tpu_slices.domain.model.capacity import Spare
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.slices import ClaimId, Owner, OwnerKind, SliceSpec, WorkloadJob, WorkloadUid, claim_id
from tpu_slices.domain.model.texts import digest
from tpu_slices.domain.planning.costs import Price, price_of
from tpu_slices.domain.planning.policy import Held
from tpu_slices.domain.records.gangs import InLine
from tpu_slices.domain.records.queues import capacity_pool_of
from tpu_slices.domain.records.slices import Desire, SliceRecord

MOST_SPARES = 60
"""The most spares of a cluster: their records are read each minute."""

STOOD_AFTER = timedelta(hours=1)
"""How long a spare has to stand until it counts that it was made, rather than the failures before."""


@dataclass(frozen=True, slots=True)
class Seat:
    """The place of one spare."""

    job: WorkloadJob
    """By which its slices are named."""
    spare: Spare


def seats_of(settings: ClusterSettings) -> Mapping[ClaimId, Seat]:
    """Return the seats of all spares that the settings ask for, by their claims."""
    if settings.retired is not None:
        return {}
    seats = (
        Seat(_job(spare, namespace, index, settings), spare)
        for spare in settings.spares
        for namespace in spare.namespaces
        for index in range(spare.count)
    )
    return {claim_id(seat.job): seat for seat in seats}


def _job(spare: Spare, namespace: str, index: int, settings: ClusterSettings) -> WorkloadJob:
    place = settings.places[spare.place]
    where = (spare.place, place.zones[0], str(place.capacity), place.reservation)
    what = (spare.accelerator, spare.topology, *where, spare.node_selector, namespace)
    owner = Owner(
        kind=OwnerKind.SPARE,
        namespace=namespace,
        name=f"spare-{spare.place}-{spare.topology}",
        uid=WorkloadUid(f"spare-{digest(repr(what)):x}"),
    )
    return WorkloadJob(cluster=settings.cluster, owner=owner, replicated_job="", job_index=index)


def not_needed(record: SliceRecord, why: str) -> SliceRecord:
    return replace(record, desire=Desire.ABSENT, desire_message=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """What comes before a spare that would be made."""

    slots: bool = False
    """Somebody waits for one of the cluster's operations alone, or for such capacity."""
    chips: bool = False
    """Somebody of its namespace waits for chips."""
    chips_elsewhere: int = 0
    """The most chips that a claim of another namespace waits for, or is tried again for; 0: none is."""
    chips_tried: int = 0
    """The most chips for which a claim of its namespace is tried again, as capacity ran out, wherever; 0: none is."""
    gangs: bool = False
    """A gang waits for such capacity, or for chips that may be the same (`waits_for_such`)."""
    capacity: bool = False
    """A claim waits for such capacity."""
    making: int = 0
    """How many other spares are being made."""
    unpinned: bool = False
    """Nothing keeps pods on the hosts that are meant for them, so that any might come to a spare."""
    unheard: bool = False
    """The relay is silent, or does not know what keeps them there; nor who waits."""
    usd_an_hour: float = 0.0
    """What all other spares cost."""


def failures_of(record: SliceRecord, now: datetime) -> int:
    """Return how many failures of a spare that stands still count: all of them, until it stood for long.

    So one that goes soon after it was made, as Google is about to maintain its hosts, is made anew less and less often.
    """
    stood = record.reason is Reason.SPARE and now - record.since >= STOOD_AFTER
    return 0 if stood else record.claim.failures


def waits_for_such(line: Iterable[InLine], record: SliceRecord, settings: ClusterSettings) -> bool:
    """Return whether a gang that does not stand comes before a spare.

    | the gang                                                                         | comes first |
    |----------------------------------------------------------------------------------|-------------|
    | lacks capacity of the same kind                                                  | yes         |
    | waits for chips, as none are reserved for it: in its namespace, or in another    | yes         |
    | one where the cluster has a limit, too                                           |             |
    | else: what is reserved for it counts as held                                     | no          |
    """
    pool = capacity_pool_of(record.spec) if record.spec is not None else None
    shared = settings.policy.chips_per_cluster is not None
    return any(
        pool in each.lacks or (not each.chips and (shared or each.namespace == record.owner.namespace)) for each in line
    )


def why_not_now(spec: SliceSpec, namespace: str, first: First, held: Held | None, settings: ClusterSettings) -> str:
    """Return why a spare is not made now, whatever capacity is free; empty: it may be. The first row counts.

    | beside it                                                        | it waits                                 |
    |------------------------------------------------------------------|------------------------------------------|
    | an operation waits for a slot alone; a claim or a gang waits for | until none does                          |
    | such capacity, or for chips that may be the same                 |                                          |
    | a claim is tried again elsewhere, whose chips would not fit      | until it is not, or they would           |
    | beside it into a limit                                           |                                          |
    | others are being made, with half of the cluster's operations     | until one is made                        |
    | the relay is silent, or does not say what pins pods              | until it is heard                        |
    | neither the admission policy nor the webhook pins pods           | until one does                           |
    | all spares would cost more than they may, or its price is not    | until others cost less, or the settings  |
    | known where there is such a limit                                | say otherwise                            |
    """
    if first.slots:
        return "Operations of others wait for a slot, and come first."
    if first.chips or (held is not None and _leaves_too_little(spec, namespace, first, held, settings)):
        return "Claims that wait for chips come first."
    if first.gangs:
        return "Gangs that wait for their slices come first."
    if first.capacity:
        return f"Claims that wait for {spec.accelerator} as {spec.how} come first."
    if first.making >= max(1, settings.limits.operations // 2):
        return "Other spares are being made, which have at most half of the cluster's operations."
    if first.unheard:
        return "The relay is silent, or does not say yet whether anything pins pods to slices."
    if first.unpinned:
        return "Nothing pins pods to slices: apply the admission policy or the webhook, or any pod may come to a spare."
    return _too_dear(price_of(spec, settings), first, settings.spares_most_usd_an_hour)


def _leaves_too_little(spec: SliceSpec, namespace: str, first: First, held: Held, settings: ClusterSettings) -> bool:
    """Return whether claims that wait, or are tried again, would exceed a limit of chips beside a spare."""
    limits = (
        (settings.policy.allowed(namespace).chips_per_namespace, held.in_namespace, first.chips_tried),
        (settings.policy.chips_per_cluster, held.in_cluster, max(first.chips_tried, first.chips_elsewhere)),
    )
    return any(most is not None and asked > 0 and most - others - spec.chips < asked for most, others, asked in limits)


def _too_dear(price: Price, first: First, most: float | None) -> str:
    if most is None or price.reserved:
        return ""
    if price.usd_per_hour is None:
        return "spares_most_usd_an_hour: its price is not known: add it to catalogue.prices."
    dollars = first.usd_an_hour + price.usd_per_hour
    if dollars <= most:
        return ""
    return (
        f"spares_most_usd_an_hour: with it all spares cost {dollars:,.2f} dollars an hour, and at most {most:,.2f} are "
        "allowed."
    )


UNPINNED = "nothing pins pods to slices any more, so that any pod might come to it"
BEYOND = "with it all spares cost more than spares_most_usd_an_hour"


def beyond_limit(seats: Iterable[SliceRecord], settings: ClusterSettings) -> tuple[SliceRecord, ...]:
    """Return the spares that exceed the limit of dollars, with all that were made before them and do not.

    So the newest go, none of them would fit beside those that stay, and none is made again. One whose price is not
    known exceeds any limit.
    """
    most = settings.spares_most_usd_an_hour
    if most is None:
        return ()
    dollars, beyond = 0.0, []
    for each in sorted(seats, key=lambda it: (it.current.create_requested_at or it.since, it.id)):
        if not each.chips_bought or each.made_as is None:
            continue
        price = price_of(each.made_as, settings)
        if price.reserved:
            continue
        if price.usd_per_hour is None or dollars + price.usd_per_hour > most:
            beyond.append(each)
        else:
            dollars += price.usd_per_hour
    return tuple(beyond)


def usd_an_hour(record: SliceRecord, others: Iterable[SliceRecord], settings: ClusterSettings) -> float:
    """Return what the slices of other seats cost that stand, or may still come; of a reservation nothing."""
    bought = (each for each in others if each.last_claim != record.last_claim and each.chips_bought and each.made_as)
    prices = (price_of(each.made_as, settings).usd_per_hour for each in bought if each.made_as is not None)
    return sum(price or 0.0 for price in prices)
