"""The engine of refusals: each is a row of a table, a pure function of what a call is about."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

OURS = "ours"
"""Google's wording is not known from any source: this one is plausible, and no client should match on it."""
LIMIT = "a limit of the stand-in"
"""The fact of what is not covered."""

Covered = Mapping[str, Any]
"""The fields of a message that are supported, each with those of the message that it holds; `{}`: all of them."""

A = TypeVar("A")
"""What a row may read: the state, and what the call is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Generic[A]):
    """One row, to which a control plane adds its code. `check` returns the message of the refusal, or None.

    `fact`: the source that says that Google refuses this. `words`: the source of its wording, or OURS.
    """

    name: str
    fact: str
    words: str
    check: Callable[[A], str | None]


R = TypeVar("R", bound=Row[Any])


def first(ask: A, rows: Iterable[R]) -> tuple[R, str] | None:
    """Return the first row that refuses, with its message."""
    for row in rows:
        if (text := row.check(ask)) is not None:
            return row, text
    return None


def whole(fields: Iterable[str]) -> Covered:
    """Return that these fields are covered with all that is in them."""
    return {name: {} for name in fields}


def strays(message: Any, covered: Covered, where: str) -> Iterator[str]:
    """Yield the fields of one of Google's messages that are given and not covered, as they are called in JSON."""
    yield from _strays(type(message).pb(message), covered, where)


def _strays(message: Any, covered: Covered, where: str) -> Iterator[str]:
    for field, value in message.ListFields():
        name = f"{where}.{field.json_name}"
        known = field.name.rstrip("_")
        if known not in covered:
            yield name
        elif inner := covered[known]:
            several = [value] if hasattr(value, "ListFields") else value
            for each in several:
                yield from _strays(each, inner, name)


def not_covered(fields: Iterable[str], by: str) -> str | None:
    """Return the refusal of fields that are not covered, if there are some."""
    named = ", ".join(fields)
    return f"Not implemented by the local {by}: {named}." if named else None
