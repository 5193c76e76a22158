"""Whatever is written to a parser, it answers as it says: briefly here, for longer by `make fuzz`."""

from __future__ import annotations

import pytest

from tests.fuzz.fuzzing import fuzzed
from tests.fuzz.parsers import PARSERS


@pytest.mark.parametrize("parser", PARSERS)
def test_whatever_is_written_is_answered(parser: str) -> None:
    fuzzed(PARSERS[parser])()


@pytest.mark.parametrize("parser", PARSERS)
def test_the_valid_examples_are_taken(parser: str) -> None:
    for example in PARSERS[parser].examples:
        PARSERS[parser].takes(example)
