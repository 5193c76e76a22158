"""The port `BookingAdviser` on Compute Engine's REST API."""

from __future__ import annotations

from typing import Any

from tpu_slices.adapters.reservations import COMPUTE
from tpu_slices.adapters.rest import ask
from tpu_slices.domain.model.bookings import BookingAdvice, BookingAsked
from tpu_slices.ports.errors import Permanent, Temporary
from tpu_slices.wire.capacity.bookings import advice_of, body_of

TIMEOUT = 5.0
"""Seconds for one call: a person waits for it, and it changes nothing."""


class RestBookings:
    """Asks when hosts could be booked, with one call."""

    def __init__(self, session: Any, api: str = COMPUTE) -> None:
        self._session, self._api = session, api

    def advise(self, asked: BookingAsked) -> BookingAdvice:
        """Return when and where a booking could be, as the port says."""
        url = f"{self._api}/projects/{asked.project}/regions/{asked.region}/advice/calendarMode"
        try:
            answer = ask(self._session, "Compute Engine", "POST", url, seconds=TIMEOUT, json=body_of(asked))
            return advice_of(answer)
        except ValueError as unknown:
            raise Temporary(f"Compute Engine: {unknown}") from unknown
        except Permanent as refused:
            raise Permanent(f"it needs compute.advice.calendarMode ({refused})") from refused
