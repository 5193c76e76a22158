"""Bursts on the whole local stack: how well slots are used, what comes back, and what each program takes for a slice.

Simulated: GKE, whose operations take seconds, the cluster and JobSet's controller. Real: as in `path`. The floor of a
creation is a slot that is never free; the slots and the seconds of an operation are chosen so that this machine's
processors are not what is measured, except for the largest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from infra.local.borrowed import DEMO_NAMESPACE
from infra.local.clients.api import Api
from infra.local.demo.http import get_json
from infra.local.demo.vendors import call
from infra.local.demo.view import OK, Call
from infra.local.kubelet.keys import RUN_SECONDS
from infra.local.plan import REPOSITORY, Plan
from infra.local.stack import Stack, running
from tests.bench.measures import Measure, measure
from tests.bench.soak import cpu_seconds
from tests.examples.cluster import database, seed
from tests.manifests import a_manifest
from tpu_slices.adapters.firestore import FirestoreStore
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.reconciling.brake import too_many
from tpu_slices.ports.log_events import LogEvent
from tpu_slices.wire.workloads import Json

CREATE, DELETE = "CreateNodePool", "DeleteNodePool"
LOOK_SECONDS, PATIENCE_SECONDS = 2.0, 120.0
OURS = ("function-receive", "function-reconcile", "function-sweep", "relay")


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """JobSets that are created at once, and deleted at once when all their slices are READY."""

    jobsets: int
    each: int = 1
    slots: int
    seconds: float
    """Of an operation of GKE."""

    @property
    def slices(self) -> int:
        return self.jobsets * self.each

    @property
    def floor(self) -> float:
        """From the first operation's start to the last one's, if each slot takes its next one at once."""
        return (self.slices - 1) // self.slots * self.seconds

    @property
    def name(self) -> str:
        return f"{self.jobsets:,} x {self.each}, {self.slots} slots, {self.seconds:g} s"


BURSTS = (
    Burst(jobsets=1, each=256, slots=5, seconds=5),
    Burst(jobsets=64, slots=9, seconds=5),
    Burst(jobsets=1_000, slots=9, seconds=5),
    Burst(jobsets=5_000, slots=9, seconds=2),
)


def rows(bursts: Sequence[Burst] = BURSTS) -> Iterator[Measure]:
    for burst in bursts:
        with tempfile.TemporaryDirectory() as state:
            plan = Plan(root=REPOSITORY, state=Path(state), sweep_seconds=60, gke_arguments=_pace(burst))
            with running(plan, partial(seed, limits={"operations": burst.slots})) as stack:
                yield from _Run(burst, stack).measured()


def _pace(burst: Burst) -> tuple[str, ...]:
    lasts = str(burst.seconds)
    return (
        *("--create-seconds", lasts, "--delete-seconds", lasts, "--concurrent-operations", str(burst.slots)),
        *("--join-seconds", "0.2", "--ready-seconds", "0.2", "--chips-seconds", "0.2", "--log-seconds", "0.1"),
    )


class _Run:
    """A burst on a stack that runs."""

    def __init__(self, burst: Burst, stack: Stack) -> None:
        self._burst, self._stack = burst, stack
        self._calls: Sequence[Call] = ()
        self._mebibytes = 0.0

    def measured(self) -> Iterator[Measure]:
        burst, before = self._burst, self._spent()
        with closing(Api.of(self._stack.addresses.kubeconfig)) as api:
            api.apply("namespaces", {"metadata": {"name": DEMO_NAMESPACE}}, manager="bench")
            for number in range(burst.jobsets):
                metadata = {"name": f"train-{number}", "namespace": DEMO_NAMESPACE}
                api.apply("jobsets", {**_long_lasting(burst.each), "metadata": metadata}, manager="bench")
            created = self._until_all(CREATE)
            yield from self._pace_of("created", created)
            ready = self._until(burst.slices, lambda store, own: store.phase_count(own, Phase.READY), "are READY")
            yield self._row("from the last creation until all slices are READY", "s", [ready])
            spent = {name: taken - before[name] for name, taken in self._spent().items()}
            for number in range(burst.jobsets):
                api.delete("jobsets", DEMO_NAMESPACE, f"train-{number}")
            if too_many(burst.jobsets, live=0):
                self._confirm()
            deleted = self._until_all(DELETE)
        yield from self._pace_of("deleted", deleted)
        refused = [each for each in self._calls if each.method in (CREATE, DELETE) and each.code != OK]
        yield self._row("refused by GKE", "calls", [len(refused)])
        for method, count in sorted(Counter(each.method for each in self._calls).items()):
            yield self._row(f"{method}, of a slice", "calls", [count / burst.slices])
        yield self._row("decisions, of a slice", "calls", [self._decisions() / burst.slices])
        for name, seconds in spent.items():
            yield self._row(f"{name}, of a slice until READY", "ms", [seconds / burst.slices * 1e3])
        yield self._row("memory of functions and relay, at most", "MiB", [self._mebibytes])

    def _row(self, what: str, unit: str, found: Sequence[float], floor: Sequence[float] = ()) -> Measure:
        return measure(f"{self._burst.name}: {what}", unit, found, floor)

    def _pace_of(self, what: str, at: Sequence[float]) -> Iterator[Measure]:
        """Yield how long all operations of a kind took to start, and the seconds from an end to the next start."""
        burst = self._burst
        waits = [start - (before + burst.seconds) for before, start in zip(at, at[burst.slots :], strict=False)]
        yield self._row(what, "s", [at[-1] - at[0]], [burst.floor])
        yield self._row(f"{what}: hand-over", "s", waits)

    def _until_all(self, method: str) -> list[float]:
        """Return when each pool was created or deleted. Raise AssertionError if one was twice, or none for minutes."""
        found: Counter[str] = Counter()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(found) < self._burst.slices:
            assert time.monotonic() < deadline, f"{len(found)} of {self._burst.slices}: {method}"
            time.sleep(LOOK_SECONDS)
            self._mebibytes = max(self._mebibytes, self._shares())
            self._calls = [call(each) for each in get_json(f"{self._stack.addresses.buttons}/calls")["calls"]]
            taken = [each for each in self._calls if (each.method, each.code) == (method, OK)]
            if len(taken) > found.total():
                deadline = time.monotonic() + PATIENCE_SECONDS
            found = Counter(each.pool for each in taken)
        assert len(found) == found.total(), f"more than once: {[each for each in found if found[each] > 1]}"
        return sorted(each.at.timestamp() for each in taken)

    def _until(self, awaited: int, count: Callable[[FirestoreStore, ClusterId], int], what: str) -> float:
        """Return the seconds until so many are on record. Raise AssertionError if they are not for minutes."""
        began, cluster = time.monotonic(), ClusterId(self._stack.addresses.cluster_id)
        with database(self._stack.addresses) as client:
            store = FirestoreStore(client)
            while (found := count(store, cluster)) != awaited:
                passed = time.monotonic() - began
                assert passed < PATIENCE_SECONDS, f"{found} instead of {awaited} {what}"
                time.sleep(LOOK_SECONDS / 4)
        return time.monotonic() - began

    def _confirm(self) -> None:
        """Let the deletions go on, as an operator does, who is asked if so many JobSets are deleted at once.

        Once all are recorded: those that are recorded later are too many again.
        """
        self._until(0, FirestoreStore.live_count, "JobSets are live")
        command = [
            sys.executable,
            "-m",
            "tpu_slices_cli",
            "confirm-deletions",
            "--yes",
        ]
        environment = {**os.environ, **self._stack.addresses.environment(), "PYTHONPATH": str(REPOSITORY)}
        deadline, said = time.monotonic() + PATIENCE_SECONDS, ""
        while "go on" not in said:
            assert time.monotonic() < deadline, said
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            said = done.stdout + done.stderr

    def _decisions(self) -> int:
        lines = (self._stack.addresses.folder / "logs" / "function-reconcile.log").read_text().splitlines()
        events = (json.loads(line).get("event") for line in lines if line.startswith("{"))
        return Counter(events)[LogEvent.SLICE_DECIDED]

    def _shares(self) -> float:
        """Return the memory of functions and relay: what processes share is divided among them."""
        ours = [each for each in self._stack.processes.children() if each.program.name in OURS]
        return sum(share_mib(pid) for each in ours for pid in family(each.process.pid))

    def _spent(self) -> dict[str, float]:
        """Return the seconds of a processor that each program took so far."""
        children = self._stack.processes.children()
        return {each.program.name: sum(map(cpu_seconds, family(each.process.pid))) for each in children}


def _long_lasting(slices: int) -> Json:
    """Return a JobSet whose pods run until they are deleted."""
    manifest = a_manifest(slices=slices)
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["template"]["metadata"] = {"annotations": {RUN_SECONDS: "86400"}}
    return manifest


def share_mib(pid: int) -> float:
    """Return the memory of a process, and its share of what it has in common with others."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def family(pid: int) -> list[int]:
    """Return a process and those that it started: functions-framework serves in a process of its own."""
    return [pid, *(each.pid for each in psutil.Process(pid).children(recursive=True))]
