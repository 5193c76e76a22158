"""A cluster's settings in a file, as in `infra/clusters/PROJECT/CLUSTER.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.cluster_settings import decode_settings
from tpu_slices_cli.manifests import NotAManifest, read_map


@dataclass(frozen=True, slots=True)
class SettingsFile:
    path: Path
    document: Mapping[str, Any]
    settings: ClusterSettings

    @property
    def cluster(self) -> ClusterId:
        return self.settings.cluster


def read_settings(path: Path) -> SettingsFile:
    """Return the checked settings in a file; the cluster's ID is the file's name without its suffix.

    NotAManifest: the file is missing or invalid; the message names the field and what to write.
    """
    document = {name: _without_days(value) for name, value in read_map(path, "a map of settings").items()}
    try:
        settings = decode_settings(ClusterId(path.stem), document, version="")
    except Permanent as error:
        raise NotAManifest(f"{path}: {str(error).removeprefix(f'clusters/{path.stem}: ')}") from error
    return SettingsFile(path, document, settings)


def _without_days(value: Any) -> Any:
    """Return a value with the days in it as text: YAML reads 2026-11-30 as a day, which Firestore does not store."""
    match value:
        case Mapping():
            return {name: _without_days(each) for name, each in value.items()}
        case list():
            return [_without_days(each) for each in value]
        case date() if not isinstance(value, datetime):
            return value.isoformat()
        case _:
            return value
