"""Merges objects, and removes parts of them, by field paths (pure).

Facts: structured-merge-diff's typed.Merge and RemoveItems.
"""

from collections.abc import Iterable
from typing import Any

from infra.local.cluster import field_rules
from infra.local.cluster.field_rules import LEAF, Rule, children, identity
from infra.local.cluster.field_sets import Path


def merged(owner: Rule, live: Any, applied: Any) -> Any:
    """Return the live value with the applied fields merged into it; neither argument is changed."""
    if owner.form in ("struct", "map") and isinstance(live, dict) and isinstance(applied, dict):
        return live | {
            key: merged(field_rules.field(owner, key) or LEAF, live.get(key), item) for key, item in applied.items()
        }
    if owner.is_list and isinstance(live, list) and isinstance(applied, list):
        return _merged_list(owner, live, applied)
    return applied


def _merged_list(owner: Rule, live: list[Any], applied: list[Any]) -> list[Any]:
    """Merge items by identity: in the applied order, with the other items in their places."""
    here = {identity(owner, item): item for item in live}
    waiting = {identity(owner, item): item for item in applied}
    ours = frozenset(waiting)
    result = []
    for name, item in here.items():
        if name not in ours:
            result.append(item)
            continue
        while name in waiting:
            first = next(iter(waiting))
            result.append(merged(owner.element or LEAF, here.get(first), waiting.pop(first)))
    result += [merged(owner.element or LEAF, here.get(name), item) for name, item in waiting.items()]
    return result


def without(owner: Rule, value: Any, paths: Iterable[Path]) -> Any:
    """Return the value without these fields and all below them, nor what this leaves empty; None if nothing is left."""
    below: dict[str, set[Path]] = {}
    for path in paths:
        below.setdefault(path[0], set()).add(path[1:])
    kept: list[tuple[str, Any]] = []
    for step, rule, part in children(owner, value):
        gone = below.get(step, set())
        if () in gone:
            continue
        left = without(rule, part, gone) if gone and rule.form != "leaf" else part
        if left is not None:
            kept.append((step, left))
    if owner.is_list:
        return [part for _, part in kept] or None
    return {step[2:]: part for step, part in kept} or None
