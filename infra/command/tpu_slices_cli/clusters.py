"""The cluster that a plan is for: a configured one, one in a file, or a default one.

The default cluster is in the zone that the pod selects, else in the first that has its accelerator (the catalogue's
zones), and its policy allows everything that a pod can request. All else are the defaults of
`tpu_slices.domain.model.clusters`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tpu_slices.domain.catalogue.accelerators import CATALOGUE
from tpu_slices.domain.catalogue.zones import zones_with
from tpu_slices.domain.model.clusters import Allowed, ClusterSettings, ComputeSettings, Policy, PoolSettings
from tpu_slices.domain.model.facts import Pinning, TemplateRequest
from tpu_slices.domain.model.node_groups import NodeGroup
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.model.vendors import GKE, Vendor
from tpu_slices.domain.planning.host_labels import ZONE
from tpu_slices.domain.records.limiters import CapacityPool
from tpu_slices.domain.records.reservations import Reservation
from tpu_slices_cli.manifests import NotAManifest
from tpu_slices_cli.session import Session
from tpu_slices_cli.settings_file import read_settings
from tpu_slices_cli.text import did_you_mean

_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-z0-9]+")
BY_DEFAULT = (
    "no --cluster: planned for a default cluster, in the zone that the pods select, else in one that has their "
    "accelerator; its policy allows everything"
)
_NOTHING_BY_DEFAULT: Mapping[str, Any] = {each.name: ("*",) for each in fields(Allowed) if each.default == ()}
_IMAGE = "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accel-2404-amd64-tpu-tpu7x"
_EVERYTHING = Policy(everyone=Allowed(**_NOTHING_BY_DEFAULT))


@dataclass(frozen=True, slots=True)
class PlannedCluster:
    """The cluster that a plan is for."""

    settings_for: Callable[[TemplateRequest | NodeGroup], ClusterSettings]
    cluster: ClusterId | None
    """None: the default cluster."""
    file: str | None = None
    """The file of its settings; None: they are those that are configured, or the default ones."""
    vendor: Vendor = GKE
    pinning: Pinning | None = None
    """By what its pods are pinned to slices, as its relay says; None: it is not known."""

    reservations: Mapping[CapacityPool, Reservation] = field(default_factory=dict)
    """Those of a configured cluster that were looked at, by capacity pool."""

    def as_json(self) -> dict[str, Any]:
        settings = "default" if self.cluster is None else "configured" if self.file is None else "file"
        message = BY_DEFAULT if self.cluster is None else None
        known = {"id": self.cluster, "settings": settings, "file": self.file, "message": message}
        return {**known, "pinning": self.pinning and self.pinning.value}


def cluster_of(named: str | None, session: Session) -> PlannedCluster:
    """Return the cluster with this ID or file, or the default one; NotAManifest: there is none such."""
    if named is None:
        return PlannedCluster(default_settings, None)
    if named.endswith((".yaml", ".yml")) or Path(named).exists():
        settings = read_settings(Path(named)).settings
        return PlannedCluster(lambda _: settings, settings.cluster, named, settings.vendor)
    configured = session.deps.store.settings(ClusterId(named))
    if configured is None:
        known = session.deps.store.clusters()
        raise NotAManifest(
            f"--cluster {named}: neither a file nor a cluster that is configured in {session.project}"
            + (f": {did_you_mean(named, known)}" if known else "")
        )
    heartbeat = session.deps.store.heartbeat(configured.cluster)
    pinning = heartbeat.value.pinning_at(session.deps.clock.now()) if heartbeat else None
    limiter = session.deps.store.limiter(configured.cluster)
    return PlannedCluster(
        lambda _: configured,
        configured.cluster,
        vendor=configured.vendor,
        pinning=pinning,
        reservations=limiter.value.reservations if limiter else {},
    )


def default_settings(request: TemplateRequest | NodeGroup) -> ClusterSettings:
    """Return the settings of the default cluster for what a pod template requests, or a TPUNodeGroup declares."""
    if isinstance(request, NodeGroup):
        return ClusterSettings(
            cluster=ClusterId("default"),
            path=f"projects/{request.project}/locations/{request.zone.rpartition('-')[0]}",
            policy=_EVERYTHING,
            pools=PoolSettings(compute=ComputeSettings(image=_IMAGE)),
        )
    selected = dict(request.node_selector).get(ZONE, "")
    zone = selected if _ZONE.fullmatch(selected) else _zone_of(request.accelerator or "")
    region = zone.rpartition("-")[0]
    return ClusterSettings(
        cluster=ClusterId("default"),
        path=f"projects/example-project/locations/{region}/clusters/default",
        zone=zone,
        policy=_EVERYTHING,
    )


def _zone_of(label: str) -> str:
    """Return a zone of an accelerator, else of another of its generation, else any."""
    generation = CATALOGUE[label].generation if label in CATALOGUE else ""
    alike = [label, *(each.label for each in CATALOGUE.values() if each.generation == generation)]
    return next((zone for each in alike for zone in zones_with().get(each, ())), "us-central1-a")
