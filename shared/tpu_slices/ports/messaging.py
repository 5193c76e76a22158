"""The topics, subscriptions and schedules that are deployed for a cluster: only `slices` asks."""

from __future__ import annotations

from typing import Protocol

from tpu_slices.domain.model.slices import ClusterId

RUNS = "ENABLED"
"""The state of a schedule that runs, in Cloud Scheduler's words."""


class Messaging(Protocol):
    """Looks at what is deployed. Permanent: whoever asks may not. Temporary: it is not known."""

    def missing(self, cluster: ClusterId) -> tuple[str, ...]:
        """Return what is missing of a cluster's topics and subscriptions, each by kind and name."""

    def schedule(self, cluster: ClusterId) -> str | None:
        """Return the state of a cluster's schedule, RUNS if it runs; None: there is none."""
