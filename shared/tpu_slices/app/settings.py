"""What the environment says, read once; every variable that the functions and the relay read is named here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class SettingsError(ValueError):
    """The environment lacks something; the text names every variable and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The environment of a function."""

    project: str
    """GOOGLE_CLOUD_PROJECT: where Firestore and Pub/Sub live."""
    gke_emulator: str | None = None
    """GKE_EMULATOR_HOST: host:port of a GKE that speaks gRPC without TLS; set by the local stack only.

    The Pub/Sub and Firestore clients read PUBSUB_EMULATOR_HOST and FIRESTORE_EMULATOR_HOST themselves.
    """

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Settings:
        project = env.get("GOOGLE_CLOUD_PROJECT", "")
        if not project:
            raise SettingsError("GOOGLE_CLOUD_PROJECT is not set: give it the id of the project with the records")
        return cls(project=project, gke_emulator=env.get("GKE_EMULATOR_HOST") or None)
