"""The webhook's settings, from environment variables. Those of Kubernetes' client are read by the client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from relay.settings import serve_of
from relay.webhook.authorities import LIFE
from relay.webhook.placing import Options
from tpu_slices.domain.model.gangs import Gangs
from tpu_slices.domain.planning.host_labels import is_label_value

PORT = 10250
"""A private cluster's nodes can be reached there from its control plane (and at 443) without a firewall rule:
cloud.google.com/kubernetes-engine/docs/how-to/private-clusters, "Adding firewall rules for specific use cases"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All are optional."""

    namespace: str
    """NAMESPACE (tpu-slice-provisioner), where the Secret of its certificates is."""
    address: tuple[str, int]
    """HOST (0.0.0.0) and PORT (10250), where it listens."""
    names: tuple[str, ...]
    """NAMES (webhook.NAMESPACE.svc), by which the API server calls it: DNS names and IP addresses, with commas."""
    options: Options
    """STRIP_SPOT_AND_RESERVATION (false), `true` together with force_on_demand in the cluster's settings; LOCATION_HINT
    (none), where Google should place slices, as agreed with Google; SERVE (none), whose pods get a slice each; GANGS
    (none), which workloads are gangs that do not say so: `multislice` or `none`."""
    life: timedelta
    """AUTHORITY_SECONDS (360 days), how long a certificate authority is trusted. It is renewed after two thirds."""
    drain_seconds: float
    """DRAIN_SECONDS (15), how long it goes on after a signal: the API server learns late that it is about to end."""
    project: str
    version: str
    """GOOGLE_CLOUD_PROJECT (none), and VERSION (none), of what was deployed: each log line has it."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Return the settings; raise ValueError, naming what is wrong."""
        namespace = environment.get("NAMESPACE") or "tpu-slice-provisioner"
        names = [each.strip() for each in environment.get("NAMES", "").split(",")]
        return cls(
            namespace=namespace,
            address=(environment.get("HOST") or "0.0.0.0", _number(environment, "PORT", PORT, (0, 65535))),
            names=tuple(filter(None, names)) or (f"webhook.{namespace}.svc",),
            options=Options(
                strips_capacity=_flag(environment, "STRIP_SPOT_AND_RESERVATION"),
                location_hint=_hint(environment.get("LOCATION_HINT", "")),
                serve=serve_of(environment.get("SERVE", "")),
                gangs=_gangs(environment.get("GANGS") or Gangs.NONE),
            ),
            life=timedelta(seconds=_number(environment, "AUTHORITY_SECONDS", int(LIFE.total_seconds()), (10, 1 << 30))),
            drain_seconds=_number(environment, "DRAIN_SECONDS", 15, (0, 600)),
            project=environment.get("GOOGLE_CLOUD_PROJECT", ""),
            version=environment.get("VERSION", ""),
        )


def _flag(environment: Mapping[str, str], name: str) -> bool:
    text = environment.get(name) or "false"
    if text not in {"true", "false"}:
        raise ValueError(f'{name}: "{text}" is neither true nor false')
    return text == "true"


def _hint(text: str) -> str:
    if not is_label_value(text):
        raise ValueError(f'LOCATION_HINT: "{text}" cannot be the value of a label')
    return text


def _gangs(text: str) -> Gangs:
    try:
        return Gangs(text)
    except ValueError as error:
        raise ValueError(f'GANGS: "{text}" is none of {", ".join(Gangs)}') from error


def _number(environment: Mapping[str, str], name: str, default: int, among: tuple[int, int]) -> int:
    text = environment.get(name) or str(default)
    least, most = among
    if not (text.isascii() and text.isdigit() and least <= int(text[:12]) <= most):
        raise ValueError(f'{name}: "{text}" is not a whole number from {least} to {most}')
    return int(text)
