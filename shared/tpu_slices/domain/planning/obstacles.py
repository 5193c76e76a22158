"""What stands in the way of a slice: every obstacle of a request at once, each with the key at fault. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from tpu_slices.domain.catalogue.accelerators import ImpossibleShape
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.texts import MESSAGE_CHARACTERS, shortened
from tpu_slices.domain.records.claims import Refusal

Part = TypeVar("Part")

_LEAST = 40
"""The characters that each obstacle has at least, however many there are: the key."""
_MOST_TELLING = (Reason.PROVISIONED_BY_GKE, Reason.IMPOSSIBLE_SHAPE, Reason.DOES_NOT_FIT, Reason.NOT_ALLOWED)
"""The refusal has the first of these that applies."""


class DoesNotFit(ValueError):
    """A part of the spec does not follow from the request; the text names the key, the value and what is possible."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One of the reasons for which a request is refused."""

    reason: Reason
    message: str
    """Begins with the key, and has the value and the remedy; without a full stop."""


class Obstacles:
    """The obstacles of one request, in the order in which they were found."""

    def __init__(self) -> None:
        self._found: list[Obstacle] = []

    def add(self, found: Iterable[Obstacle]) -> None:
        self._found += found

    def part(self, make: Callable[[], Part], unknown: Part) -> Part:
        """Return a part of the spec, or `unknown` if it has an obstacle, which is added."""
        try:
            return make()
        except ImpossibleShape as no:
            self._found.append(Obstacle(Reason.IMPOSSIBLE_SHAPE, str(no)))
        except DoesNotFit as no:
            self._found.append(Obstacle(Reason.DOES_NOT_FIT, str(no)))
        return unknown

    def refusal(self, whose: str = "") -> Refusal | None:
        """Return all obstacles as one refusal, None if there is none; `whose` is the beginning of its message."""
        if not self._found:
            return None
        reason = min((each.reason for each in self._found), key=_MOST_TELLING.index)
        messages = list(dict.fromkeys(each.message for each in self._found))
        text = f"{whose}{_joined(messages, MESSAGE_CHARACTERS - len(whose) - 1)}"
        return Refusal(reason=reason, message=shortened(text if text.endswith("...") else f"{text}."))


def does_not_fit(message: str) -> Obstacle:
    return Obstacle(Reason.DOES_NOT_FIT, message)


def _joined(messages: list[str], room: int) -> str:
    """Return one message as it is, and several numbered; the longest are shortened if they are too long together."""
    if len(messages) == 1:
        return messages[0]
    numbered = [f"({number}) {message}" for number, message in enumerate(messages, 1)]
    most = _share([len(each) for each in numbered], room - 2 * len(numbered))
    return "; ".join(shortened(each, max(_LEAST, most)) for each in numbered)


def _share(lengths: list[int], room: int) -> int:
    """Return the length to which the longest texts have to be shortened, so that all fit into the room."""
    for others, length in enumerate(sorted(lengths)):
        share = room // (len(lengths) - others)
        if length > share:
            return share
        room -= length
    return max(lengths)
