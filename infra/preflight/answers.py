"""The answer to a question that was put to an API."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    body: Body


@dataclass(frozen=True, slots=True)
class Missing:
    """There is no such thing."""


@dataclass(frozen=True, slots=True)
class Denied:
    """Whoever asked may not know."""

    message: str


@dataclass(frozen=True, slots=True)
class Unreachable:
    """There was no answer, or none that can be read."""

    message: str


Answer = Found | Missing | Denied | Unreachable


def unknown(answer: Denied | Unreachable) -> str:
    """Return why it is not known, on one line."""
    return " ".join(answer.message.split()) or type(answer).__name__.lower()
