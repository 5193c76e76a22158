"""The files of a deployment, parsed."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hcl2
import yaml
from hcl2.utils import SerializationOptions

ROOT = Path(__file__).parents[2]
TERRAFORM = ROOT / "infra" / "terraform"
BUILD: dict[str, Any] = yaml.safe_load((ROOT / "cloudbuild.yaml").read_text())
STEPS: dict[str, dict[str, Any]] = {step["id"]: step for step in BUILD["steps"]}
DESTROY: dict[str, Any] = yaml.safe_load((ROOT / "infra" / "cloudbuild.destroy.yaml").read_text())
DESTROY_STEPS: dict[str, dict[str, Any]] = {step["id"]: step for step in DESTROY["steps"]}
TRAINING = ROOT / "infra" / "environments" / "training"
PROVISION_TRAINING: dict[str, Any] = yaml.safe_load((TRAINING / "cloudbuild.provision.yaml").read_text())
DESTROY_TRAINING: dict[str, Any] = yaml.safe_load((TRAINING / "cloudbuild.destroy.yaml").read_text())
TRITON = ROOT / "infra" / "environments" / "triton"
PROVISION_TRITON: dict[str, Any] = yaml.safe_load((TRITON / "cloudbuild.provision.yaml").read_text())
DESTROY_TRITON: dict[str, Any] = yaml.safe_load((TRITON / "cloudbuild.destroy.yaml").read_text())
IMAGES: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "training" / "cloudbuild.images.yaml").read_text())
IMAGES_STEPS: dict[str, dict[str, Any]] = {step["id"]: step for step in IMAGES["steps"]}

_PLAIN = SerializationOptions(
    with_comments=False, explicit_blocks=False, preserve_heredocs=False, strip_string_quotes=True
)


def parsed(text: str) -> dict[str, Any]:
    """Return blocks by their kind, then by their labels; expressions stay text in `${...}`."""
    document: dict[str, Any] = hcl2.loads(text, serialization_options=_PLAIN)
    return document


def files_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the parsed files of a Terraform root, by name."""
    return {path.name: parsed(path.read_text()) for path in sorted(folder.glob("*.tf"))}


FILES = files_of(TERRAFORM)
ENVIRONMENTS = {
    path.parent.relative_to(ROOT).as_posix(): files_of(path.parent)
    for path in sorted((ROOT / "infra" / "environments").rglob("versions.tf"))
}
"""The roots of the environments, by their folders."""


HUB = "${_HUB}/"
"""Where builds pull images of Docker Hub from."""


def on_hub(image: str) -> str:
    """Return how Docker Hub calls the image of a step, which comes by way of `_HUB`."""
    return image.removeprefix(HUB).removeprefix("library/")


def blocks(kind: str) -> Iterator[Any]:
    for file in FILES.values():
        yield from file.get(kind, [])


def resource(kind: str, name: str) -> dict[str, Any]:
    """Return the one block that declares the resource."""
    [found] = [block[kind][name] for block in blocks("resource") if name in block.get(kind, {})]
    body: dict[str, Any] = found
    return body


def local(name: str) -> Any:
    [found] = [block[name] for block in blocks("locals") if name in block]
    return found


def attributes(value: Any, name: str) -> Iterator[Any]:
    """Yield every value of that name, at any depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == name:
                yield inner
            yield from attributes(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from attributes(inner, name)


def pins(lock: Path) -> dict[str, str]:
    """Return the versions that a lock has, by name."""
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", lock.read_text(), re.MULTILINE))
