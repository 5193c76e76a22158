"""The overlays of a cluster, for kubectl's kustomize: what its relay and its webhook have beyond those of all."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from tpu_slices.domain.model.clusters import PodsOf
from tpu_slices.domain.model.gangs import Gangs
from tpu_slices.domain.model.slices import ClusterId

BASE = Path(__file__).resolve().parent / "relay" / "base"
WEBHOOK = Path(__file__).resolve().parent / "webhook"
"""What the admission webhook has in every cluster where it is needed."""
COMPONENTS = (
    *(BASE.with_name(name) for name in ("credentials", "joining")),
    Path(__file__).resolve().parent / "self-managed",
)
"""What the relay of a self-managed cluster has beyond the base."""
KUSTOMIZATION = "kustomization.yaml"
NAMESPACE, RELAY = "tpu-slice-provisioner", "relay"
"""The namespace, and the name that the Deployment, its container and, in the base, the ServiceAccount have."""
PLACEHOLDER = "overlay.invalid/relay"
"""The image of the base: there is none of that name."""
POLICY = Path(__file__).resolve().parent / "admission.yaml"
"""The admission policies, whose settings the webhook has, too."""
_SETTINGS = {"STRIP_SPOT_AND_RESERVATION": "stripSpotAndReservation", "LOCATION_HINT": "locationHint"}
_SERVES_NONE = "    - name: serve\n      expression: '[]'\n"
_NO_GANGS = "    - name: gangs\n      expression: '\"none\"'\n"
_PULLED = {
    "apiVersion": "v1",
    "kind": "ServiceAccount",
    "metadata": {"name": WEBHOOK.name, "namespace": NAMESPACE},
    "imagePullSecrets": [{"name": "relay-image"}],
}
"""How a self-managed cluster pulls the image, as for the relay (relay/credentials)."""
_DIGEST = re.compile(r"(?P<name>[a-z0-9][a-z0-9._:/-]*/[a-z0-9._/-]+)@(?P<digest>sha256:[0-9a-f]{64})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Image:
    """An image by its digest: no tag, which may come to name another."""

    name: str
    digest: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return `NAME@sha256:DIGEST` as an image. Raises ValueError."""
        match = _DIGEST.fullmatch(text)
        if match is None:
            raise ValueError(f'"{text}" is not an image by its digest: REGISTRY/NAME@sha256:DIGEST, without a tag')
        return cls(match["name"], match["digest"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """The relay of a cluster, of GKE or not; `project` is the one that the provisioner runs in."""

    cluster: ClusterId
    project: str
    version: str
    image: Image
    hosts_in: str = ""
    """`projects/P/locations/L` of a self-managed cluster's hosts; empty: the cluster is one of GKE."""
    serve: tuple[PodsOf, ...] = ()
    """Whose pods get a slice each, as the cluster's settings say."""
    gangs: Gangs = Gangs.NONE
    """Which workloads are gangs that do not say so, as the cluster's settings say."""

    @property
    def served(self) -> dict[str, str]:
        """The environment variable by which relay and webhook know it."""
        return {"SERVE": ",".join(self.serve)} if self.serve else {}

    @property
    def admission(self) -> dict[str, str]:
        """The environment variables of the webhook, which has the settings of the policies."""
        return {**pinning_settings(), **self.served, **({} if self.gangs is Gangs.NONE else {"GANGS": self.gangs})}


def account_of(cluster: str) -> str:
    """Return the name of the relay's ServiceAccount, one per cluster (infra/terraform/relay.tf grants rights to it)."""
    return f"{RELAY}-{cluster}"


def kustomization(relay: Relay, folder: Path) -> dict[str, Any]:
    """Return the overlay that is to be in a folder."""
    components = [_seen_from(folder, each) for each in COMPONENTS if relay.hosts_in]
    env = {"CLUSTER": relay.cluster, "GOOGLE_CLOUD_PROJECT": relay.project, "VERSION": relay.version}
    env |= ({"HOSTS_IN": relay.hosts_in} if relay.hosts_in else {}) | relay.served
    rename = [{"op": "replace", "path": "/metadata/name", "value": account_of(relay.cluster)}]
    return {
        **_begun(relay, BASE, folder),
        **({"components": components} if components else {}),
        "patches": [
            {
                "target": {"kind": "ServiceAccount", "name": RELAY},
                "options": {"allowNameChange": True},  # whatever refers to it follows
                "patch": yaml.safe_dump(rename, sort_keys=False),
            },
            {"patch": yaml.safe_dump(_with_env(RELAY, env), sort_keys=False)},
        ],
    }


def webhook_kustomization(relay: Relay, folder: Path) -> dict[str, Any]:
    """Return the overlay of the admission webhook, which runs from the relay's image, that is to be in a folder."""
    env = {"GOOGLE_CLOUD_PROJECT": relay.project, "VERSION": relay.version, **relay.admission}
    patches = [_with_env(WEBHOOK.name, env), *([_PULLED] if relay.hosts_in else [])]
    return {
        **_begun(relay, WEBHOOK, folder),
        "patches": [{"patch": yaml.safe_dump(each, sort_keys=False)} for each in patches],
    }


def pinning_settings(policy: Path = POLICY) -> dict[str, str]:
    """Return the settings of the admission policy as the webhook has them. Raises ValueError."""
    manifest, *_ = yaml.safe_load_all(policy.read_text(encoding="utf-8"))
    found = {each["name"]: each["expression"] for each in manifest["spec"]["variables"]}
    read: dict[str, str] = {}
    for name, variable in _SETTINGS.items():
        try:
            value = json.loads(found[variable])
        except json.JSONDecodeError as wrong:
            raise ValueError(f"{policy.name}: {variable}: {found[variable]} is no constant: {wrong}") from wrong
        read[name] = value if isinstance(value, str) else json.dumps(value)
    return read


def policy_of(serve: Iterable[PodsOf], gangs: Gangs = Gangs.NONE, policy: Path = POLICY) -> str:
    """Return the admission policies of a cluster whose settings say so: those of all, with their settings."""
    text = policy.read_text(encoding="utf-8")
    for setting in (_SERVES_NONE, _NO_GANGS):
        if text.count(setting) != 1:
            raise ValueError(f"{policy.name}: a setting is not as it is replaced for each cluster: {setting!r}")
    if kinds := ", ".join(f"'{each}'" for each in serve):
        text = text.replace(_SERVES_NONE, _SERVES_NONE.replace("'[]'", f'"[{kinds}]"'))
    return text.replace(_NO_GANGS, _NO_GANGS.replace(Gangs.NONE, gangs))


def write(relay: Relay, folder: Path) -> None:
    """Write the overlay into a folder, that of the webhook into `webhook` in it, and the policy. They are created."""
    for each, made in ((folder, kustomization), (folder / WEBHOOK.name, webhook_kustomization)):
        each.mkdir(parents=True, exist_ok=True)
        text = yaml.dump(made(relay, each), Dumper=_Readable, sort_keys=False, width=120)
        (each / KUSTOMIZATION).write_text(text, encoding="utf-8")
    (folder / POLICY.name).write_text(policy_of(relay.serve, relay.gangs), encoding="utf-8")


def _begun(relay: Relay, base: Path, folder: Path) -> dict[str, Any]:
    """Return what both overlays have: their base, the image by its digest, and the version as a label."""
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [_seen_from(folder, base)],
        "images": [{"name": PLACEHOLDER, "newName": relay.image.name, "digest": relay.image.digest}],
        "labels": [{"pairs": {"app.kubernetes.io/version": relay.version}, "includeTemplates": True}],
    }


def _with_env(name: str, env: Mapping[str, str]) -> dict[str, Any]:
    """Return the patch of a Deployment, and its container of the same name, that adds environment variables."""
    container = {"name": name, "env": [{"name": key, "value": str(value)} for key, value in env.items()]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }


def _seen_from(folder: Path, other: Path) -> str:
    return os.path.relpath(other, folder.resolve())


class _Readable(yaml.SafeDumper):
    """Writes text of several lines as such."""


_Readable.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)
