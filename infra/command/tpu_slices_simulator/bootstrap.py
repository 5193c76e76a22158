"""The bootstrap tokens of a cluster in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpu_slices.ports.errors import Temporary


class FakeBootstrap:
    """As `relay.cluster.Cluster`: what it does with Secrets, of which it can read none."""

    def __init__(self) -> None:
        self.secrets: dict[str, Mapping[str, Any]] = {}
        self.refuses: Exception | None = None
        """What every call raises."""

    def ca_hashes(self) -> tuple[str, ...]:
        self._fail()
        return (f"sha256:{'5a' * 32}",)

    def create_token(self, secret: Mapping[str, Any]) -> None:
        self._fail()
        name = secret["metadata"]["name"]
        if name in self.secrets:
            raise Temporary("the API server refused: 409 Conflict")
        self.secrets[name] = secret

    def delete_tokens(self, selector: str) -> None:
        self._fail()
        wanted = {key: value for key, _, value in (each.partition("=") for each in selector.split(","))}
        self.secrets = {
            name: secret
            for name, secret in self.secrets.items()
            if not secret["metadata"]["labels"].items() >= wanted.items()
        }

    def _fail(self) -> None:
        if self.refuses is not None:
            raise self.refuses
