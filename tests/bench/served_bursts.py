"""Bursts on the whole local stack: how well slots are used, what comes back, and what each program takes for a slice.

Simulated: GKE, whose operations take seconds, the cluster and JobSet's controller. Real: as in `path`. The floor is
slots that are never free, each operation taking as long as it took: GKE ends a creation when all hosts have joined. The
slots and the seconds of an operation are chosen so that this machine's processors are not what is measured, except for
the largest.
"""

from __future__ import annotations

import heapq
import json
import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import grpc
import psutil
from google import pubsub_v1
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

from infra.local.borrowed import DEMO_NAMESPACE
from infra.local.demo.http import get_json
from infra.local.demo.vendors import call
from infra.local.demo.view import OK, Call
from infra.local.plan import REPOSITORY, Plan
from infra.local.stack import Stack, running
from tests.bench.measures import Measure, measure
from tests.bench.soak import cpu_seconds
from tests.builders import a_request
from tests.examples.cluster import database, seed
from tests.manifests import a_manifest
from tpu_slices.adapters.firestore import FirestoreStore
from tpu_slices.domain.model.facts import EXCLUSIVE
from tpu_slices.domain.model.reasons import Phase
from tpu_slices.domain.model.slices import ClusterId
from tpu_slices.domain.planning.host_labels import NODE_POOL
from tpu_slices.ports.log_events import LogEvent
from tpu_standins.clients.api import Api
from tpu_standins.clients.objects import Object
from tpu_standins.kubelet.keys import RUN_SECONDS

CREATE, DELETE = "CreateNodePool", "DeleteNodePool"
KINDS = {CREATE: "CREATE_NODE_POOL", DELETE: "DELETE_NODE_POOL"}
LOOK_SECONDS, LOOK_SECONDS_OF_A_CALL, PATIENCE_SECONDS = 2.0, 0.002, 240.0
"""Between two looks: more, the more calls there are to read; until a burst that stands still has failed.

A creation that is in doubt is settled up to three minutes after its pool is gone.
"""
OURS = ("function-receive", "function-reconcile", "function-sweep", "relay")


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """JobSets that are created at once."""

    jobsets: int
    each: int = 1
    slots: int
    seconds: float
    """Of an operation of GKE."""
    topology: str = "4x4"
    """Of a slice of v6e, four chips a host."""
    runs: float | None = None
    """How many seconds a JobSet runs before it completes; None: all are deleted at once when all slices are READY."""

    @property
    def slices(self) -> int:
        return self.jobsets * self.each

    @property
    def unit(self) -> str:
        """What counts are given for: Jobs that complete share slices."""
        return "slice" if self.runs is None else "Job"

    @property
    def name(self) -> str:
        runs = "" if self.runs is None else f", each runs {self.runs:g} s"
        return f"{self.jobsets:,} x {self.each} of {self.topology}, {self.slots} slots, {self.seconds:g} s{runs}"


BURSTS = (
    Burst(jobsets=1, each=256, slots=5, seconds=5),
    Burst(jobsets=64, slots=9, seconds=5),
    Burst(jobsets=1_000, slots=9, seconds=5, topology="2x2"),
    Burst(jobsets=300, slots=9, seconds=1, topology="2x2", runs=5),
    Burst(jobsets=5_000, slots=9, seconds=1, topology="2x2", runs=5),
)


@dataclass(frozen=True, slots=True, order=True)
class Operation:
    """Of GKE: when it began and when it ended, in seconds since 1970; infinity: not yet."""

    began: float
    ended: float
    kind: str


def floor(operations: Sequence[Operation], slots: int) -> float:
    """Return the seconds from the first operation to the last one, if each began as soon as a slot was free."""
    free = [0.0] * slots
    began = 0.0
    for each in operations:
        began = heapq.heappop(free)
        heapq.heappush(free, began + each.ended - each.began)
    return began


@dataclass(slots=True)
class Patience:
    """Waits for so many seconds, anew whenever what is seen has changed."""

    seconds: float
    now: Callable[[], float] = time.monotonic
    _seen: object = None
    _ends: float = 0.0

    def lasts(self, seen: object) -> bool:
        now = self.now()
        if seen != self._seen:
            self._seen, self._ends = seen, now + self.seconds
        return now < self._ends


def rows(bursts: Sequence[Burst] = BURSTS) -> Iterator[Measure]:
    for burst in bursts:
        with tempfile.TemporaryDirectory() as state:
            plan = Plan(root=REPOSITORY, state=Path(state), sweep_seconds=60, gke_arguments=_pace(burst))
            with running(plan, partial(seed, limits={"operations": burst.slots})) as stack:
                _without_backoff(stack)
                yield from _Run(burst, stack).measured()


def _without_backoff(stack: Stack) -> None:
    """Let what the relay does not acknowledge come again at once: else the emulator stands still in a large burst.

    It sends all that waits at once, whatever the client asks for; what the client holds for longer than a lease, it
    puts back, and with a retry policy it then looks at all of it with every message (pubsub-emulator 0.8.20: 8,000
    messages, 200 a second, are at 5 a second after 25 seconds, and each publication waits for seconds).
    """
    addresses = stack.addresses
    with grpc.insecure_channel(addresses.pubsub) as channel:
        subscriber = pubsub_v1.SubscriberClient(transport=SubscriberGrpcTransport(channel=channel))
        for what in ("relay", "questions"):
            name = subscriber.subscription_path(addresses.project, f"{what}-{addresses.cluster_id}")
            pulled = pubsub_v1.types.Subscription(name=name)
            subscriber.update_subscription(subscription=pulled, update_mask={"paths": ["retry_policy"]})
            assert "retry_policy" not in subscriber.get_subscription(subscription=name), name


def _pace(burst: Burst) -> tuple[str, ...]:
    lasts = str(burst.seconds)
    return (
        *("--create-seconds", lasts, "--delete-seconds", lasts, "--concurrent-operations", str(burst.slots)),
        *("--join-seconds", "0.2", "--ready-seconds", "0.2", "--chips-seconds", "0.2", "--log-seconds", "0.1"),
        *("--history-seconds", str(600 + burst.jobsets / 5)),  # nobody looks while JobSets are made, five a second
    )


class _Run:
    """A burst on a stack that runs."""

    def __init__(self, burst: Burst, stack: Stack) -> None:
        self._burst, self._stack = burst, stack
        self._calls: Sequence[Call] = ()
        self._operations: dict[str, Operation] = {}
        self._mebibytes = 0.0

    def measured(self) -> Iterator[Measure]:
        burst = self._burst
        with closing(Api.of(self._stack.addresses.kubeconfig)) as api:
            api.apply("namespaces", {"metadata": {"name": DEMO_NAMESPACE}}, manager="bench")
            for name in self._names():
                api.apply("jobsets", _jobset(name, burst), manager="bench")
            yield from self._standing(api) if burst.runs is None else self._passing(api)
        refused = [each for each in self._calls if each.method in (CREATE, DELETE) and each.code != OK]
        yield self._row("refused by GKE", "calls", [len(refused)])
        for method, count in sorted(Counter(each.method for each in self._calls).items()):
            yield self._row(f"{method}, of a {burst.unit}", "calls", [count / burst.slices])
        waited = self._waited()
        yield self._row(f"decisions, of a {burst.unit}", "calls", [len(waited) / burst.slices])
        yield self._row("a request to reconcile waited", "s", waited)
        yield self._row("a request to reconcile waited, at most", "s", [max(waited)])
        yield self._row("memory of functions and relay, at most", "MiB", [self._mebibytes])

    def _standing(self, api: Api) -> Iterator[Measure]:
        """Let all slices stand before the JobSets are deleted."""
        burst, before = self._burst, self._spent()
        self._until_all(CREATE)
        yield from self._pace_of("created", CREATE)
        ready = self._until(burst.slices, lambda store, own: store.phase_count(own, Phase.READY), "are READY")
        yield self._row("from the last creation until all slices are READY", "s", [ready])
        yield from self._processors("until READY", before)
        for name in self._names():
            api.delete("jobsets", DEMO_NAMESPACE, name)
        self._until_all(DELETE)
        yield from self._pace_of("deleted", DELETE)

    def _passing(self, api: Api) -> Iterator[Measure]:
        """Let the JobSets complete one by one, so that creations and deletions share the slots.

        One whose Job is served by the hosts that another has left needs no slice of its own.
        """
        before = self._spent()
        self._until_over(api)
        yield from self._pace_of("created and deleted", CREATE, DELETE)
        yield from self._processors("until it is deleted", before)

    def _names(self) -> list[str]:
        return [f"train-{number}" for number in range(self._burst.jobsets)]

    def _processors(self, until: str, before: Mapping[str, float]) -> Iterator[Measure]:
        slices = self._burst.slices
        for name, taken in self._spent().items():
            what = f"{name}, of a {self._burst.unit} {until}"
            yield self._row(what, "ms", [(taken - before[name]) / slices * 1e3])

    def _row(self, what: str, unit: str, found: Sequence[float], floor: Sequence[float] = ()) -> Measure:
        return measure(f"{self._burst.name}: {what}", unit, found, floor)

    def _pace_of(self, what: str, *methods: str) -> Iterator[Measure]:
        """Yield how long all operations of a kind took to start, and the seconds from an end to the next start."""
        slots, kinds = self._burst.slots, {KINDS[each] for each in methods}
        operations = sorted(each for each in self._operations.values() if each.kind in kinds)
        ends = sorted(each.ended for each in operations)
        waits = [each.began - ended for ended, each in zip(ends, operations[slots:], strict=False)]
        yield self._row(what, "s", [operations[-1].began - operations[0].began], [floor(operations, slots)])
        yield self._row(f"{what}: hand-over", "s", waits)

    def _until_all(self, method: str) -> None:
        """Wait until the pool of each slice was created, or deleted. Raise AssertionError if that stands still."""
        self._follow(lambda pools: (self._burst.slices - pools[method],), method)

    def _until_over(self, api: Api) -> None:
        """Wait until all JobSets have completed, are recorded so, and hold neither slice nor pool. As `_until_all`."""
        cluster = ClusterId(self._stack.addresses.cluster_id)
        with database(self._stack.addresses) as client:
            store = FirestoreStore(client)

            def left(pools: Counter[str]) -> Sequence[int]:
                seen = len(api.list("jobsets", DEMO_NAMESPACE)["items"]), pools[CREATE] - pools[DELETE]
                live = store.live_standings(cluster)
                return seen if any(seen) else (sum(1 for _ in live), store.slice_count(cluster))

            self._follow(left, CREATE, DELETE)

    def _follow(self, left: Callable[[Counter[str]], Sequence[int]], *methods: str) -> None:
        """Look at the calls until nothing is left; `left` is told how many pools were created, and how many deleted.

        Raise AssertionError if nothing happened for minutes, or if a pool was created or deleted twice.
        """
        taken: list[Call] = []
        pools, patience = Counter[str](), Patience(PATIENCE_SECONDS)
        while any(remains := left(pools)):
            assert patience.lasts((remains, pools)), f"{remains} left, {pools} of {self._burst.slices}"
            time.sleep(LOOK_SECONDS + len(self._calls) * LOOK_SECONDS_OF_A_CALL)
            self._mebibytes = max(self._mebibytes, self._shares())
            self._calls = [call(each) for each in self._look("calls")]
            self._operations.update({each["name"]: _operation(each) for each in self._look("operations")})
            taken = [each for each in self._calls if each.method in methods and each.code == OK]
            pools = Counter(method for method, _ in {(each.method, each.pool) for each in taken})
        assert Counter(each.method for each in taken) == pools

    def _look(self, what: str) -> list[Object]:
        found: list[Object] = get_json(f"{self._stack.addresses.buttons}/{what}")[what]
        return found

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

    def _waited(self) -> list[float]:
        """Return, of each decision, for how many seconds the message that led to it waited."""
        lines = (self._stack.addresses.folder / "logs" / "function-reconcile.log").read_text().splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{")]
        return [each["waited_seconds"] for each in events if each.get("event") == LogEvent.SLICE_DECIDED]

    def _shares(self) -> float:
        """Return the memory of functions and relay: what processes share is divided among them."""
        ours = [each for each in self._stack.processes.children() if each.program.name in OURS]
        return sum(share_mib(pid) for each in ours for pid in family(each.process.pid))

    def _spent(self) -> dict[str, float]:
        """Return the seconds of a processor that each program took so far."""
        children = self._stack.processes.children()
        return {each.program.name: sum(map(cpu_seconds, family(each.process.pid))) for each in children}


def _operation(shown: Object) -> Operation:
    ended = math.inf if shown["ended"] is None else shown["ended"]
    return Operation(began=shown["started"], ended=ended, kind=shown["type"])


def _jobset(name: str, burst: Burst) -> Object:
    """Return a JobSet that is gone once it has completed; one that does not complete runs longer than the bench."""
    manifest = {**a_manifest(slices=burst.each, request=a_request(topology=burst.topology))}
    manifest["metadata"] = {"name": name, "namespace": DEMO_NAMESPACE, "annotations": {EXCLUSIVE: NODE_POOL}}
    manifest["spec"]["ttlSecondsAfterFinished"] = 0
    job = manifest["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["template"]["metadata"] = {"annotations": {RUN_SECONDS: str(86_400 if burst.runs is None else burst.runs)}}
    return manifest


def share_mib(pid: int) -> float:
    """Return the memory of a process, and its share of what it has in common with others."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def family(pid: int) -> list[int]:
    """Return a process and those that it started: functions-framework serves in a process of its own."""
    return [pid, *(each.pid for each in psutil.Process(pid).children(recursive=True))]
