"""Delivers notifications to targets outside the cluster: only `notify` does."""

from __future__ import annotations

from typing import Protocol

from tpu_slices.domain.model.notifications import Notification


class Delivery(Protocol):
    def deliver(self, notification: Notification) -> None:
        """Deliver a notification to its target, which may have it already.

        Temporary: the target may take it later. Permanent: it never will. Neither has an address or a secret of the
        target in its text, nor what it answered.
        """
