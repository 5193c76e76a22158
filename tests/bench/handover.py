"""How soon a slot that is free has its next operation, on the whole local stack: its floor is an operation at any time.

Simulated: GKE, whose operations take five seconds, the cluster and JobSet's controller. Real: as in `path`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from infra.local.borrowed import DEMO_NAMESPACE
from infra.local.clients.api import Api
from infra.local.demo.http import get_json
from infra.local.demo.vendors import call
from infra.local.plan import REPOSITORY, Plan
from infra.local.stack import Stack, running
from tests.bench.measures import Measure, measure
from tests.examples.cluster import seed
from tests.manifests import a_manifest

SLICES, SLOTS, SECONDS = 30, 5, 5.0
PATIENCE_SECONDS = 180.0
PACE = (
    *("--create-seconds", str(SECONDS), "--join-seconds", "0.2", "--ready-seconds", "0.2", "--chips-seconds", "0.2"),
    *("--log-seconds", "0.1"),
)


def rows() -> Iterator[Measure]:
    """Yield how long the creations of one JobSet's slices took, and the seconds from an end to the next creation."""
    with tempfile.TemporaryDirectory() as state:
        plan = Plan(root=REPOSITORY, state=Path(state), sweep_seconds=60, gke_arguments=PACE)
        with running(plan, partial(seed, limits={"operations": SLOTS})) as stack:
            created = _created(stack)
    freed = (at + SECONDS for at in created)
    waits = [at - end for at, end in zip(created[SLOTS:], freed, strict=False)]
    name = f"1 x {SLICES}, {SLOTS} slots, {SECONDS:g} s each"
    yield measure(f"{name}: created", "s", [created[-1] - created[0]], [(SLICES // SLOTS - 1) * SECONDS])
    yield measure(f"{name}: hand-over", "s", waits)


def _created(stack: Stack) -> list[float]:
    """Return when each of the slices was created."""
    with closing(Api.of(stack.addresses.kubeconfig)) as api:
        api.apply("namespaces", {"metadata": {"name": DEMO_NAMESPACE}}, manager="bench")
        metadata = {"name": "train", "namespace": DEMO_NAMESPACE}
        api.apply("jobsets", {**a_manifest(slices=SLICES), "metadata": metadata}, manager="bench")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            calls = [call(each) for each in get_json(f"{stack.addresses.buttons}/calls")["calls"]]
            created = [each.at.timestamp() for each in calls if (each.method, each.code) == ("CreateNodePool", "OK")]
            if len(created) == SLICES:
                return sorted(created)
            assert time.monotonic() < deadline, f"{len(created)} of {SLICES} were created"
            time.sleep(0.5)
