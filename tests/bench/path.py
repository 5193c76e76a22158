"""From a pod that becomes unschedulable to CreateNodePool, on the whole local stack; its floor decides nothing.

Simulated: GKE, the cluster and JobSet's controller. Real: both emulators, functions-framework, Google's clients. The
path has five hops: watch, publish, push, publish, push; and the call to GKE.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from infra.local.borrowed import DEMO_NAMESPACE
from infra.local.demo.http import get_json
from infra.local.demo.vendors import call
from infra.local.demo.watch import Witness, witnessed
from infra.local.plan import REPOSITORY, Plan
from infra.local.stack import Stack, running
from tests.bench.measures import Measure, measure
from tests.examples.cluster import seed
from tests.manifests import a_manifest
from tpu_standins.clients.api import Api

SAMPLES, WARM_UP = 100, 5
PATIENCE_SECONDS, SETTLED_SECONDS = 60.0, 1.5
"""Until a sample has failed; from a creation until all that follows its end is done."""
FLOOR = Path(__file__).parent / "floor"
AT_ONCE = 64
PACE = (
    *("--create-seconds", "0.3", "--join-seconds", "600", "--log-seconds", "0.1"),
    *("--concurrent-operations", str(AT_ONCE)),
)
"""No host joins, and no creation ends: what is measured is not disturbed by slices that were created before."""


def rows() -> Iterator[Measure]:
    """Yield the percentiles of the path in milliseconds, each with that of the floor."""
    floor, found = _floor(), _measured(REPOSITORY)
    for percent in (50, 90, 99):
        share = percent / 100
        name = f"pod unschedulable to CreateNodePool, p{percent}"
        yield measure(name, "ms", [quantile(found, share)], [quantile(floor, share)])


def quantile(found: Sequence[float], share: float) -> float:
    return sorted(found)[min(len(found) - 1, int(share * len(found)))]


def _floor() -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, target in (("functions", FLOOR), ("relay", FLOOR), ("infra", REPOSITORY), ("tests", REPOSITORY)):
            (root / name).symlink_to(target / name)
        return _measured(root)


def _measured(root: Path) -> list[float]:
    """Return the milliseconds that one JobSet after the other took, the first ones left out."""
    with tempfile.TemporaryDirectory() as state, _stack(root, Path(state)) as stack:
        addresses = stack.addresses
        clock = lambda: datetime.now(UTC)  # noqa: E731
        with closing(Api.of(addresses.kubeconfig)) as api, witnessed(api, clock) as witness:
            api.apply("namespaces", {"metadata": {"name": DEMO_NAMESPACE}}, manager="bench")
            taken = [_sample(number, api, witness, stack) for number in range(WARM_UP + SAMPLES)]
    return taken[WARM_UP:]


@contextmanager
def _stack(root: Path, state: Path) -> Iterator[Stack]:
    plan = Plan(root=root, state=state, sweep_seconds=60, gke_arguments=PACE)
    with running(plan, partial(seed, limits={"operations": AT_ONCE})) as stack:
        yield stack


def _sample(number: int, api: Api, witness: Witness, stack: Stack) -> float:
    name = f"train-{number}"
    manifest = a_manifest()
    api.apply("jobsets", {**manifest, "metadata": {"name": name, "namespace": DEMO_NAMESPACE}}, manager="bench")
    deadline = time.monotonic() + PATIENCE_SECONDS
    for _ in itertools.count():
        calls = [call(each) for each in get_json(f"{stack.addresses.buttons}/calls")["calls"]]
        created = [each for each in calls if (each.method, each.code) == ("CreateNodePool", "OK")]
        noticed = [at for (jobset, *_), at in witness.noticed.items() if jobset == name]
        if len(created) > number and noticed:
            time.sleep(SETTLED_SECONDS)
            return (created[number].at - noticed[0]).total_seconds() * 1e3
        assert time.monotonic() < deadline, f"{name}: {len(created)} of {number + 1} pools; unschedulable: {noticed}"
        time.sleep(0.05)
    raise AssertionError
