"""What knows when hosts could be booked. A protocol."""

from __future__ import annotations

from typing import Protocol

from tpu_slices.domain.model.bookings import BookingAdvice, BookingAsked


class BookingAdviser(Protocol):
    """Compute Engine's advice on bookings in calendar mode."""

    def advise(self, asked: BookingAsked) -> BookingAdvice:
        """Return when and where a booking could be. Raise Permanent if nobody may ask, Temporary if nobody answers."""
