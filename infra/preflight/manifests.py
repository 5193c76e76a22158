"""What infra/kubernetes puts into a cluster, read from its files."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

FOLDER = Path(__file__).resolve().parents[1] / "kubernetes"
REPLACED = {"admission.yaml"}
"""Applied where the API server has its kind; elsewhere the webhook is, which does the same."""
JOB_ENVIRONMENT = "job-environment.yaml"
OF_SELF_MANAGED = ("device-plugin/", JOB_ENVIRONMENT, "relay/credentials/", "relay/joining/", "self-managed/")
"""What is only applied in self-managed clusters."""
_KUSTOMIZE = "kustomize.config.k8s.io/"


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object of a file."""

    file: str
    api_version: str
    kind: str
    name: str
    namespace: str | None

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def replaced(self) -> bool:
        return self.file in REPLACED

    @property
    def on_gke(self) -> bool:
        return not self.file.startswith(OF_SELF_MANAGED)

    @property
    def reference(self) -> str:
        """How kubectl is told of it: `KIND.GROUP/NAME`."""
        kind = self.kind.lower()
        return f"{kind}.{self.group}/{self.name}" if self.group else f"{kind}/{self.name}"


def manifests(folder: Path = FOLDER) -> Iterator[Manifest]:
    for path in sorted(folder.rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if document and not document["apiVersion"].startswith(_KUSTOMIZE):
                metadata = document["metadata"]
                yield Manifest(
                    path.relative_to(folder).as_posix(),
                    document["apiVersion"],
                    document["kind"],
                    metadata["name"],
                    metadata.get("namespace"),
                )


def cluster_wide(folder: Path = FOLDER) -> list[Manifest]:
    """Return the objects that no namespace takes along when it is deleted: bindings first, namespaces last."""
    found = [manifest for manifest in manifests(folder) if manifest.namespace is None]
    return sorted(found, key=lambda each: (each.kind == "Namespace", not each.kind.endswith("Binding"), each.reference))
