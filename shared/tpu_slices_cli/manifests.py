"""Manifests as users write them and kubectl prints them, read with the place of each document for error messages."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

MOST_BYTES = 32_000_000
"""Above the size of all JobSets of a busy cluster."""


class NotAManifest(ValueError):
    """A file is missing or invalid; the message names the file, the document and the field."""


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
        """Return an error about this document."""
        return NotAManifest(f"{self.where}: {why}")


def read(files: Iterable[str]) -> list[Manifest]:
    """Return the manifests of files, folders (their .yaml, .yml and .json files) and `-` (standard input).

    NotAManifest: a file cannot be read, or is invalid.
    """
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
            why = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise NotAManifest(f"{each}: cannot be read: {why}") from error


def _documents(name: str, text: str) -> Iterator[Manifest]:
    if len(text) > MOST_BYTES:
        raise NotAManifest(f"{name}: larger than the limit of {MOST_BYTES} characters")
    try:
        bodies = [json.loads(text)] if text.lstrip()[:1] in {"{", "["} else list(yaml.load_all(text, Unambiguous))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise NotAManifest(f"{name}: cannot be parsed: {_one_line(error)}") from error
    for number, body in enumerate(bodies, start=1):
        where = name if len(bodies) == 1 else f"{name}: document {number}"
        if body is not None:
            yield _checked(where, body)


def _checked(where: str, body: object) -> Manifest:
    if not isinstance(body, Mapping):
        raise NotAManifest(f"{where}: expected an object with apiVersion and kind, found: {type(body).__name__}")
    for field in ("apiVersion", "kind"):
        if not isinstance(body.get(field), str):
            raise NotAManifest(f"{where}: {field} is missing")
    return Manifest(where, body)


def _parts(manifest: Manifest) -> Iterator[Manifest]:
    """Yield the items of a List, as `kubectl get -o yaml` prints it, or the manifest itself."""
    if not manifest.kind.endswith("List") or not isinstance(manifest.body.get("items"), list):
        if not isinstance(manifest.body.get("metadata"), Mapping):
            raise manifest.is_not("metadata is missing")
        yield manifest
        return
    for number, item in enumerate(manifest.body["items"], start=1):
        yield from _parts(_checked(f"{manifest.where}: item {number}", item))


class Unambiguous(yaml.SafeLoader):
    """A loader that raises for duplicate keys, of which PyYAML silently keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.value != "<<"]
        duplicate = next((key for key in keys if keys.count(key) > 1), None)
        if duplicate is not None:
            raise yaml.constructor.ConstructorError(problem=f"duplicate key {duplicate}", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
