"""Manifests as people write them and kubectl prints them: documents with their place, or one line why not."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

MOST_BYTES = 32_000_000
"""More than all JobSets of a busy cluster; what is larger is something else."""


class NotAManifest(ValueError):
    """A file is not what it claims to be; the text names file, document and field."""


@dataclass(frozen=True, slots=True)
class Manifest:
    where: str
    """File and document, as in `train.yaml: document 2`."""
    body: Mapping[str, Any]

    @property
    def kind(self) -> str:
        return str(self.body.get("kind", ""))

    @property
    def metadata(self) -> Mapping[str, Any]:
        metadata: Mapping[str, Any] = self.body["metadata"]
        return metadata

    def is_not(self, why: str) -> NotAManifest:
        return NotAManifest(f"{self.where}: {why}")


def read(files: Iterable[str]) -> list[Manifest]:
    """Read files, folders (the .yaml, .yml and .json in them) and - for standard input; NotAManifest."""
    manifests = [manifest for file in files for name, text in _texts(file) for manifest in _documents(name, text)]
    return [part for manifest in manifests for part in _parts(manifest)]


def _texts(file: str) -> Iterator[tuple[str, str]]:
    if file == "-":
        yield "standard input", sys.stdin.read(MOST_BYTES + 1)
        return
    path = Path(file)
    found = sorted(each for each in path.glob("*") if each.suffix in {".yaml", ".yml", ".json"})
    for each in found if path.is_dir() else [path]:
        try:
            yield str(each), each.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise NotAManifest(f"{each}: cannot be read: {why}") from error


def _documents(name: str, text: str) -> Iterator[Manifest]:
    if len(text) > MOST_BYTES:
        raise NotAManifest(f"{name}: more than {MOST_BYTES} characters")
    try:
        bodies = [json.loads(text)] if text.lstrip()[:1] in {"{", "["} else list(yaml.load_all(text, Unambiguous))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise NotAManifest(f"{name}: no YAML: {_one_line(error)}") from error
    for number, body in enumerate(bodies, start=1):
        where = name if len(bodies) == 1 else f"{name}: document {number}"
        if body is not None:
            yield _checked(where, body)


def _checked(where: str, body: object) -> Manifest:
    if not isinstance(body, Mapping):
        raise NotAManifest(f"{where}: a {type(body).__name__}, where an object with apiVersion and kind belongs")
    for field in ("apiVersion", "kind"):
        if not isinstance(body.get(field), str):
            raise NotAManifest(f"{where}: {field} is missing")
    return Manifest(where, body)


def _parts(manifest: Manifest) -> Iterator[Manifest]:
    """Unpack a List, as `kubectl get -o yaml` prints it."""
    if not manifest.kind.endswith("List") or not isinstance(manifest.body.get("items"), list):
        if not isinstance(manifest.body.get("metadata"), Mapping):
            raise manifest.is_not("metadata is missing")
        yield manifest
        return
    for number, item in enumerate(manifest.body["items"], start=1):
        yield from _parts(_checked(f"{manifest.where}: item {number}", item))


class Unambiguous(yaml.SafeLoader):
    """YAML whose keys are there once: of two, the library takes the last without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - the library's own
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.value != "<<"]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(problem=f"{twice} is there twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
