"""The shapes of stored records and of messages, as JSON schemas, and what two releases cannot read of each other.

`python -m tests.wire.shapes > tests/wire/released.json` keeps those of a release: run it with each one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from tpu_slices.wire import documents, messages

Shape = Mapping[str, Any]
UNKNOWN_IS_READ = {"Reason"}
"""Enums of which a value that is not known is read all the same."""
NOWHERE_BEFORE = {("OwnerKind", "TPUNodeGroup"), ("OwnerKind", "Pod")}
"""Values of enums that only clusters have whose settings the last release refuses: on Compute Engine, with `serve`."""
_SAYS_NOTHING_OF_THE_SHAPE = {"title", "description", "default"}


def shapes() -> dict[str, Shape]:
    """Return the shape of every record and message, and of everything in them, by its name in the code."""
    adapters = {**{kind.__name__: adapter for kind, adapter in documents._ADAPTERS.items()}, **messages._ALL}
    found: dict[str, Shape] = {}
    for name, adapter in adapters.items():
        schema = _bare(adapter.json_schema())
        for each, shape in {**schema.pop("$defs", {}), **({name: schema} if "$ref" not in schema else {})}.items():
            assert found.setdefault(each, shape) == shape, f"two shapes are called {each}"
    return found


def problems(before: Mapping[str, Shape], after: Mapping[str, Shape]) -> Iterator[str]:
    """Yield what the release `before` cannot read of what the code `after` writes, and the other way round.

    | change | may be made |
    |---|---|
    | a field more, with a default | yes: older code ignores it |
    | a field more, without one | no: what is stored has none |
    | a field less | if it had a default |
    | another type of a field | no |
    | a value more of an enum | of UNKNOWN_IS_READ, and those of NOWHERE_BEFORE |
    | a value less | no |
    """
    for name, old in before.items():
        new = after.get(name)
        if new is None:
            yield f"{name} is gone"
            continue
        had, has = old.get("properties", {}), new.get("properties", {})
        yield from (f"{name}.{field} is not written any more" for field in old.get("required", ()) if field not in has)
        yield from (
            f"{name}.{field} is new, and has no default" for field in new.get("required", ()) if field not in had
        )
        yield from (f"{name}.{field} has another type" for field in had if field in has and had[field] != has[field])
        known, used = set(old.get("enum", ())), set(new.get("enum", ()))
        yield from (f"{name} {value} is gone" for value in sorted(known - used))
        if name not in UNKNOWN_IS_READ:
            new_ones = (value for value in sorted(used - known) if (name, value) not in NOWHERE_BEFORE)
            yield from (f"{name} {value} is new" for value in new_ones)


def _bare(value: Any) -> Any:
    """Return a schema without what only describes it; a property may be called like one of these."""
    if isinstance(value, list):
        return [_bare(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {name: each for name, each in value.items() if name not in _SAYS_NOTHING_OF_THE_SHAPE}
    return {
        name: {key: _bare(each) for key, each in member.items()} if name in {"properties", "$defs"} else _bare(member)
        for name, member in kept.items()
    }


if __name__ == "__main__":
    json.dump(shapes(), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
