"""`python -m infra.kubernetes`: writes the relay's overlay for each cluster, and which clusters there are.

For `infra/clusters/PROJECT/CLUSTER.yaml` it writes `INTO/CLUSTER/kustomization.yaml`, and into `INTO/clusters` a line

    CLUSTER PROJECT LOCATION NAME

with GKE's names of the cluster, for the roll-out, which has kubectl and gcloud but no YAML parser.
"""

import argparse
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from infra.kubernetes.overlay import Image, Relay, write
from tpu_slices_cli.manifests import NotAManifest
from tpu_slices_cli.settings_file import SettingsFile, read_settings

ROOT = Path(__file__).resolve().parents[2]
CLUSTERS = "clusters"


def _version() -> str:
    project: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["version"]


def line(file: SettingsFile) -> str:
    """Return the line of a cluster, whose path is projects/PROJECT/locations/LOCATION/clusters/NAME."""
    _, project, _, location, _, name = file.settings.path.split("/")
    return f"{file.cluster} {project} {location} {name}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.kubernetes", description=__doc__.partition("\n")[0])
    parser.add_argument("--project", required=True, help="the project that the provisioner runs in")
    parser.add_argument("--version", default=_version(), help="what is deployed: the sources' version")
    parser.add_argument("--image", required=True, help="REGISTRY/NAME@sha256:DIGEST")
    parser.add_argument("--into", required=True, type=Path, help="the folder to write to")
    parser.add_argument("files", nargs="*", type=Path, help="the clusters' settings")
    asked = parser.parse_args(arguments)
    try:
        image = Image.parse(asked.image)
        files = [read_settings(path) for path in asked.files]
    except (ValueError, NotAManifest) as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 1
    for file in files:
        relay = Relay(cluster=file.cluster, project=asked.project, version=asked.version, image=image)
        write(relay, asked.into / file.cluster)
    asked.into.mkdir(parents=True, exist_ok=True)
    (asked.into / CLUSTERS).write_text("".join(map(line, files)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
