"""Regular expressions that users write into failure policies (pure).

Upstream's are RE2's and take linear time. Python's backtrack, so those that could take for ever are not tried.
"""

import re
from collections.abc import Iterator

_UNBOUNDED = 3
"""How many parts of a pattern may repeat without a bound."""


def matches(pattern: str, text: str) -> bool:
    """Search `text`; an invalid pattern matches nothing, as upstream has it. ValueError for one that is not tried."""
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError):
        return False
    if _might_take_for_ever(pattern):
        raise ValueError(f"not tried here, because it might take too long: {pattern[:200]}")
    return compiled.search(text) is not None


def _might_take_for_ever(pattern: str) -> bool:
    """Look for a repeated group that repeats or chooses inside, or for many repetitions."""
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
    """List what has a meaning of its own; whatever else stands there is one dot."""
    for found in re.finditer(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[(){}*+|]|.", pattern, re.DOTALL):
        yield found[0] if found[0] in "(){*+|" else "."
