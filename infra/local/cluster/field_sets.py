"""Sets of fields: those of an object, those that a change touched, and their encoding in managedFields (pure).

Facts: structured-merge-diff's typed.ToFieldSet and Compare; fieldsV1 of meta/v1.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from infra.local.cluster import field_rules
from infra.local.cluster.field_rules import Element, Rule, children

Path = tuple[Element, ...]
FieldSet = frozenset[Path]

_ABSENT: Any = object()
_DEEPEST = 64  # no kind has fields half as deep


@dataclass(frozen=True, slots=True)
class Comparison:
    """The fields that differ between two objects."""

    added: set[Path] = field(default_factory=set)
    modified: set[Path] = field(default_factory=set)
    removed: set[Path] = field(default_factory=set)

    @property
    def taken(self) -> FieldSet:
        """Return the fields that the author of the change now owns."""
        return frozenset(self.added | self.modified)


def fields(owner: Rule, value: Any, path: Path = ()) -> FieldSet:
    """Return the fields of a value: its leaves, the items of its lists, the entries of its maps."""
    if owner.form == "leaf":
        return frozenset([path])
    found: set[Path] = set()
    for step, rule, part in children(owner, value):
        found |= fields(rule, part, (*path, step))
        if owner.form != "struct" or part in (None, {}):
            found.add((*path, step))
    return frozenset(found)


def compare(owner: Rule, old: Any, new: Any) -> Comparison:
    """Return the fields that differ."""
    found = Comparison()
    _compare(owner, (old, new), (), found)
    return found


def _compare(owner: Rule, values: tuple[Any, Any], path: Path, found: Comparison) -> None:
    old, new = values
    if owner.form == "leaf" or (_is_empty(old) and _is_empty(new)):
        if old is not _ABSENT and new is not _ABSENT and old != new:
            found.modified.add(path)
    else:
        before, after = ({step: (rule, part) for step, rule, part in children(owner, value)} for value in values)
        for step in before | after:
            rule = (after.get(step) or before[step])[0]
            parts = tuple(side[step][1] if step in side else _ABSENT for side in (before, after))
            _compare(rule, (parts[0], parts[1]), (*path, step), found)
    if old is _ABSENT:
        found.added.add(path)
    elif new is _ABSENT:
        found.removed.add(path)


def _is_empty(value: Any) -> bool:
    return value is _ABSENT or value in (None, {}, [])


def undeclared(owner: Rule, value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the fields of the value that its struct does not declare."""
    for step, rule, part in children(owner, value):
        if owner.form == "struct" and field_rules.field(owner, step[2:]) is None:
            yield (*path, step)
        yield from undeclared(rule, part, (*path, step))


def with_parents(paths: Iterable[Path]) -> FieldSet:
    """Return the paths and the named fields above each of them (Set.EnsureNamedFieldsAreMembers)."""
    found = set(paths)
    for path in tuple(found):
        found |= {path[:end] for end in range(1, len(path)) if path[end - 1].startswith("f:")}
    return frozenset(found)


def to_fields_v1(paths: Iterable[Path]) -> dict[str, Any]:
    """Encode a set as fieldsV1: nested steps, with `.` for a field that is a member in addition to its parts."""
    members = sorted(paths)
    written: dict[str, Any] = {}
    for path in members:
        here = written
        for step in path:
            here = here.setdefault(step, {})
    for path in members:
        if here := _at(written, path):
            rest = dict(here)
            here.clear()
            here |= {".": {}} | rest
    return written


def _at(written: dict[str, Any], path: Path) -> dict[str, Any]:
    for step in path:
        written = written[step]
    return written


def from_fields_v1(written: dict[str, Any], path: Path = ()) -> FieldSet:
    """Decode fieldsV1. Raise ValueError if it is malformed."""
    found: set[Path] = set()
    for step, below in written.items():
        if not isinstance(below, dict) or len(path) > _DEEPEST or not _is_element(step):
            raise ValueError(f"{step} is not a path element")
        if step == ".":
            found.add(path)
        elif below:
            found |= from_fields_v1(below, (*path, step))
        else:
            found.add((*path, step))
    return frozenset(found)


def _is_element(step: str) -> bool:
    kind, text = step[:2], step[2:]
    if kind in ("k:", "v:"):
        said = orjson.loads(text)
        return kind == "v:" or isinstance(said, dict)
    return step == "." or kind == "f:"


def shown(path: Path) -> str:
    """Format a path for people: `.spec.containers[name="main"].image`."""
    return "".join(_step_shown(step) for step in path)


def _step_shown(step: Element) -> str:
    kind, text = step[:2], step[2:]
    if kind == "f:":
        return f".{text}"
    if kind == "v:":
        return f"[={text}]"
    keys = orjson.loads(text)
    return "[" + ",".join(f"{key}={orjson.dumps(value).decode()}" for key, value in keys.items()) + "]"
