"""The relay's settings, from environment variables."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from tpu_slices.domain.model.clusters import PodsOf
from tpu_slices.domain.model.slices import ClusterId, cluster_id
from tpu_slices.domain.model.vendors import COMPUTE_ENGINE, GKE, Vendor
from tpu_slices.wire.topics import Topic

_LOCATION = re.compile(r"projects/[^/]+/locations/[^/]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """CLUSTER and GOOGLE_CLOUD_PROJECT are required, the others optional.

    The variables of Google's and Kubernetes' clients are read by these clients.
    """

    project: str
    cluster: ClusterId
    version: str
    """VERSION (none), of what was deployed: each log line has it."""
    watch_silence: float
    """WATCH_SILENCE_SECONDS (90), after which a watch without a sign of life is given up and listed again."""
    publish_patience: float
    """PUBLISH_PATIENCE_SECONDS (120), after which a relay whose facts Pub/Sub does not accept is not ready any more."""
    probe_socket: str
    """PROBE_SOCKET (none), the name of the abstract Unix socket at which probes are answered; none: they are not."""

    serve: tuple[PodsOf, ...]
    """SERVE (none), whose pods get a slice each, by the cluster's settings, with commas; none: they are not watched."""
    hosts_in: str
    """HOSTS_IN (none), `projects/P/locations/L` of a self-managed cluster's hosts: only there TPUNodeGroups are
    watched, and only nodes whose providerID says so count."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Return the settings; raise ValueError, naming what is missing or wrong."""
        missing = [name for name in ("CLUSTER", "GOOGLE_CLOUD_PROJECT") if not environment.get(name)]
        if missing:
            raise ValueError(f"not set in the environment: {', '.join(missing)}")
        return cls(
            project=environment["GOOGLE_CLOUD_PROJECT"],
            cluster=_cluster(environment["CLUSTER"]),
            version=environment.get("VERSION", ""),
            watch_silence=_number(environment, "WATCH_SILENCE_SECONDS", 90, (1, 200)),
            publish_patience=_number(environment, "PUBLISH_PATIENCE_SECONDS", 120, (1, 3600)),
            probe_socket=environment.get("PROBE_SOCKET", ""),
            serve=serve_of(environment.get("SERVE", "")),
            hosts_in=_hosts_in(environment.get("HOSTS_IN", "")),
        )

    @property
    def vendor(self) -> Vendor:
        return COMPUTE_ENGINE if self.hosts_in else GKE

    @property
    def topic(self) -> str:
        return f"projects/{self.project}/topics/{Topic.FACTS.of(self.cluster)}"

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """To updates, and to questions."""
        names = (topic.subscription(self.cluster) for topic in (Topic.UPDATES, Topic.QUESTIONS))
        return tuple(f"projects/{self.project}/subscriptions/{name}" for name in names)


def _cluster(text: str) -> ClusterId:
    try:
        return cluster_id(text)
    except ValueError as error:
        raise ValueError(f"CLUSTER: {error}") from error


def serve_of(text: str) -> tuple[PodsOf, ...]:
    """Return whose pods get a slice each, as SERVE says with commas. Raise ValueError."""
    try:
        return tuple(PodsOf(each.strip()) for each in text.split(",") if each.strip())
    except ValueError as error:
        raise ValueError(f'SERVE: "{text}" has more than {", ".join(PodsOf)}') from error


def _hosts_in(text: str) -> str:
    if text and not _LOCATION.fullmatch(text):
        raise ValueError(f'HOSTS_IN: "{text}" is not projects/P/locations/L')
    return text


def _number(environment: Mapping[str, str], name: str, default: int, among: tuple[int, int]) -> float:
    text = environment.get(name) or str(default)
    least, most = among
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not least <= number <= most:
        raise ValueError(f'{name}: "{text}" is not a number from {least} to {most}')
    return number
