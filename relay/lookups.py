"""What is looked up at the API server before facts that are due are published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relay.vacancies import Vacancies, Vacancy
from relay.volume_claims import Claims, Mounted
from tpu_slices.domain.model.facts import Fact


@dataclass(frozen=True, slots=True)
class Open:
    """What is left to look up for facts, from the time when they came due."""

    mounted: Mounted
    vacancies: Sequence[Vacancy | None]
    """What each fact says of hosts that nobody is on; None: nothing."""


class Lookups:
    """Completes facts; each of the two takes seconds at most, and leaves out what it cannot look up."""

    def __init__(self, claims: Claims, vacancies: Vacancies) -> None:
        self._claims = claims
        self._vacancies = vacancies

    def complete(self, facts: Sequence[Fact], left: Open) -> list[Fact]:
        checked = [self._vacancies.checked(*each) for each in zip(facts, left.vacancies, strict=True)]
        return self._claims.complete(checked, left.mounted)
