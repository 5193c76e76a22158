"""Values of JSON, and what may be wrong with them: a valid one is edited here and there."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

Tree = Any
Place = tuple[list[Any] | dict[str, Any], int | str]
"""A list or object, and the index or key of one of its values."""

MOST_EDITS = 4
MOST_CHARACTERS = 100_000
"""Of what is repeated."""
_DEEP: Tree = []
for _ in range(200):
    _DEEP = [_DEEP]
NUMBERS = (0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**30, 0.5, -0.0, 1e308, float("inf"), float("nan"))
TEXTS = (
    *("", " ", "0", "-1", "1e3", "4", "2x2x4", "4x", "x" * 64, "x" * 254, "x" * 20_000),
    *("../x", "a/b", "__x__", ".", "ä", "\x00", "\ud800", "\u202e", "🧨", "null", "true", "{{ x }}", "1" * 5_000),
    *("2026-11-01T12:00:00Z", "2026-11-01T12:00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999Z"),
)
STRANGE: tuple[Tree, ...] = (
    *(None, True, False, [], {}, [[]], [None], {"": None}, {"a": {"b": []}}, _DEEP),
    *NUMBERS,
    *TEXTS,
)
"""What is put in a value's place."""


Draw = Callable[[st.SearchStrategy[Any]], Any]


@st.composite
def edited(draw: Draw, valid: st.SearchStrategy[Tree]) -> Tree:
    """Return a valid value with up to a few edits."""
    return _edited(draw, valid, EDITS)


@st.composite
def edited_by_type(draw: Draw, valid: st.SearchStrategy[Tree]) -> Tree:
    """Return a valid value with edits that an API server would let pass, which holds fields to their types."""
    return _edited(draw, valid, TYPED_EDITS)


def _edited(draw: Draw, valid: st.SearchStrategy[Tree], edits: Sequence[Callable[..., None]]) -> Tree:
    box = [copy.deepcopy(draw(valid))]
    for _ in range(draw(st.integers(1, MOST_EDITS))):
        places = list(_places(box))
        inside, key = places[draw(st.integers(0, len(places) - 1))]
        draw(st.sampled_from(edits))(draw, inside, key)
    return box[0]


def _places(box: Tree) -> Iterator[Place]:
    if isinstance(box, list | dict):
        for key in range(len(box)) if isinstance(box, list) else list(box):
            yield box, key
            yield from _places(box[key])


def _replace(draw: Draw, inside: Any, key: Any) -> None:
    inside[key] = copy.deepcopy(draw(st.sampled_from(STRANGE)))


def _replace_by_type(draw: Draw, inside: Any, key: Any) -> None:
    match inside[key]:
        case bool():
            inside[key] = not inside[key]
        case int():
            inside[key] = draw(st.sampled_from([number for number in NUMBERS if isinstance(number, int)]))
        case str():
            inside[key] = draw(st.sampled_from(TEXTS))
        case list() | dict():
            inside[key].clear()
        case _:
            pass


def _retype(draw: Draw, inside: Any, key: Any) -> None:
    """Write the same by another type."""
    value = inside[key]
    inside[key] = draw(st.sampled_from([str(value), [value], {"value": value}, len(str(value)), not value]))


def _drop(_: Draw, inside: Any, key: Any) -> None:
    if inside == [inside[key]]:
        inside[key] = None
    else:
        del inside[key]


def _add(draw: Draw, inside: Any, _: Any) -> None:
    value = copy.deepcopy(draw(st.sampled_from(STRANGE)))
    if isinstance(inside, dict):
        inside[draw(st.sampled_from([text for text in TEXTS if text]))] = value
    else:
        inside.append(value)


def _add_text(draw: Draw, inside: Any, _: Any) -> None:
    """Add a text to a map of texts, such as labels."""
    if isinstance(inside, dict) and all(isinstance(value, str) for value in inside.values()):
        inside[draw(st.sampled_from(TEXTS))] = draw(st.sampled_from(TEXTS))


def _repeat(draw: Draw, inside: Any, key: Any) -> None:
    """Make a text or list longer, by itself."""
    value, times = inside[key], draw(st.sampled_from([2, 3, 70, 600]))
    if isinstance(value, str | list) and len(repr(value)) * times <= MOST_CHARACTERS:
        inside[key] = [copy.deepcopy(each) for each in value * times] if isinstance(value, list) else value * times


def _change_text(draw: Draw, inside: Any, key: Any) -> None:
    value = inside[key]
    if isinstance(value, str) and value:
        at, text = draw(st.integers(0, len(value))), draw(st.text(max_size=3))
        inside[key] = value[:at] + text + value[at + draw(st.integers(0, 2)) :]


def _swap(draw: Draw, inside: Any, key: Any) -> None:
    """Exchange two values of one type."""
    keys = range(len(inside)) if isinstance(inside, list) else list(inside)
    other = draw(st.sampled_from([other for other in keys if type(inside[other]) is type(inside[key])]))
    inside[key], inside[other] = inside[other], inside[key]


EDITS = (_replace, _retype, _drop, _add, _repeat, _change_text, _swap)
TYPED_EDITS = (_replace_by_type, _drop, _add_text, _repeat, _change_text, _swap)


def times_in(tree: Tree) -> Tree:
    """Return the value with times in place of their texts, as Firestore's client returns them."""
    if isinstance(tree, dict):
        return {key: times_in(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [times_in(each) for each in tree]
    try:
        return datetime.fromisoformat(tree).astimezone(UTC) if isinstance(tree, str) and "T" in tree else tree
    except (ValueError, OverflowError):
        return tree
