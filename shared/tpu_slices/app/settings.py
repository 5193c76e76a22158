"""The environment of the functions and of the command `slices`, read once. The relay has settings of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class SettingsError(ValueError):
    """A required variable is not set; the text names it and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The environment variables."""

    project: str
    """GOOGLE_CLOUD_PROJECT: the project of Firestore and Pub/Sub."""
    gke_emulator: str | None = None
    """GKE_EMULATOR_HOST: host:port of a GKE emulator that speaks gRPC without TLS; set by the local stack only."""
    compute_emulator: str | None = None
    """COMPUTE_EMULATOR_HOST: host:port of an emulator of Compute Engine, over HTTP; set by the local stack only.

    The Pub/Sub and Firestore clients read PUBSUB_EMULATOR_HOST and FIRESTORE_EMULATOR_HOST themselves.
    """
    targets: str = ""
    """NOTIFICATION_TARGETS: the file with the targets of notifications, which `notify` reads; empty: there is none."""
    emulated: bool = False
    """FIRESTORE_EMULATOR_HOST is set: the functions run here, and Cloud Logging has none of their lines."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Settings:
        project = env.get("GOOGLE_CLOUD_PROJECT", "")
        if not project:
            raise SettingsError("GOOGLE_CLOUD_PROJECT is not set: set it to the id of the project that has the records")
        return cls(
            project=project,
            gke_emulator=env.get("GKE_EMULATOR_HOST") or None,
            compute_emulator=env.get("COMPUTE_EMULATOR_HOST") or None,
            targets=env.get("NOTIFICATION_TARGETS", ""),
            emulated=bool(env.get("FIRESTORE_EMULATOR_HOST")),
        )
