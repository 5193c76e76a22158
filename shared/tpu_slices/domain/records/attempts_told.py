"""How many attempts at slices failed so far, as text. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType

from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.texts import clock
from tpu_slices.domain.model.vendors import Vendor
from tpu_slices.domain.records.awaited import Shortage
from tpu_slices.domain.records.slices import SliceRecord

_ENDED: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.STOCKOUT: "out of stock",
        Reason.QUOTA_EXCEEDED: "beyond the quota",
        Reason.RESOURCES_EXHAUSTED: "out of stock or beyond the quota",
        Reason.RESERVATION_UNAVAILABLE: "not provided by the reservation",
        Reason.RESERVATION_AWAITED: "without a reservation that can be used",
        Reason.IP_SPACE_EXHAUSTED: "out of addresses",
        Reason.HOSTS_NOT_USABLE: "without all hosts",
        Reason.INVALID_CONFIGURATION: "rejected",
    }
)
"""How an attempt ended, by the reason of its slice after it; all others just failed."""
_RAN_OUT: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.STOCKOUT: "{zone} was out of {what}",
        Reason.QUOTA_EXCEEDED: "The project's quota did not allow {what} in {zone}",
        Reason.RESOURCES_EXHAUSTED: "{zone} was out of {what}, or the project of quota for them,",
        Reason.RESERVATION_UNAVAILABLE: "The reservation {reservation} could not provide {what} in {zone}",
        Reason.RESERVATION_AWAITED: "The reservation {reservation} was not there, or could not be used yet,",
    }
)
"""What a shortage is, by the reason of the slice that met it."""


def failed(records: Collection[SliceRecord]) -> str:
    """Return how many attempts failed so far, and of what, as in `3 attempts so far, out of stock 3 times`.

    Of several slices: the fewest and the most of one.
    """
    fewest, most = _bounds(sum(record.claim.setbacks.values()) for record in records)
    if not most:
        return "no attempt so far"
    number = f"{fewest} to {most}" if fewest < most else str(most)
    return f"{number} attempt{'' if number == '1' else 's'} so far, {_by_reason(records)}"


def ahead(records: Collection[SliceRecord]) -> str:
    """Return the number of the attempt that is being made after others failed; empty: it is the first."""
    fewest, most = _bounds(sum(record.claim.setbacks.values()) for record in records)
    if not most:
        return ""
    number = f"{fewest + 1} to {most + 1}" if fewest < most else str(most + 1)
    return f"attempt {number}, {_by_reason(records)}"


def lasts(records: Collection[SliceRecord], vendor: Vendor, now: datetime) -> str:
    """Return until when attempts that are being made may take; empty: they have no end."""
    ends = [end for record in records if (end := _end(record, vendor)) is not None]
    if not ends:
        return ""
    end = max(ends)
    if now < end:
        return f"this one may take until {clock(end, now)}"
    return f"{vendor} usually reports a stockout before {clock(end, now)}, and has not yet"


def ran_out(record: SliceRecord, shortage: Shortage) -> str:
    """Return what ran out when, so that a slice waits for its turn to try."""
    spec, text = record.spec, _RAN_OUT.get(shortage.reason, _RAN_OUT[Reason.STOCKOUT])
    reserved = spec.capacity.reservation if spec else None
    said = text.format(what=shortage.what, zone=spec.zone if spec else "The zone", reservation=reserved)
    if shortage.behind:
        return f"{said} at {shortage.at:%H:%M} UTC: waits behind {shortage.behind}"
    again = f", next at {shortage.again_at:%H:%M} UTC" if shortage.again_at is not None else ""
    return f"{said} at {shortage.at:%H:%M} UTC: one slice at a time tries{again}, and this one waits for its turn"


def _end(record: SliceRecord, vendor: Vendor) -> datetime | None:
    """Return when the vendor gives up the current attempt at the latest; None: it goes on, as for flex-start."""
    flexible = record.made_as is not None and record.made_as.is_flex_start
    if record.current.create_requested_at is None or vendor.gives_up_after is None or flexible:
        return None
    return record.current.create_requested_at + vendor.gives_up_after


def _by_reason(records: Collection[SliceRecord]) -> str:
    reasons = dict.fromkeys(reason for record in records for reason in record.claim.setbacks)
    return ", ".join(
        f"{_ENDED.get(reason, 'failed')} {_times(*_bounds(record.claim.setbacks.get(reason, 0) for record in records))}"
        for reason in reasons
    )


def _times(fewest: int, most: int) -> str:
    if fewest < most:
        return f"{fewest} to {most} times"
    return "once" if most == 1 else f"{most} times"


def _bounds(numbers: Iterable[int]) -> tuple[int, int]:
    found = sorted(numbers)
    return found[0], found[-1]
