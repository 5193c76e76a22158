"""Manifests as users write them and kubectl prints them, read with the place of each document for error messages."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tpu_slices_cli.placeholders import template_mark

MOST_BYTES = 32_000_000
"""Above the size of all JobSets of a busy cluster."""
_SUFFIXES = {".yaml", ".yml", ".json"}
_KUSTOMIZATION = "a kustomization, not a manifest: plan what `kubectl kustomize FOLDER` prints"
_CHART = "a part of a Helm chart, not a manifest: plan what `helm template CHART` prints"
_NO_MANIFESTS: Mapping[str, str] = {
    **dict.fromkeys(("kustomization.yaml", "kustomization.yml"), _KUSTOMIZATION),
    **dict.fromkeys(("Chart.yaml", "values.yaml"), _CHART),
}
"""Files that are no manifests, by their names."""
_SEPARATOR = re.compile(r"^(?=---(?:\s|$))", re.MULTILINE)


class NotAManifest(ValueError):
    """A file is missing or invalid; the message names the file, the document and the field."""


@dataclass(frozen=True, slots=True)
class Invalid:
    """A file or document that cannot be read as a manifest."""

    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


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


def read(files: Iterable[str]) -> Iterator[Manifest | Invalid]:
    """Yield the documents of files, folders (their .yaml, .yml and .json files) and `-` (standard input)."""
    for file in files:
        for name, text in _texts(file):
            if isinstance(text, Invalid):
                yield text
                continue
            for where, body in _documents(name, text):
                yield from [body] if isinstance(body, Invalid) else _parts(where, body)


def read_all(files: Iterable[str]) -> Iterator[Manifest]:
    """Yield what `read` yields; raise NotAManifest if a document is invalid."""
    for document in read(files):
        if isinstance(document, Invalid):
            raise NotAManifest(str(document))
        yield document


def _texts(file: str) -> Iterator[tuple[str, str | Invalid]]:
    if file == "-":
        yield "standard input", _bounded("standard input", sys.stdin.read(MOST_BYTES + 1))
        return
    path = Path(file)
    for each in sorted(found for found in path.glob("*") if found.suffix in _SUFFIXES) if path.is_dir() else [path]:
        try:
            yield str(each), _bounded(str(each), each.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not UTF-8"
            yield str(each), Invalid(str(each), f"cannot be read: {why}")


def _bounded(name: str, text: str) -> str | Invalid:
    return text if len(text) <= MOST_BYTES else Invalid(name, f"larger than the limit of {MOST_BYTES} characters")


def _documents(name: str, text: str) -> Iterator[tuple[str, Any]]:
    """Yield the place and body of each document of a file, Invalid in place of those that cannot be parsed.

    A file is parsed as a whole, and document by document if that fails.
    """
    try:
        bodies: list[Any] = _parsed(text)
    except _UNPARSEABLE:
        bodies = list(_one_by_one(name, text))
    for number, body in enumerate(bodies, start=1):
        if body is not None:
            yield name if len(bodies) == 1 else f"{name}: document {number}", body


def _one_by_one(name: str, text: str) -> Iterator[Any]:
    """Yield the body of each document, or Invalid; lines are counted from the beginning of the file."""
    starts = [0, *(found.start() for found in _SEPARATOR.finditer(text) if found.start())]
    pieces = [
        "\n" * text.count("\n", 0, start) + text[start:end]
        for start, end in zip(starts, [*starts[1:], None], strict=True)
        if not _only_comments(text[start:end])
    ]
    for number, piece in enumerate(pieces, start=1):
        try:
            yield from _parsed(piece) or [None]
        except _UNPARSEABLE as error:
            yield Invalid(f"{name}: document {number}" if len(pieces) > 1 else name, _why_unparseable(error, piece))


def _only_comments(text: str) -> bool:
    return all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines())


_UNPARSEABLE = (yaml.YAMLError, ValueError, RecursionError)


def _parsed(text: str) -> list[Any]:
    return [json.loads(text)] if text.lstrip()[:1] in {"{", "["} else list(yaml.load_all(text, Unambiguous))


def _why_unparseable(error: Exception, text: str) -> str:
    place = getattr(error, "problem_mark", None)
    line = error.lineno - 1 if isinstance(error, json.JSONDecodeError) else place and place.line
    mark = template_mark(text, line)
    return f"cannot be parsed: {mark or ' '.join(str(error).split())}"


def _parts(where: str, body: Any) -> Iterator[Manifest | Invalid]:
    """Yield the items of a List, as `kubectl get -o yaml` prints it, or the manifest itself."""
    items = body.get("items") if isinstance(body, Mapping) and str(body.get("kind")).endswith("List") else None
    if isinstance(items, list):
        yield from (_part(f"{where}: item {number}", item) for number, item in enumerate(items, start=1))
    else:
        yield _part(where, body)


def _part(where: str, body: Any) -> Manifest | Invalid:
    if not isinstance(body, Mapping):
        return Invalid(where, f"expected an object with apiVersion and kind, found: {type(body).__name__}")
    if str(body.get("apiVersion")).startswith("kustomize.config.k8s.io/"):
        return Invalid(where, _KUSTOMIZATION)
    missing = [field for field in ("apiVersion", "kind") if not isinstance(body.get(field), str)]
    if missing:
        return Invalid(where, _NO_MANIFESTS.get(Path(where).name) or f"{missing[0]} is missing")
    return Manifest(where, body) if isinstance(body.get("metadata"), Mapping) else Invalid(where, "metadata is missing")


def read_map(path: Path, expected: str) -> Mapping[str, Any]:
    """Return the only document of a file; raise NotAManifest if it cannot be read, or is not the expected map."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Unambiguous)  # noqa: S506 - a SafeLoader
    except OSError as error:
        raise NotAManifest(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise NotAManifest(f"{path}: cannot be parsed: {' '.join(str(error).split())}") from error
    if not isinstance(document, Mapping):
        raise NotAManifest(f"{path}: expected {expected}, found: {type(document).__name__}")
    return document


class Unambiguous(yaml.SafeLoader):
    """A loader that raises for duplicate keys, of which PyYAML silently keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.value != "<<"]
        duplicate = next((key for key in keys if keys.count(key) > 1), None)
        if duplicate is not None:
            raise yaml.constructor.ConstructorError(problem=f"duplicate key {duplicate}", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)
