"""Texts: how long they may be, by what number they are compared, and how durations are written and read."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime, timedelta

MESSAGE_CHARACTERS = 1_000
"""The most characters of a message that is stored: a record keeps one for each of its last transitions."""
_UNITS = {"day": 86_400, "hour": 3_600, "minute": 60}


def shortened(text: str, most: int = MESSAGE_CHARACTERS) -> str:
    """Return the text, or its beginning with dots at the end."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


DIGEST_BITS = 48
"""Firestore adds up such numbers without loss."""


def digest(text: str) -> int:
    """Return a number of DIGEST_BITS by which texts are compared."""
    return int.from_bytes(hashlib.sha256(text.encode(errors="surrogatepass")).digest()[: DIGEST_BITS // 8], "big")


def clock(at: datetime, now: datetime) -> str:
    """Return a time to the minute, with its date if that is not today's."""
    return f"{at:%H:%M} UTC" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M} UTC"


def duration(length: timedelta) -> str:
    """Return a duration in its largest whole unit, as in `7 days`."""
    seconds = int(length.total_seconds())
    unit, size = next(((unit, size) for unit, size in _UNITS.items() if seconds % size == 0), ("second", 1))
    return f"{seconds // size} {unit}{'' if seconds == size else 's'}"


def lasting(length: timedelta) -> str:
    """Return about how long something took, as in `45 s`, `41 min` or `3 h 20 min`."""
    seconds = max(0, round(length.total_seconds()))
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


_AMOUNT = re.compile(r"(\d+(?:\.\d+)?) ?([smhd])")
_LETTERS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def as_duration(value: object) -> timedelta:
    """Return a duration that is written as `90s`, `5m`, `1.5h` or `2d`, or in seconds. Raise ValueError."""
    try:
        match value:
            case bool():
                pass
            case int() | float():
                return timedelta(seconds=value)
            case str() if amount := _AMOUNT.fullmatch(value.strip()):
                return timedelta(**{_LETTERS[amount[2]]: float(amount[1])})
    except OverflowError as error:
        raise ValueError("the duration is too long") from error
    raise ValueError(f"{value!r} is not a duration")
