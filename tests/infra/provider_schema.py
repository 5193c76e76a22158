"""Extracts, for what the Terraform roots use, the providers' schemas from their bindings for CDK Terrain.

The bindings are large (65 MB for google) and no dependency of the tests; the extract is `data/providers.json`. Whoever
changes a provider's version, or uses another kind of resource, makes it anew, with the bindings of just these versions:

    pip download --no-deps --dest DIRECTORY cdktn-provider-archive==14.0.1 cdktn-provider-google==20.2.0 \
        cdktn-provider-google-beta==20.2.0 cdktn-provider-helm==15.1.0 cdktn-provider-kubernetes==17.1.0 \
        cdktn-provider-time==14.0.2
    python -m tests.infra.provider_schema DIRECTORY/*.whl
"""

from __future__ import annotations

import io
import json
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.infra.sources import ENVIRONMENTS, FILES

EXTRACT = Path(__file__).parent / "data" / "providers.json"

_CLASS = re.compile(r"providers/hashicorp/([\w-]+)/([\d.]+)/docs(?:/(resources|data-sources)/\w+)? (\w[\w-]*)}")
_NAME = re.compile(r"#([a-z0-9_]+) \w+#")
_KINDS = {"resources": "resource", "data-sources": "data", None: "provider"}
_PRIMITIVES = {"boolean": "bool", "number": "number", "string": "string"}
_WORD = r"""["'`]?[A-Za-z][A-Za-z0-9_]*["'`]?"""
_WORDS = rf"{_WORD}(?:(?:, (?:and )?| and | or ){_WORD})*"
_LISTED = re.compile(rf"(?:Possible|Valid|Supported|Accepted) values(?: are| include)?:? \[?({_WORDS})\]?\.")
_POINTS = re.compile(r"Accepted values are:((?: ?\* [A-Z_]+:[^*]*)+)")
_LEFT_OUT = re.compile(r"id|\w+_custom_endpoint")
"""Nobody sets an `id`, which every schema of the older SDK has; endpoints are for tests of the provider."""

BUILT_IN = {"terraform_data", "terraform_remote_state"}
"""Terraform's own: it checks them without a provider."""

Types = Mapping[str, Mapping[str, Any]]


def types_in(wheel: Path) -> dict[str, Any]:
    """Return the types of a wheel's bindings, by their full names."""
    with zipfile.ZipFile(wheel) as files:
        [assembly] = [name for name in files.namelist() if name.endswith(".jsii.tgz")]
        with tarfile.open(fileobj=io.BytesIO(files.read(assembly))) as package:
            declared = package.extractfile("package/.jsii")
            assert declared is not None
            types: dict[str, Any] = json.load(declared)["types"]
            return types


def used(files: Mapping[str, Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Return every ("resource", type), ("data", type) and ("provider", name) in Terraform files."""
    return {
        (kind, name)
        for file in files.values()
        for kind in ("resource", "data", "provider")
        for block in file.get(kind, [])
        for name in block
    }


def used_anywhere() -> set[tuple[str, str]]:
    """Return what is used in any root, but what is built in."""
    found = used(FILES).union(*(used(files) for files in ENVIRONMENTS.values()))
    return {(kind, name) for kind, name in found if name not in BUILT_IN}


def extract(wheels: Iterable[Path], wanted: set[tuple[str, str]]) -> dict[str, Any]:
    """Return the schema of each wanted kind of resource, and the version of each provider."""
    found: dict[str, Any] = {"version": {}, "resource": {}, "data": {}, "provider": {}}
    for wheel in wheels:
        types = types_in(wheel)
        for name, declared in types.items():
            about = _CLASS.search(declared.get("docs", {}).get("summary", ""))
            if about is None or declared["kind"] != "class":
                continue
            provider, version, folder, terraform_name = about.groups()
            found["version"][provider] = version
            kind = _KINDS[folder]
            if (kind, terraform_name) in wanted and terraform_name not in found[kind]:
                found[kind][terraform_name] = {"arguments": arguments(types, f"{name}Config")}
                if kind != "provider":
                    found[kind][terraform_name]["attributes"] = attributes(types, name)
    return found


def arguments(types: Types, name: str) -> dict[str, Any]:
    """Return the arguments of a block by name; those of a nested block are in its `block`.

    `values` are all that one can have, where its documentation names them.
    What is in braces, but after `=`, has an `attribute` beside it: newer providers have no nested blocks.
    """
    found: dict[str, Any] = {}
    for declared in types[name].get("properties", []):
        text = " ".join(declared.get("docs", {}).get(part, "") for part in ("summary", "remarks"))
        named = _NAME.search(text)
        argument = named[1] if named else snake_case(declared["name"])
        if not _LEFT_OUT.fullmatch(argument):
            entry = _argument(types, declared["type"])
            if entry.get("type") in {"string", "list"} and (values := values_in(text)):
                entry["values"] = values
            if "block" in entry and not re.search(r"\bblock\.(?!\w)", text):
                entry["attribute"] = True
            found[argument] = entry if declared.get("optional") else {**entry, "required": True}
    return dict(sorted(found.items()))


def values_in(text: str) -> list[str]:
    """Return the values that the documentation of an argument names as all that it can have; none where it does not."""
    text = " ".join(text.partition("Docs at")[0].split()) + "."
    if points := _POINTS.search(text):
        return re.findall(r"\* ([A-Z_]+):", points[1])
    listed = _LISTED.search(text)
    return [word for word in re.findall(r"\w+", listed[1]) if word not in {"and", "or"}] if listed else []


def _argument(types: Types, declared: Mapping[str, Any]) -> dict[str, Any]:
    if "union" in declared:  # with a token of the bindings, which stands for a value that is not known yet
        [declared] = [each for each in declared["union"]["types"] if each.get("fqn") != "cdktn.IResolvable"]
    if "collection" in declared:
        element = declared["collection"]["elementtype"]
        if "fqn" in element and element["fqn"] in types:
            return {"block": arguments(types, element["fqn"]), "many": True}
        return {"type": {"map": "map", "array": "list"}[declared["collection"]["kind"]]}
    if "fqn" in declared:
        return {"block": arguments(types, declared["fqn"])}
    return {"type": _PRIMITIVES[declared["primitive"]]}


def attributes(types: Types, name: str) -> dict[str, list[str]]:
    """Return the attributes that can be read, and for each block those in it."""
    return {attribute: sorted(_readable(types, nested)) for attribute, nested in sorted(_readable(types, name).items())}


def _readable(types: Types, name: str) -> dict[str, str]:
    """Return the attributes of a class, each with the class of what is in it, or ""."""
    internal = {"tfResourceType", "internalValue", "fqn"}
    properties = types[name]["properties"] if name in types else []
    return {
        snake_case(declared["name"]): re.sub(r"List$", "OutputReference", declared["type"].get("fqn", ""))
        for declared in properties
        if declared["name"] not in internal and not declared["name"].endswith("Input")
    }


def snake_case(name: str) -> str:
    return re.sub(r"(?=[A-Z])", "_", name).lower()


def text_of(extracted: Mapping[str, Any]) -> str:
    """Return an extract as JSON with a line for each kind of resource, so that a change of one is seen."""
    parts = [
        f'"{part}": {{\n'
        + ",\n".join(f'"{name}": {json.dumps(entry)}' for name, entry in sorted(entries.items()))
        + "\n}"
        for part, entries in extracted.items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    EXTRACT.write_text(text_of(extract([Path(argument) for argument in sys.argv[1:]], used_anywhere())))
