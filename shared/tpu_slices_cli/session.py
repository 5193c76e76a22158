"""What a command works with: opened when it is first needed, so that `plan` needs no project and no network."""

from __future__ import annotations

import os
from functools import cached_property

import click

from tpu_slices.app import wiring
from tpu_slices.app.settings import Settings, SettingsError
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.deps import ReconcileDeps
from tpu_slices.ports.store import SettingsStore


class Session:
    """One run of `slices`."""

    def __init__(self, project: str | None) -> None:
        self._project = project

    @cached_property
    def settings(self) -> Settings:
        environment = {**os.environ, "GOOGLE_CLOUD_PROJECT": self._project or ""}
        try:
            return Settings.from_env(environment)
        except SettingsError as missing:
            raise click.UsageError(f"{missing}, or use --project") from missing

    @cached_property
    def deps(self) -> ReconcileDeps:
        return wiring.build_reconcile_deps(self.settings)

    @cached_property
    def written(self) -> SettingsStore:
        return wiring.build_settings_store(self.settings)

    def cluster(self, named: str | None) -> ClusterId:
        """Give the cluster that was named, or the only one there is."""
        if named is not None:
            return ClusterId(named)
        known = self.deps.store.clusters()
        if len(known) == 1:
            return known[0]
        choices = ", ".join(known) or "none yet: `slices configure FILE` makes one"
        raise click.UsageError(f"which cluster? Name it with --cluster: {choices}")
