"""A cluster's settings from a file, as `infra/clusters/PROJECT/CLUSTER.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import Permanent
from tpu_slices.wire.cluster_settings import decode_settings
from tpu_slices_cli.manifests import NotAManifest, Unambiguous


@dataclass(frozen=True, slots=True)
class SettingsFile:
    path: Path
    document: Mapping[str, Any]
    settings: ClusterSettings

    @property
    def cluster(self) -> ClusterId:
        return self.settings.cluster


def read_settings(path: Path) -> SettingsFile:
    """Read and check a file; the cluster's id is its name. NotAManifest says what is wrong, and what to write."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Unambiguous)  # noqa: S506 - a SafeLoader
    except OSError as error:
        raise NotAManifest(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise NotAManifest(f"{path}: no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, Mapping):
        raise NotAManifest(f"{path}: a {type(document).__name__}, where a map of settings belongs")
    try:
        settings = decode_settings(ClusterId(path.stem), document, version="")
    except Permanent as wrong:
        raise NotAManifest(f"{path}: {str(wrong).removeprefix(f'clusters/{path.stem}: ')}") from wrong
    return SettingsFile(path, document, settings)
