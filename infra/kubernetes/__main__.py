"""`python -m infra.kubernetes`: writes what is applied to each cluster, as `INTO/CLUSTER/kustomization.yaml`."""

import argparse
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from infra.kubernetes.overlay import Image, Relay, write
from tpu_slices_cli.manifests import NotAManifest
from tpu_slices_cli.settings_file import read_settings

ROOT = Path(__file__).resolve().parents[2]


def _version() -> str:
    project: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["version"]


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
        relay = Relay(
            cluster=file.cluster,
            project=asked.project,
            version=asked.version,
            image=image,
            hosts_in=file.settings.path if file.settings.self_managed else "",
            serve=file.settings.serve,
            gangs=file.settings.gangs,
        )
        write(relay, asked.into / file.cluster)
    return 0


if __name__ == "__main__":
    sys.exit(main())
