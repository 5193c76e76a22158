"""A story's file, with the settings and the manifests that it names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.wire.readers import reader_of
from tpu_slices.wire.tpu_objects import name_of
from tpu_slices_cli.manifests import Invalid, Manifest, NotAManifest, read, read_map
from tpu_slices_cli.planning import plan
from tpu_slices_cli.settings_file import read_settings
from tpu_slices_simulator.form import Asked, StoryError, form_of, story_of
from tpu_slices_simulator.story import Story


def read_story(path: Path) -> Story:
    """Return the story in a file. NotAManifest: it, or what it names, is missing or invalid; the message says where."""
    try:
        form = form_of(read_map(path, "a map with cluster, lasts and jobsets"))
        settings = read_settings(path.parent / form.cluster).settings
        return story_of(form, settings, lambda manifest: _asked_in(path.parent / manifest, settings))
    except StoryError as error:
        raise NotAManifest(f"{path}: {error}") from error


def _asked_in(manifest: Path, settings: ClusterSettings) -> Sequence[Asked]:
    """Return what a file of manifests asks for. Raise StoryError, NotAManifest."""
    documents = tuple(read([str(manifest)]))
    for invalid in plan(documents, lambda _: settings, "default").invalid:
        raise NotAManifest(str(invalid))
    found = [asked for document in documents for asked in _asked(document)]
    if not found:
        raise StoryError(f"{manifest} has no workload that gets slices: `slices plan -f {manifest}` says why")
    return found


def _asked(document: Manifest | Invalid) -> Iterator[Asked]:
    """Yield what a manifest asks for, if its workload gets slices; it was planned, so it is well-formed."""
    if isinstance(document, Invalid) or (reader := reader_of(document.body)) is None:
        return
    body, metadata = document.body, document.metadata
    served = reader.asks_for_tpu(body) and not reader.not_ours(body) and reader.is_served(body)
    if served and any(each.replicas for each in reader.requests(body)):
        yield Asked(reader.kind, str(metadata.get("namespace") or "default"), name_of(metadata), body)
