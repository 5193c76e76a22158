"""Regular expressions of users, in failure policies (pure).

Upstream uses RE2, which takes linear time. Python's engine backtracks, so patterns that might not end are refused.
"""

import re
from collections.abc import Iterator

_UNBOUNDED = 3
"""How many parts of a pattern may repeat without limit."""


def matches(pattern: str, text: str) -> bool:
    """Return whether the pattern matches; an invalid one does not, as upstream. Raise ValueError if it is refused."""
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError):
        return False
    if _might_take_for_ever(pattern):
        raise ValueError(f"not evaluated, because it might take too long: {pattern[:200]}")
    return compiled.search(text) is not None


def _might_take_for_ever(pattern: str) -> bool:
    """Return whether a repeated group contains a repetition or alternatives, or whether there are many repetitions."""
    groups, repeated, unbounded = [False], False, 0
    closed = False
    for sign in _signs(pattern):
        if sign == "(":
            groups.append(False)
        elif sign == ")" and len(groups) > 1:
            closed = groups.pop()
            groups[-1] |= closed
            continue
        elif sign in "*+{":
            unbounded += 1
            repeated |= closed
            groups[-1] = True
        elif sign == "|":
            groups[-1] = True
        closed = False
    return repeated or unbounded > _UNBOUNDED


def _signs(pattern: str) -> Iterator[str]:
    """Yield the metacharacters that matter; everything else as a single dot."""
    for found in re.finditer(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[(){}*+|]|.", pattern, re.DOTALL):
        yield found[0] if found[0] in "(){*+|" else "."
