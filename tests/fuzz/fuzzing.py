"""One property for a parser, which Hypothesis tries at random, and a fuzzer guided by coverage."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings

from tests.fuzz.parsers import Parser


def fuzzed(parser: Parser) -> Any:
    """Return a function that tries edited examples; its `hypothesis.fuzz_one_input` is for fuzzers."""

    @settings(suppress_health_check=list(HealthCheck), deadline=None)
    @given(parser.tried)
    def holds(value: Any) -> None:
        parser.takes(value)

    return holds
