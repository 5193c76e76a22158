"""The relay's calls in a test's own process, which wait for the API server as long as tests do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from infra.local.patience import PATIENCE_SECONDS
from relay import cluster, watch
from relay.node_groups import calls

PATIENCE = (PATIENCE_SECONDS, PATIENCE_SECONDS)
"""To connect, and to answer."""


@contextmanager
def patient_relay() -> Iterator[None]:
    """Let the relay's calls wait: a deployed relay gives up soon and comes back, a test asks once."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TIMEOUTS", "SHORT_TIMEOUTS", "LIST_TIMEOUTS"):
            patch.setattr(cluster, name, PATIENCE)
        for name in ("TIMEOUTS", "LIST_TIMEOUTS"):
            patch.setattr(calls, name, PATIENCE)
        for name in ("CONNECT_SECONDS", "LIST_SECONDS"):
            patch.setattr(watch, name, PATIENCE_SECONDS)
        yield
