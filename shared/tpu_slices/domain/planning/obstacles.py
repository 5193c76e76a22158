"""What stands in the way of a slice: every obstacle of a request at once, each with the key at fault. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from tpu_slices.domain.catalogue.accelerators import ImpossibleShape
from tpu_slices.domain.model.reasons import Reason
from tpu_slices.domain.model.records import Refusal
from tpu_slices.domain.model.texts import MESSAGE_CHARACTERS, shortened

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
        return Refusal(reason=reason, message=shortened(f"{whose}{_joined(messages, len(whose))}."))


def does_not_fit(message: str) -> Obstacle:
    return Obstacle(Reason.DOES_NOT_FIT, message)


def _joined(messages: list[str], before: int) -> str:
    """Return one message as it is, and several numbered; each is shortened if they are too long together."""
    if len(messages) == 1:
        return messages[0]
    numbered = [f"({number}) {message}" for number, message in enumerate(messages, 1)]
    room = MESSAGE_CHARACTERS - before - 1
    if sum(len(each) + 2 for each in numbered) > room:
        numbered = [shortened(each, max(_LEAST, room // len(numbered) - 2)) for each in numbered]
    return "; ".join(numbered)
