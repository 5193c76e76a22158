"""Google's clients in a test's own process, which wait for emulators as long as tests do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from tpu_slices.adapters import firestore_settings, pubsub
from tpu_slices.adapters.compute import api as compute_api
from tpu_slices.adapters.compute import backend as compute
from tpu_slices.adapters.compute import joining as compute_joining
from tpu_slices.adapters.firestore_reads import FirestoreReads
from tpu_slices.adapters.gke import backend as gke
from tpu_standins.patience import PATIENCE_SECONDS

AGAIN_SECONDS = 0.01
"""Until a read is repeated."""
CHANGE: Mapping[str, Any] = {"timeout": PATIENCE_SECONDS, "retry": None}


@contextmanager
def patient_adapters() -> Iterator[None]:
    """Let each call wait, and what is tried again be tried soon: a function gives up, and comes back with its message.

    An outage that does not end by itself would hang those that are tried again: let it be another error.
    """
    with pytest.MonkeyPatch.context() as patch:
        for api in (gke, compute_api):
            retry = api._READ["retry"].with_delay(AGAIN_SECONDS, AGAIN_SECONDS).with_timeout(PATIENCE_SECONDS)
            patch.setattr(api, "_READ", {"timeout": PATIENCE_SECONDS, "retry": retry})
        patch.setattr(gke, "_CHANGE", CHANGE)
        for module in (compute_api, compute, compute_joining):
            patch.setattr(module, "CHANGE", CHANGE)
        patch.setattr(firestore_settings, "_SECONDS", PATIENCE_SECONDS)
        defaults = FirestoreReads.__init__.__kwdefaults__
        assert defaults is not None
        patch.setitem(defaults, "timeout", PATIENCE_SECONDS)
        for waits in (pubsub.PubSubPublisher.__init__, pubsub.connect_publisher):
            patch.setattr(waits, "__defaults__", (PATIENCE_SECONDS,))
        yield
