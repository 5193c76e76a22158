"""The controllers that are built, each of one version: that of its go.mod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tpu_standins.kubernetes.programs import caches
from tpu_standins.kubernetes.versions import Version, go_of, required

MODULES = Path(__file__).parent / "modules"
PROGRAM, MANIFESTS = "program", "manifests.json"
"""What a build has: the program, and the objects of its module's `config/default`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """A controller, named by its folder in `modules`."""

    name: str
    title: str
    """What people call it."""
    module: str
    package: str
    """Its main package."""
    account: str
    """`NAMESPACE/NAME` of its ServiceAccount."""
    authority: str = ""
    """The CA of its Secret, if it renews the certificate of its webhooks there; empty: it reads files alone."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What its configuration has here beside its project's."""

    @property
    def folder(self) -> Path:
        return MODULES / self.name

    @property
    def part(self) -> str:
        """Its name as a part of a stack, whatever its version."""
        return self.name.partition("-")[0]

    @property
    def go_mod(self) -> str:
        return (self.folder / "go.mod").read_text(encoding="utf-8")

    @property
    def version(self) -> str:
        return required(self.module, self.go_mod)

    @property
    def go(self) -> Version:
        """The oldest Go that builds it."""
        return go_of(self.go_mod)

    def __str__(self) -> str:
        return f"{self.title} {self.version}"


JOBSET = Controller(
    name="jobset-0.12",
    title="JobSet",
    module="sigs.k8s.io/jobset",
    package="sigs.k8s.io/jobset",
    account="jobset-system/jobset-controller-manager",
)
JOBSET_EARLIER = replace(JOBSET, name="jobset-0.10")
"""An earlier version, which many clusters have."""
LWS = Controller(
    name="lws",
    title="LeaderWorkerSet",
    module="sigs.k8s.io/lws",
    package="sigs.k8s.io/lws/cmd",
    account="lws-system/lws-controller-manager",
)
KUEUE = Controller(
    name="kueue",
    title="Kueue",
    module="sigs.k8s.io/kueue",
    package="sigs.k8s.io/kueue/cmd/kueue",
    account="kueue-system/kueue-controller-manager",
    authority="kueue-ca",
    settings={
        "internalCertManagement": {"enable": True},  # else the program wants a certificate of metrics in /etc/kueue
        "featureGates": {"VisibilityOnDemand": False},  # an API server behind an APIService, which is left out
        "resources": {"excludeResourcePrefixes": ["cpu", "memory"]},  # chips are scarce, as in a training environment
    },
)
CONTROLLERS = (JOBSET, LWS, KUEUE, JOBSET_EARLIER)
"""All that are built; tests run each."""


def cache_of(environment: Mapping[str, str]) -> Path:
    """Return the folder in which builds are kept, a folder for each controller and version."""
    return caches(environment) / "controllers"


def built(controller: Controller, environment: Mapping[str, str]) -> Path:
    """Return where the build of a controller is, once it is complete."""
    return cache_of(environment) / f"{controller.name}-{controller.version}"


def complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (PROGRAM, MANIFESTS))
