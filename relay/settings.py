"""What the relay is told by its environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from shared.domain.slices import ClusterId


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """CLUSTER and GOOGLE_CLOUD_PROJECT; optionally WATCH_SILENCE_SECONDS. Google's and Kubernetes' own are theirs."""

    project: str
    cluster: ClusterId
    watch_silence: float = 90.0
    """Seconds after which a watch without any sign is given up and listed again."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Read them; a ValueError names what is missing or wrong."""
        missing = [name for name in ("CLUSTER", "GOOGLE_CLOUD_PROJECT") if not environment.get(name)]
        if missing:
            raise ValueError(f"not set in the environment: {', '.join(missing)}")
        silence = environment.get("WATCH_SILENCE_SECONDS", "90")
        try:
            seconds = float(silence)
        except ValueError:
            seconds = 0
        if not 1 <= seconds <= 200:
            raise ValueError(f'WATCH_SILENCE_SECONDS: "{silence}" is no number from 1 to 200')
        return cls(
            project=environment["GOOGLE_CLOUD_PROJECT"],
            cluster=ClusterId(environment["CLUSTER"]),
            watch_silence=seconds,
        )

    @property
    def topic(self) -> str:
        return f"projects/{self.project}/topics/facts-{self.cluster}"

    @property
    def subscription(self) -> str:
        return f"projects/{self.project}/subscriptions/relay-{self.cluster}"
