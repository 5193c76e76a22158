"""Every root of an environment: the schemas of its providers, its references, its versions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.infra.provider_schema import EXTRACT
from tests.infra.schema_check import REFERENCE as ATTRIBUTE
from tests.infra.schema_check import problems
from tests.infra.sources import ENVIRONMENTS, ROOT, blocks

SCHEMA: Mapping[str, Any] = json.loads(EXTRACT.read_text())
KIND = r"(?:google|helm|kubernetes|terraform|time)_\w+"
REFERENCE = re.compile(rf"(?<![\w.\"])(?:(data|ephemeral)\.)?({KIND}|local|var)\.(\w+)")

KINDS_MADE = re.compile(rf"(?<![\w.]){KIND}\.")

every_root = pytest.mark.parametrize("root", ENVIRONMENTS)


def of(root: str, kind: str) -> Iterator[Any]:
    for file in ENVIRONMENTS[root].values():
        yield from file.get(kind, [])


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


@every_root
def test_every_argument_and_attribute_is_one_of_its_provider(root: str) -> None:
    found = list(problems(ENVIRONMENTS[root], SCHEMA))
    assert not found, "\n".join(found)


@every_root
def test_the_check_reads_every_reference_to_an_attribute(root: str) -> None:
    """One of a form that it does not know would pass unread."""
    text = "\n".join(re.sub(r"#.*", "", path.read_text()) for path in (ROOT / root).glob("*.tf"))
    references = re.finditer(r"(?<![\w.\"])(?:data\.)?(?:google|helm|kubernetes|time)_\w+\.\w+(?=[.\[])", text)
    unread = [text[found.start() :].splitlines()[0] for found in references if not ATTRIBUTE.match(text, found.start())]
    assert unread == []


@every_root
def test_the_scan_has_its_settings(root: str) -> None:
    """`make scan` reads them of each root."""
    assert (ROOT / root / ".checkov.yaml").is_file()


@every_root
def test_terraform_and_providers_are_those_of_the_deployment_and_of_the_schemas(root: str) -> None:
    [terraform], [deployed] = of(root, "terraform"), blocks("terraform")
    assert terraform["required_version"] == deployed["required_version"]
    [providers] = terraform["required_providers"]
    versions = {name: SCHEMA["version"][name] for name in providers}
    assert providers == {name: {"source": f"hashicorp/{name}", "version": versions[name]} for name in providers}
    assert terraform["backend"] == [{"gcs": {}}]


@every_root
def test_every_reference_is_declared_and_every_local_and_variable_is_used(root: str) -> None:
    declared = {("", kind, name) for block in of(root, "resource") for kind, named in block.items() for name in named}
    for where in ("data", "ephemeral"):
        declared |= {
            (where, kind, name) for block in of(root, where) for kind, named in block.items() for name in named
        }
    declared |= {("", "local", name) for block in of(root, "locals") for name in block}
    declared |= {("", "var", name) for block in of(root, "variable") for name in block}
    used = {found for text in strings(ENVIRONMENTS[root]) if "${" in text for found in REFERENCE.findall(text)}

    assert used <= declared
    assert {name for _, kind, name in declared if kind == "local"} <= {name for _, kind, name in used}


@every_root
def test_every_variable_is_used_beside_its_own_validation(root: str) -> None:
    """The reference has three that do nothing."""
    elsewhere = {
        name
        for file in ENVIRONMENTS[root].values()
        for kind, found in file.items()
        if kind != "variable"
        for text in strings(found)
        for _, what, name in REFERENCE.findall(text)
        if what == "var"
    }
    assert {name for block in of(root, "variable") for name in block} == elsewhere


@every_root
def test_every_variable_has_a_type_and_says_what_it_is(root: str) -> None:
    variables = {name: body for block in of(root, "variable") for name, body in block.items()}
    assert not [name for name, body in variables.items() if "type" not in body or "description" not in body]
    unchecked = {name for name, body in variables.items() if "validation" not in body and body["type"] != "bool"}
    assert unchecked <= {"cluster_description"}


@every_root
def test_no_root_has_a_provider_that_needs_what_it_makes(root: str) -> None:
    """One of Kubernetes, configured from a cluster of the same root, fails on an empty state and on removal."""
    providers = {name: body for block in of(root, "provider") for name, body in block.items()}
    assert not [name for name, body in providers.items() if any(KINDS_MADE.search(text) for text in strings(body))]
