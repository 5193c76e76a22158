"""Which accelerators somebody means who wrote no label of one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tpu_slices.domain.catalogue.machines import Accelerator

_GENERATION = re.compile(r"(?:tpu)?[-_ ]?v?(\d{1,2})[-_ ]?(e|p|x|lite)?(?![a-z0-9])", re.ASCII)
"""At the beginning of what is meant for a label, as in tpu-v7x, v6e or tpu-v5-lite."""
_NAMED = {"trillium": "6e", "ironwood": "7x"}
"""Google's names of generations."""


def meant_by(text: str, known: Iterable[Accelerator]) -> list[str]:
    """Return the labels of the generation that a text names; empty if it names none that is known."""
    named = _generation(text.lower().replace("litepod", "lite"))
    generations = {kind.label: _generation(kind.generation) for kind in known}
    same = [label for label, generation in generations.items() if named and generation == named]
    return same or [label for label, generation in generations.items() if named and generation.rstrip("epx") == named]


def _generation(text: str) -> str:
    """Return number and letter, as in 5e; empty if the text begins with none."""
    found = _GENERATION.match(text)
    return f"{found[1]}{(found[2] or '').replace('lite', 'e')}" if found else _NAMED.get(text, "")
