"""The port `ReservationReader` on Compute Engine's REST API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tpu_slices.adapters.rest import Missing, ask
from tpu_slices.domain.capacity.reservations import MOST_BLOCKS, nearest
from tpu_slices.domain.records.reservations import BlockSeen, ReservationPlace, ReservationSeen, ReservationState
from tpu_slices.ports.errors import Permanent

COMPUTE = "https://compute.googleapis.com/compute/v1"
MOST_DEGRADED = 4
"""The most degraded blocks of which the broken hosts are counted: one call for each."""
_PAGES = 10
"""The most pages of a list that are read."""
_THERE = {"READY", "UPDATING"}
_NO_MORE = {"DECLINED", "CANCELLED", "FAILED"}
_NOT_YET: Mapping[str, str] = {
    "DRAFTING": "its booking was not sent to Google yet",
    "PENDING_APPROVAL": "its booking is not approved yet",
    "PENDING_AMENDMENT_APPROVAL": "a change of its booking is not approved yet",
    "PROVISIONING": "Google is making it",
}

Json = Mapping[str, Any]


class RestReservations:
    """Reads a reservation with one call; its blocks, if they are needed, and what is booked, if it is not there."""

    def __init__(self, session: Any, api: str = COMPUTE) -> None:
        self._session, self._api = session, api

    def read(self, place: ReservationPlace) -> ReservationSeen:
        """Return how a reservation is, as the port says."""
        try:
            found = self._ask(place, f"reservations/{place.name}")
        except Missing:
            return self._booked(place)
        except Permanent as refused:
            return ReservationSeen(
                state=ReservationState.UNREADABLE, detail=f"it needs compute.reservations.get ({refused})"
            )
        seen, health = _seen(found), found.get("resourceStatus", {}).get("healthInfo", {})
        if place.block or health.get("healthStatus") == "DEGRADED":
            return self._with_blocks(seen, place)
        return seen

    def _ask(self, place: ReservationPlace, what: str, **parameters: str) -> Json:
        url = f"{self._api}/projects/{place.project}/zones/{place.zone}/{what}"
        answer: Json = ask(self._session, "Compute Engine", "GET", url, params=parameters)
        return answer

    def _list(self, place: ReservationPlace, what: str) -> list[Json]:
        items: list[Json] = []
        token: dict[str, str] = {}
        for _ in range(_PAGES):
            page = self._ask(place, what, **token)
            items += page.get("items", ())
            if not page.get("nextPageToken"):
                break
            token = {"pageToken": page["nextPageToken"]}
        return items

    def _with_blocks(self, seen: ReservationSeen, place: ReservationPlace) -> ReservationSeen:
        """Return it with its blocks, or as one block of it alone is; without them if they may not be read."""
        above = f"reservations/{place.name}/reservationBlocks"
        try:
            listed = self._list(place, above)
            if place.block:
                listed = [each for each in listed if each["name"] == place.block]
            parts: dict[str, list[Json]] = {}
            bad = [each["name"] for each in listed if place.sub_block or _is_degraded(each)]
            for name in bad[:MOST_DEGRADED]:
                parts[name] = self._list(place, f"{above}/{name}/reservationSubBlocks")
        except Permanent:
            return replace(seen, count=None) if place.block else seen
        if place.sub_block:
            found = [each for each in parts.get(place.block, ()) if each["name"] == place.sub_block]
            return _of_parts(seen, [_block(each, [each]) for each in found], place)
        return _of_parts(seen, [_block(each, parts.get(each["name"], ())) for each in listed], place)

    def _booked(self, place: ReservationPlace) -> ReservationSeen:
        """Return what is booked under the name of a reservation that is not there, or that nothing is."""
        try:
            bookings = self._list(place, "futureReservations")
        except Permanent:
            bookings = []
        mine = [each for each in bookings if _makes(each, place.name) and _status(each) not in _NO_MORE]
        if mine:
            return _pending(min(mine, key=lambda each: str(each.get("timeWindow", {}).get("startTime", ""))))
        try:
            names = [each["name"] for each in self._list(place, "reservations")]
        except Permanent:
            names = []
        names += [each["reservationName"] for each in bookings if each.get("reservationName")]
        return ReservationSeen(state=ReservationState.MISSING, nearest=nearest(place.name, set(names)))


def _seen(found: Json) -> ReservationSeen:
    specific, status = found.get("specificReservation"), str(found.get("status", ""))
    state = ReservationState.READY if status in _THERE else ReservationState.PENDING
    if status == "DELETING":
        state = ReservationState.ENDED
    return ReservationSeen(
        state=state,
        ends_at=_end(found),
        machine=(specific or {}).get("instanceProperties", {}).get("machineType", ""),
        scheduling=str(found.get("schedulingType", "")),
        count=int(specific.get("count", 0)) if specific else None,
        in_use=int(specific.get("inUseCount", 0)) if specific else 0,
        detail="" if state is ReservationState.READY else f"its status is {status}",
    )


def _end(found: Json) -> datetime | None:
    if found.get("deleteAtTime"):
        return datetime.fromisoformat(found["deleteAtTime"])
    seconds = found.get("deleteAfterDuration", {}).get("seconds")
    if not seconds or not found.get("creationTimestamp"):
        return None
    return datetime.fromisoformat(found["creationTimestamp"]) + timedelta(seconds=int(seconds))


def _is_degraded(block: Json) -> bool:
    return bool(block.get("healthInfo", {}).get("healthStatus") == "DEGRADED")


def _block(block: Json, parts: list[Json] | tuple[()]) -> BlockSeen:
    return BlockSeen(
        name=str(block["name"]),
        count=int(block.get("count", 0)),
        in_use=int(block.get("inUseCount", 0)),
        degraded=sum(int(each.get("healthInfo", {}).get("degradedHostCount", 0)) for each in parts),
    )


def _of_parts(seen: ReservationSeen, parts: list[BlockSeen], place: ReservationPlace) -> ReservationSeen:
    """Return a reservation with its blocks; if only a part of it may be used, with the numbers of that."""
    degraded = sum(each.degraded for each in parts)
    if not place.block:
        return replace(seen, blocks=tuple(parts[:MOST_BLOCKS]), degraded=degraded)
    if not parts:
        return replace(seen, state=ReservationState.MISSING)
    count, in_use = sum(each.count for each in parts), sum(each.in_use for each in parts)
    return replace(seen, count=count, in_use=in_use, blocks=tuple(parts[:MOST_BLOCKS]), degraded=degraded)


def _status(booking: Json) -> str:
    return str(booking.get("status", {}).get("procurementStatus", ""))


def _makes(booking: Json, name: str) -> bool:
    """Return whether a future reservation makes, or made, a reservation of this name, as far as that is known."""
    made = booking.get("status", {}).get("autoCreatedReservations", ())
    prefix = booking.get("namePrefix", "")
    named = booking.get("reservationName") == name or any(link.rpartition("/")[2] == name for link in made)
    return named or bool(prefix and name.startswith(prefix))


def _pending(booking: Json) -> ReservationSeen:
    window, sku = booking.get("timeWindow", {}), booking.get("specificSkuProperties", {})
    ends = booking.get("autoCreatedReservationsDeleteTime") or window.get("endTime")
    count = sku.get("totalCount")
    return ReservationSeen(
        state=ReservationState.PENDING,
        starts_at=datetime.fromisoformat(window["startTime"]) if window.get("startTime") else None,
        ends_at=datetime.fromisoformat(ends) if ends else None,
        machine=sku.get("instanceProperties", {}).get("machineType", ""),
        count=int(count) if count is not None else None,
        detail=_NOT_YET.get(_status(booking), ""),
    )
