"""The dependencies of a command, opened on first use, so that `plan` with files needs no project and no network."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tpu_slices.app.settings import Settings, SettingsError
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.ports.errors import Permanent
from tpu_slices_cli.operator import operator
from tpu_slices_cli.screen import log_to_standard_error

if TYPE_CHECKING:
    from tpu_slices.domain.model.clusters import ClusterSettings
    from tpu_slices.ports.deps import ReconcileDeps
    from tpu_slices.ports.log_events import LogLines
    from tpu_slices.ports.messaging import Messaging
    from tpu_slices.ports.store import SettingsStore


class Session:
    """One run of `slices`: its settings and dependencies."""

    def __init__(self, project: str | None) -> None:
        self._project = project
        self._clusters: dict[ClusterId, ClusterSettings | None] = {}

    @cached_property
    def settings(self) -> Settings:
        environment = {**os.environ, "GOOGLE_CLOUD_PROJECT": self._project or ""}
        try:
            return Settings.from_env(environment)
        except SettingsError as error:
            raise click.UsageError(f"{error}, or use --project") from error

    @cached_property
    def deps(self) -> ReconcileDeps:
        log_to_standard_error()
        from tpu_slices.app import wiring

        return wiring.build_reconcile_deps(self.settings)

    def settings_of(self, cluster: ClusterId) -> ClusterSettings | None:
        """Return a cluster's settings, read once; None: it has none, or none that can be parsed."""
        if cluster not in self._clusters:
            try:
                self._clusters[cluster] = self.deps.store.settings(cluster)
            except Permanent:
                self._clusters[cluster] = None
        return self._clusters[cluster]

    @cached_property
    def written(self) -> SettingsStore:
        from tpu_slices.app import wiring

        return wiring.build_settings_store(self.settings)

    @cached_property
    def lines(self) -> LogLines | None:
        from tpu_slices.app import wiring

        return wiring.build_log_lines(self.settings)

    @cached_property
    def messaging(self) -> Messaging:
        from tpu_slices.app import wiring

        return wiring.build_messaging(self.settings)

    @cached_property
    def operator(self) -> str:
        """Who runs the command."""
        return operator(os.environ, Path.home())

    def cluster(self, named: str | None) -> ClusterId:
        """Return the named cluster, or the only one that is configured; UsageError: there is none, or several."""
        if named is not None:
            return ClusterId(named)
        known = self.deps.store.clusters()
        if len(known) == 1:
            return known[0]
        if not known:
            raise click.UsageError("no cluster is configured: use `slices configure FILE`")
        raise click.UsageError(f"several clusters are configured: use --cluster with one of {', '.join(known)}")
