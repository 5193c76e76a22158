"""The canonical form of a resource quantity, in which Go writes it: k8s.io/apimachinery/pkg/api/resource (pure)."""

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil

_WRITTEN = re.compile(r"([+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40}))(?:([eE])([+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i))?")
"""With bounded length and exponent, so that 1e999999999 is not computed."""
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_UNIT = _DECIMAL.index("")


@lru_cache(maxsize=1024)
def canonical(text: str | float) -> str:
    """Return the quantity without a fraction, in the largest unit of its own kind in which it has none.

    Less than a billionth is rounded up. Raise ValueError if it is not a quantity.
    """
    found = _WRITTEN.fullmatch(str(text))
    if found is None:
        raise ValueError(f"not a quantity: {str(text)[:60]!r}")
    number, exponential, exponent, suffix = found.groups()
    if suffix and suffix.endswith("i"):
        value = Fraction(number) * 1024 ** _BINARY.index(suffix)
        if value.denominator == 1 and abs(value) >= 1024:
            return _in_units(value, 1024, _BINARY)
    else:
        power = int(exponent) if exponential else 3 * (_DECIMAL.index(suffix or "") - _UNIT)
        value = Fraction(number) * Fraction(10) ** power
    billionths = Fraction(ceil(value * 10**9))
    units = tuple(f"e{3 * (each - _UNIT)}" if each != _UNIT else "" for each in range(len(_DECIMAL)))
    return _in_units(billionths, 1000, units if exponential else _DECIMAL)


def _in_units(value: Fraction, base: int, units: tuple[str, ...]) -> str:
    """Return a whole number of the smallest unit, in the largest unit of which it is a whole number."""
    if value == 0:
        return "0"
    chosen = 0
    while chosen + 1 < len(units) and (value / base).denominator == 1:
        value /= base
        chosen += 1
    return f"{value}{units[chosen]}"
