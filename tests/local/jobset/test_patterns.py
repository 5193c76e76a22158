from __future__ import annotations

import pytest

from infra.local.jobset.patterns import matches


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("^Container .* failed .* code 42$", True),
        ("(OOM|code 42)", True),
        (r"code \(?42\)*", True),
        ("code 7", False),
        ("(", False),
        ("a{4294967296}", False),
    ],
)
def test_a_pattern_is_searched_and_a_broken_one_matches_nothing(pattern: str, *, found: bool) -> None:
    assert matches(pattern, "Container main for pod x failed with exit code 42") is found


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", "((a|b)c)*d", "([a-z]*.)*x", ".*.*.*.*x", "(?:a*)+b"])
def test_a_pattern_that_could_take_for_ever_is_not_tried(pattern: str) -> None:
    with pytest.raises(ValueError, match="not evaluated"):
        matches(pattern, "a" * 60 + "!")
