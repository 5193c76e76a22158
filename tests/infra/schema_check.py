"""Compares Terraform files with the schemas of their providers: `data/providers.json`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.infra.provider_schema import BUILT_IN

META = {"count", "depends_on", "for_each", "lifecycle", "provider"}
"""What Terraform itself reads of a block."""
_PYTHON = {"bool": bool, "number": int | float, "string": str | int | float, "map": dict}
REFERENCE = re.compile(
    r"(?<![\w.])(data\.)?((?:archive|google|helm|kubernetes|time)_\w+)\.\w+(?:\[[^\]]*\])?\.(\w+)(?:\[[^\]]*\]\.(\w+))?"
)

Files = Mapping[str, Mapping[str, Any]]


def problems(files: Files, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each argument that is unknown, missing or of another type, and each attribute not there."""
    for kind, kind_of_resource, name, body in _blocks(files):
        known = schema[kind].get(kind_of_resource)
        if known is None:
            yield f"{kind_of_resource}: not in providers.json: see provider_schema.py"
            continue
        where = f"{kind_of_resource}.{name}" if name else f"provider.{kind_of_resource}"
        yield from _body(body, known["arguments"], where)
    for text in _strings(files):
        for data, kind_of_resource, attribute, nested in REFERENCE.findall(text if "${" in text else ""):
            known = schema["data" if data else "resource"].get(kind_of_resource, {"attributes": {}})["attributes"]
            if attribute not in known:
                yield f"{kind_of_resource} has no attribute {attribute}"
            elif nested and nested not in known[attribute]:
                yield f"{kind_of_resource} has no attribute {attribute}.{nested}"


def _blocks(files: Files) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield kind, type, name and body of each resource, data source and provider but Terraform's own."""
    for file in files.values():
        for kind in ("resource", "data"):
            for block in file.get(kind, []):
                for kind_of_resource, named in block.items():
                    if kind_of_resource not in BUILT_IN:
                        yield from ((kind, kind_of_resource, name, body) for name, body in named.items())
        for block in file.get("provider", []):
            yield from (("provider", name, "", body) for name, body in block.items())


def _body(body: Mapping[str, Any], known: Mapping[str, Any], where: str) -> Iterator[str]:
    own = (META | {"dynamic"}) - known.keys()  # `count` is an argument of some blocks
    given = {name: value for name, value in body.items() if name not in own}
    for block in body.get("dynamic", []):
        for name, repeated in block.items():
            given.setdefault(name, []).extend(repeated["content"])
    for name, value in given.items():
        if name not in known:
            yield f"{where}: there is no argument {name}"
        elif "block" in known[name]:
            yield from _nested(value, known[name], f"{where}.{name}", repeated=_is_dynamic(body, name))
        elif not _fits(value, known[name]["type"]):
            yield f"{where}.{name} must be a {known[name]['type']}"
    for name, argument in known.items():
        if argument.get("required") and name not in given:
            yield f"{where}: {name} is missing"


def _is_dynamic(body: Mapping[str, Any], name: str) -> bool:
    return any(name in block for block in body.get("dynamic", []))


def _nested(value: Any, known: Mapping[str, Any], where: str, *, repeated: bool) -> Iterator[str]:
    if known.get("attribute"):
        if isinstance(value, list) != bool(known.get("many")):
            yield f"{where} must be a value, after ="
            return
        value = value if isinstance(value, list) else [value]
    if not isinstance(value, list) or not all(isinstance(block, dict) for block in value):
        yield f"{where} must be a block"
        return
    if len(value) > 1 and not repeated and not known.get("many"):
        yield f"{where} must be one block"
    for block in value:
        yield from _body(block, known["block"], where)


def _fits(value: Any, kind: str) -> bool:
    """Return whether a value may have the type; of an expression, nothing is known."""
    if isinstance(value, str) and "${" in value:
        return True
    if kind == "list":
        return isinstance(value, list) and not any(isinstance(item, dict) for item in value)
    return isinstance(value, _PYTHON[kind]) and isinstance(value, bool) == (kind == "bool")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(inner)
