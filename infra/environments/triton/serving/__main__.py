"""`python -m infra.environments.triton.serving`: writes the overlay of an environment, `INTO/kustomization.yaml`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from infra.environments.triton.serving.overlay import RELEASE, Refused, Serving, Version, write


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m infra.environments.triton.serving", description=(__doc__ or "").partition("\n")[0]
    )
    add = parser.add_argument
    add("--project", required=True, help="the project of the service account")
    add("--namespace", default="triton")
    add(
        "--account",
        default="triton-sa",
        help="the service account that reads the models, Google's and Kubernetes'",
    )
    add("--model-repository", required=True, metavar="gs://BUCKET/FOLDER")
    add("--image", default=RELEASE, help="REGISTRY/NAME:TAG@sha256:DIGEST instead of %(default)s")
    add("--replicas", type=int, default=1)
    add("--gpus", type=int, default=1, help="of each replica")
    add("--canary-model-repository", metavar="gs://BUCKET/FOLDER", help="if another than the stable version's")
    add("--canary-image", help="if another than the stable version's")
    add("--canary-replicas", type=int, default=1)
    add("--canary-weight", type=int, default=0, metavar="PERCENT", help="of the requests that go to the canary")
    add("--source-range", action="append", default=[], metavar="CIDR", help="who may connect, instead of everybody")
    add("--into", required=True, type=Path, help="the folder to write to")
    return parser


def _asked(asked: argparse.Namespace) -> Serving:
    stable = Version(repository=asked.model_repository, image=asked.image, replicas=asked.replicas)
    canary = None
    if asked.canary_model_repository or asked.canary_image:
        canary = Version(
            repository=asked.canary_model_repository or stable.repository,
            image=asked.canary_image or stable.image,
            replicas=asked.canary_replicas,
        )
    return Serving(
        project=asked.project,
        stable=stable,
        canary=canary,
        canary_weight=asked.canary_weight,
        namespace=asked.namespace,
        account=asked.account,
        gpus=asked.gpus,
        source_ranges=tuple(asked.source_range),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    try:
        serving = _asked(asked)
    except Refused as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 1
    write(serving, asked.into)
    return 0


if __name__ == "__main__":
    sys.exit(main())
