"""The overlay of an environment, for kubectl's kustomize: what its Triton has beyond the base. It needs no library."""

import ipaddress
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

BASE = Path(__file__).resolve().parent / "base"
KUSTOMIZATION = "kustomization.yaml"
RELEASE = "nvcr.io/nvidia/tritonserver:26.08-py3"
"""The image of the base."""

_NAME = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_FORMS: Mapping[str, tuple[str, str]] = {
    "project": (_NAME, "the id of a project"),
    "namespace": (_NAME, "a name of a namespace"),
    "account": (_NAME, "a name of a service account, without its domain"),
    "repository": (r"gs://[a-z0-9][-_.a-z0-9]{1,220}[a-z0-9](/[\w./=-]+)?", "a folder in a bucket: gs://BUCKET/FOLDER"),
    "image": (
        r"[a-z0-9][-a-z0-9._:/]*/[-a-z0-9._/]+(:[\w.-]+)?@sha256:[0-9a-f]{64}",
        "an image by its digest: REGISTRY/NAME:TAG@sha256:DIGEST",
    ),
}


class Refused(ValueError):
    """What was asked for cannot be had; the message is for whoever asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What a version of Triton serves, and with which image."""

    repository: str
    image: str = RELEASE
    replicas: int = 1

    def __post_init__(self) -> None:
        _require("repository", self.repository)
        if self.image != RELEASE:
            _require("image", self.image)
        _between("replicas", self.replicas, 1, 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What an environment serves, and to whom. Raises Refused if it cannot be."""

    project: str
    stable: Version
    canary: Version | None = None
    canary_weight: int = 0
    namespace: str = "triton"
    account: str = "triton-sa"
    gpus: int = 1
    source_ranges: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("project", "namespace", "account"):
            _require(name, getattr(self, name))
        _between("gpus", self.gpus, 1, 16)
        _between("the canary's weight", self.canary_weight, 0, 100)
        if self.canary_weight and not self.canary:
            raise Refused("a canary's weight needs a canary: name its model repository or its image")
        for each in self.source_ranges:
            _address_range(each)


def _require(name: str, value: str) -> None:
    form, meaning = _FORMS[name]
    if not re.fullmatch(form, value, re.ASCII):
        raise Refused(f'"{value}" is not {meaning}')


def _between(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise Refused(f"{name}: {value} is not between {least} and {most}")


def _address_range(text: str) -> None:
    try:
        ipaddress.IPv4Network(text)
    except ValueError as wrong:
        raise Refused(f'"{text}" is not a range of IPv4 addresses: {wrong}') from wrong


def kustomization(serving: Serving, base: str) -> str:
    """Return the overlay over a base, which is named by its path relative to the overlay."""
    email = f"{serving.account}@{serving.project}.iam.gserviceaccount.com"
    canary = serving.canary
    return f"""\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: {_quoted(serving.namespace)}
resources:
  - {_quoted(base)}
patches:
  - target:
      kind: ServiceAccount
      name: triton-sa
    options:
      allowNameChange: true # whatever refers to it follows
    patch: |
      - op: replace
        path: /metadata/name
        value: {_quoted(serving.account)}
      - op: add
        path: /metadata/annotations
        value:
          iam.gke.io/gcp-service-account: {_quoted(email)}
{_deployment("stable", serving.stable, serving.stable.replicas, serving.gpus)}\
{_deployment("canary", canary or serving.stable, canary.replicas if canary else 0, serving.gpus)}\
  - target:
      kind: VirtualService
      name: triton-server
    patch: |
      - op: replace
        path: /spec/http/2/route/0/weight
        value: {100 - serving.canary_weight}
      - op: replace
        path: /spec/http/2/route/1/weight
        value: {serving.canary_weight}
{_load_balancer(serving.source_ranges)}"""


def _deployment(name: str, version: Version, replicas: int, gpus: int) -> str:
    return f"""\
  - target:
      kind: Deployment
      name: triton-server-{name}
    patch: |
      apiVersion: apps/v1
      kind: Deployment
      metadata:
        name: triton-server-{name}
      spec:
        replicas: {replicas}
        template:
          spec:
            containers:
              - name: triton
                image: {_quoted(version.image)}
                env:
                  - name: MODEL_REPOSITORY
                    value: {_quoted(version.repository)}
                resources:
                  limits:
                    nvidia.com/gpu: "{gpus}"
"""


def _load_balancer(ranges: tuple[str, ...]) -> str:
    if not ranges:
        return ""
    return f"""\
  - target:
      kind: Service
      name: istio-ingressgateway
    patch: |
      - op: add
        path: /spec/loadBalancerSourceRanges
        value: {json.dumps(ranges)}
"""


def _quoted(text: str) -> str:
    """Return text as a string of YAML's, whatever it looks like."""
    return json.dumps(text)


def write(serving: Serving, folder: Path) -> None:
    """Write the overlay into a folder, which is created."""
    folder.mkdir(parents=True, exist_ok=True)
    base = os.path.relpath(BASE, folder.resolve())
    (folder / KUSTOMIZATION).write_text(kustomization(serving, base), encoding="utf-8")
