"""What the relay's watch of pods takes, from the bytes of events to what it knows; its floor is orjson alone.

Each pod has the events of a usual life, of which most change nothing that is kept. A list of 50,000 pods is read page
by page, as the API server sends it.
"""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import orjson

from relay import translate
from relay.fact_queue import FactQueue
from relay.health import Health
from relay.objects import Kind
from relay.pods.reading import pod_of_a_job
from relay.relay import Relay
from relay.watch import GARBAGE_AFTER, Lines, Patience, Source, Watch
from tests.bench.measures import Measure, cpu_seconds, measure
from tests.builders import CLUSTER, an_owner
from tests.manifests import a_manifest
from tpu_slices.domain.model.slices import OwnerKind, WorkloadUid
from tpu_slices_simulator import objects

Json = Mapping[str, Any]
PODS, EVENTS = 200, 8
"""How many pods, and events of each."""
LISTED, TRACED, OTHERS = 50_000, 5_000, 10_000
HOSTS = 256
"""Of a large slice."""
CHUNK = 1 << 16
START = datetime(2026, 11, 1, 12, tzinfo=UTC)


def rows() -> Iterator[Measure]:
    """Yield the processor time of events of pods, 1 % and 100 % of them leaders of JobSets, and of a long list."""
    gc.set_threshold(*GARBAGE_AFTER)  # as in the relay; the floor has it, too
    for percent in (1, 100):
        data = b"".join(_events(percent / 100))
        name = f"watch {PODS * EVENTS:,} pod events, {percent} % leaders"
        yield measure(name, "s", cpu_seconds(partial(watched, data)), cpu_seconds(partial(bare, data)))
    pages = _pages()
    name = f"list {LISTED:,} pods, {sum(map(len, pages)) / 1e6:.0f} MB"
    parsed = cpu_seconds(lambda: [*map(orjson.loads, pages)], runs=2)
    yield measure(name, "s", cpu_seconds(partial(_listed, pages), runs=2), parsed)
    yield measure(f"kept of {TRACED:,} pods", "MiB", [_kept(_pages(TRACED))])
    yield measure(f"kept of {TRACED:,} pods beside leaders", "MiB", [_kept(_pages(TRACED, hosts=HOSTS))])
    pages = _pages(OTHERS, leads=False)
    name = f"list {OTHERS:,} pods of Jobs without indexes and chips, {sum(map(len, pages)) / 1e6:.0f} MB"
    parsed = cpu_seconds(lambda: [*map(orjson.loads, pages)], runs=2)
    yield measure(name, "s", cpu_seconds(partial(_listed, pages), runs=2), parsed)
    yield measure(f"kept of {OTHERS:,} pods without indexes and chips", "MiB", [_kept(pages)])


class Stream:
    """The response of a watch, whose bytes are there."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._at = 0

    def read1(self, amt: int | None = None) -> bytes:
        chunk = self.data[self._at : self._at + (amt or CHUNK)]
        self._at += len(chunk)
        return chunk

    def shutdown(self) -> None:
        self._at = len(self.data)

    def close(self) -> None:
        """Nothing is open."""


def watched(data: bytes) -> None:
    """Let a watch and the relay behind it see all events."""
    relay = Relay(FactQueue(CLUSTER), lambda: START, lambda _, __: None, lambda _: None, Health(lambda: START))
    watch = _a_watch(iter([data]), relay.put)
    version = "1"
    for events in watch.events(version):
        version = watch.pass_on(events, version)
        relay.turn()


def bare(data: bytes) -> None:
    """Read all events as JSON."""
    lines = Lines()
    for start in range(0, len(data), CHUNK):
        for line in lines.of(data[start : start + CHUNK]):
            orjson.loads(line)


def _a_watch(answers: Iterator[bytes], put: Any) -> Watch[Any, Any]:
    source = Source(
        Kind.LEADERS,
        lambda **_: cast("Any", Stream(next(answers))),
        pod_of_a_job,
        "uid",
        "pods",
        told_by=translate.told_by_pod,
    )
    return Watch(source, put, Patience(silence=90.0, seconds=lambda: 0.0), random.Random(0))


def _listed(pages: Sequence[bytes]) -> tuple[object, ...]:
    """Return all that a watch keeps of a list."""
    seen: list[object] = []
    watch = _a_watch(iter(pages), seen.append)
    watch.list_all()
    return watch, *seen


def _kept(pages: Sequence[bytes]) -> float:
    """Return the memory that is left in use by a list, beside its bytes."""
    tracemalloc.start()
    kept = _listed(pages)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept
    return size / (1 << 20)


def _pages(count: int = LISTED, *, leads: bool = True, hosts: int = 1) -> list[bytes]:
    """Return a list of leaders, or of pods of Jobs without indexes and chips, page by page.

    `hosts`: of how many pods a Job is, of which the first alone leads.
    """
    pods = [_pod(number // hosts, leads=leads, rank=number % hosts) for number in range(count)]
    pods = pods if leads else [objects.unindexed(pod) for pod in pods]
    for number, pod in enumerate(pods):
        pod["metadata"]["resourceVersion"] = str(number)
    firsts = [0, 50, 150, 350, *range(850, count, 500)]
    parts = [pods[first:end] for first, end in zip(firsts, [*firsts[1:], count], strict=True)]
    rest = ["more"] * (len(parts) - 1) + [""]
    return [
        orjson.dumps({"kind": "PodList", "metadata": {"resourceVersion": "99999", "continue": token}, "items": part})
        for part, token in zip(parts, rest, strict=True)
    ]


def _events(share: float) -> Iterator[bytes]:
    """Yield the events of pods, each in its life, all lives side by side."""
    lives = [_life(number, leads=number < share * PODS) for number in range(PODS)]
    version = 100
    for moment in zip(*lives, strict=True):
        for pod in moment:
            version += 1
            changed = objects.patched(pod, {"metadata": {"resourceVersion": str(version)}})
            yield orjson.dumps({"type": "MODIFIED", "object": changed}) + b"\n"


def _life(number: int, *, leads: bool) -> list[Json]:
    """Return a pod as it is made, unschedulable, bound, and as its containers start and become ready."""
    waits, runs = _pod(number, leads=leads), _pod(number, leads=leads, node=f"host-{number}")
    made = objects.patched(waits, {"status": {"conditions": []}})
    started = [
        objects.patched(runs, {"status": {"containerStatuses": [_container(started, step)]}})
        for step, started in enumerate((False, False, True, True))
    ]
    return [made, waits, waits, runs, *started]


def _pod(number: int, *, leads: bool, node: str | None = None, rank: int = 0) -> dict[str, Any]:
    """Return a leader pod of a JobSet, one beside it, or of a Job without TPUs; as large as usual."""
    kind = OwnerKind.JOBSET if leads else OwnerKind.JOB
    owner = an_owner(f"train-{number}", kind=kind, uid=WorkloadUid(f"uid-{number}"))
    template = objects.template_of(a_manifest(), "slice")
    if not leads:
        template = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    pod = objects.pod_of(template, owner, ("slice" if leads else "", 0, rank), f"pod-{number:06}-{rank}", node)
    return objects.patched(pod, {"metadata": {"managedFields": _MANAGED}, "spec": {"volumes": _VOLUMES}})


def _container(started: bool, step: int) -> Json:
    state = {"running": {"startedAt": f"2026-11-01T12:00:0{step}Z"}} if started else {"waiting": {"reason": "Pulling"}}
    return {"name": "main", "ready": started, "restartCount": 0, "state": state, "imageID": "sha256:" + "a" * 64}


_VOLUMES: Sequence[Json] = [
    {
        "name": f"kube-api-access-{number}",
        "projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]},
    }
    for number in range(3)
]
_FIELDS: Json = {f"f:field-{number}": {"f:value": {}, "f:other": {}} for number in range(40)}
_MANAGED: Sequence[Json] = [
    {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:spec": _FIELDS}}
    for manager in ("kube-controller-manager", "kube-scheduler", "kubelet")
]
