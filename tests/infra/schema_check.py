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

_QUOTED = re.compile(r'\\?"(\w+)\\?"')
_VARIABLE = re.compile(r"\$\{var\.(\w+)\}")
_ENDS = re.compile(r'\? \\?"(\w*)\\?" : \\?"(\w*)\\?"')

Files = Mapping[str, Mapping[str, Any]]


def problems(files: Files, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each argument that is unknown, missing, of another type or value, or attribute not there."""
    allowed = _variables(files)
    for kind, kind_of_resource, name, body in _blocks(files):
        known = schema[kind].get(kind_of_resource)
        if known is None:
            yield f"{kind_of_resource}: not in providers.json: see provider_schema.py"
            continue
        where = f"{kind_of_resource}.{name}" if name else f"provider.{kind_of_resource}"
        yield from _body(body, known["arguments"], where, allowed)
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


def _variables(files: Files) -> dict[str, list[str]]:
    """Return the values that each variable may have, as far as its default and its validation name them."""
    found: dict[str, list[str]] = {}
    for file in files.values():
        for block in file.get("variable", []):
            for name, body in block.items():
                texts = [str(each.get("condition")) for each in body.get("validation", [])]
                lists = [
                    listed for text in texts for listed in re.findall(rf"contains\(\[([^]]*)\], var\.{name}\)", text)
                ]
                values = [value for listed in lists for value in _QUOTED.findall(listed)]
                default = body.get("default")
                found[name] = [*values, *([default] if isinstance(default, str) else [])]
    return found


def _named(value: Any, allowed: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the values that are written: literals, those in lists, both ends of a condition, those of a variable."""
    if isinstance(value, list):
        for each in value:
            yield from _named(each, allowed)
    elif isinstance(value, str) and (variable := _VARIABLE.fullmatch(value)):
        yield from allowed.get(variable[1], [])
    elif isinstance(value, str) and "${" in value:
        yield from (each for found in _ENDS.findall(value) for each in found)
    elif isinstance(value, str):
        yield value


def _body(
    body: Mapping[str, Any], known: Mapping[str, Any], where: str, allowed: Mapping[str, list[str]]
) -> Iterator[str]:
    own = (META | {"dynamic"}) - known.keys()  # `count` is an argument of some blocks
    given = {name: value for name, value in body.items() if name not in own}
    for block in body.get("dynamic", []):
        for name, repeated in block.items():
            given.setdefault(name, []).extend(repeated["content"])
    for name, value in given.items():
        if name not in known:
            yield f"{where}: there is no argument {name}"
        elif "block" in known[name]:
            yield from _nested(value, known[name], f"{where}.{name}", allowed, repeated=_is_dynamic(body, name))
        elif not _fits(value, known[name]["type"]):
            yield f"{where}.{name} must be a {known[name]['type']}"
        elif values := known[name].get("values"):
            wrong = [each for each in _named(value, allowed) if each not in values]
            yield from (f"{where}.{name} cannot be {each}: {', '.join(values)}" for each in dict.fromkeys(wrong))
    for name, argument in known.items():
        if argument.get("required") and name not in given:
            yield f"{where}: {name} is missing"


def _is_dynamic(body: Mapping[str, Any], name: str) -> bool:
    return any(name in block for block in body.get("dynamic", []))


def _nested(
    value: Any, known: Mapping[str, Any], where: str, allowed: Mapping[str, list[str]], *, repeated: bool
) -> Iterator[str]:
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
        yield from _body(block, known["block"], where, allowed)


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
