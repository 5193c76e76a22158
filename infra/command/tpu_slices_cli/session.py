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
from tpu_slices_cli.gcloud.configuration import Project, project_of
from tpu_slices_cli.gcloud.operator import operator
from tpu_slices_cli.screen import log_to_standard_error
from tpu_slices_cli.text import did_you_mean

if TYPE_CHECKING:
    from tpu_slices.domain.model.clusters import ClusterSettings
    from tpu_slices.ports.bookings import BookingAdviser
    from tpu_slices.ports.clock import Clock
    from tpu_slices.ports.deps import ReconcileDeps
    from tpu_slices.ports.log_events import LogLines
    from tpu_slices.ports.messaging import Messaging
    from tpu_slices.ports.settings_store import SettingsStore


class Session:
    """One run of `slices`: its settings and dependencies."""

    def __init__(self, project: str | None) -> None:
        self._named = project
        self._clusters: dict[ClusterId, ClusterSettings | None] = {}
        self._advisers: dict[str, BookingAdviser | None] = {}

    @cached_property
    def project(self) -> Project | None:
        """The project that is asked, and what named it."""
        return project_of(self._named, os.environ, Path.home())

    @cached_property
    def settings(self) -> Settings:
        environment = {**os.environ, "GOOGLE_CLOUD_PROJECT": self.project.id if self.project else ""}
        try:
            return Settings.from_env(environment)
        except SettingsError as error:
            raise click.UsageError(f"{error}, or use --project or `gcloud config set project`") from error

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

    def adviser(self, project: str) -> BookingAdviser | None:
        """Return what knows when hosts could be booked; None: nothing does here. Temporary: no credentials."""
        from tpu_slices.app import wiring

        if project not in self._advisers:
            settings = Settings.from_env({**os.environ, "GOOGLE_CLOUD_PROJECT": project})
            self._advisers[project] = wiring.build_booking_adviser(settings)
        return self._advisers[project]

    @cached_property
    def clock(self) -> Clock:
        from tpu_slices.adapters.clock import SystemClock

        return SystemClock()

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
        """Return the named cluster, or the only one; UsageError: it is unknown, or there are none or several."""
        known = self.clusters(named)
        if len(known) > 1:
            raise click.UsageError(f"several clusters are configured: use --cluster with one of {', '.join(known)}")
        return known[0]

    def clusters(self, named: str | None = None) -> tuple[ClusterId, ...]:
        """Return the named cluster, or all that have settings or slices; UsageError: it is not known, or there is none.

        Slices may stand in a cluster whose settings are gone.
        """
        store = self.deps.store
        configured = store.clusters()
        if named in configured:
            return (ClusterId(str(named)),)
        known = tuple(sorted({*configured, *store.clusters_with_slices()}))
        if not known:
            raise click.UsageError(
                f"no cluster is configured in {self.project}: use `slices configure FILE`, or --project if another "
                "project has the records"
            )
        if named is None:
            return known
        if named not in known:
            raise click.UsageError(f"no cluster {named} in {self.project}: {did_you_mean(named, known)}")
        return (ClusterId(named),)
