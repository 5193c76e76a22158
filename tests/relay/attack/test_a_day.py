"""A day in which thousands of JobSets come and go: the relay keeps no more than what exists."""

import random
from collections.abc import Sequence, Sized
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Self

import pytest

from relay.fact_queue import FactQueue
from relay.health import Health
from relay.hosts.occupants import HostPod
from relay.lookups.threads import VolumeLookups
from relay.lookups.users import Looks
from relay.node_patcher import NodePatcher
from relay.objects import (
    Bookmarked,
    Host,
    Kind,
    Leader,
    Listed,
    Lost,
    Pool,
    PoolKey,
    Saw,
    Workload,
    WorkloadName,
)
from relay.outbox import Outbox
from tests.builders import CLUSTER
from tests.relay.closing import question
from tests.relay.objects import Json, jobset, node, pod
from tests.relay.watched import START, a_relay, looking_up, objects_kept, read_as
from tpu_slices.domain.model.facts import WorkloadState
from tpu_slices.domain.model.slices import ClaimId, WorkloadUid
from tpu_slices.ports.errors import Temporary
from tpu_slices.wire.messages import Message

MINUTES = 24 * 60
JOBSETS_PER_MINUTE = 2
REPORTS = 2
"""Of the end of a JobSet: when it completes, and when it is gone."""


Thing = Workload | Leader | Host


BEGUN = read_as(Workload, jobset())
PODS = [(at, read_as(Leader, pod(at))) for at in range(2)]
EXCLUSIVE_NODES = {
    "google.com/tpu-slice-exclusive-nodes": "true",
    "google.com/tpu-provisioner-parent-namespace": "research",
    "google.com/tpu-provisioner-parent-name": "llama-workers-0",
}
HOST = read_as(Host, node(labels=EXCLUSIVE_NODES))


class Topic:
    """Accepts every message, and counts how often a JobSet was reported as completed."""

    def __init__(self) -> None:
        self.ends = 0

    def __call__(self, messages: Sequence[Message]) -> None:
        self.ends += sum(b'"state":"COMPLETED"' in message.data for message in messages)


class Api:
    """Every PersistentVolumeClaim is bound to a volume of one zone; no node can be labeled."""

    def volume_claim(self, namespace: str, name: str) -> Json:
        return {"status": {"phase": "Bound"}, "spec": {"volumeName": f"{namespace}-{name}"}}

    def volume(self, name: str) -> Json:
        assert name
        zones = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-central2-b"]}
        return {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zones]}]}}}}

    def nodes_of(self, pool: Pool) -> frozenset[str]:
        assert pool
        return frozenset()

    def chip_pods_on(self, node: str, *, exactly: bool) -> tuple[HostPod, ...]:
        assert node
        assert exactly in {True, False}
        return ()

    def workload_named(self, name: WorkloadName) -> None:
        """Return nothing: no pod is on a host."""

    def patch_node(self, node: str, patch: Any) -> None:
        raise Temporary(f"{node} is not labeled: {patch}")


class Day:
    """Every part of the relay that keeps state, with a clock that is stepped minute by minute."""

    def __init__(self) -> None:
        self.now: datetime = START
        self.minute = 0
        self._lives: dict[str, Life] = {}
        self.topic, api = Topic(), Api()
        health = Health(lambda: self.now)
        self.outbox = Outbox(self.topic, random.Random(1), lambda: self.now, health)
        self.outbox.close(0)  # so that `run` publishes what is held, and returns
        self.queue = FactQueue(CLUSTER)
        self.volumes = VolumeLookups(api, lambda: self.now)
        look_up = looking_up(self.volumes, Looks(api, lambda: self.now))
        self.relay_ = a_relay(self.queue, lambda: self.now, self.outbox.post, health, look_up)
        self.patcher = NodePatcher(self.relay_.needed_patches, api, lambda: self.now)
        for kind in Kind:
            self.relay_.put(Listed(kind, [], "1"))

    def pass_minute(self) -> None:
        """Let a minute pass: new JobSets begin, earlier ones continue."""
        self.now += timedelta(minutes=1)
        self.minute += 1
        for kind in Kind:
            if not (kind is Kind.LEADERS and self.blind):
                self.relay_.put(Bookmarked(kind, "1"))
        for age in range(8):
            if 0 < self.minute - age <= MINUTES:
                for number in range(JOBSETS_PER_MINUTE):
                    self._continue(f"{self.minute - age}-{number}", age)
        self.relay_.turn()
        self.volumes.forget()
        self.patcher.look()
        if not self.unavailable:
            self.outbox.run()

    def _continue(self, birth: str, age: int) -> None:
        """Let the relay see a JobSet, its pods and its nodes come and go, by the JobSet's age in minutes."""
        if age == 0:
            self._lives[birth] = Life.of(birth)
        if (life := self._lives.get(birth)) is None:
            return  # it began before the day
        comes: dict[int, Sequence[Thing]] = {
            0: (life.begun, *life.waiting),
            1: life.hosts,
            2: life.bound,
            5: (life.ended,),
        }
        if age == 5:
            for key in life.pools:
                self.relay_.ask(question(slice_id=key.slice_id))
        goes: dict[int, Sequence[Thing]] = {6: (*life.bound, *life.hosts), 7: (life.ended,)}
        for seen in comes.get(age, ()):
            self.relay_.put(Saw(kind_of(seen), seen, "1"))
        for seen in goes.get(age, ()):
            self.relay_.put(
                Lost(kind_of(seen), seen.identity, "1", seen if isinstance(seen, Workload) else None, deleted=True)
            )
        if age == max(goes):
            del self._lives[birth]

    @property
    def blind(self) -> bool:
        """Whether a watch is silent, as it is from time to time."""
        return self.minute % 240 < 15

    @property
    def unavailable(self) -> bool:
        """Whether Pub/Sub is unavailable, as it is from time to time."""
        return 100 < self.minute % 300 < 115

    def objects(self) -> int:
        """Return the number of objects that the parts keep, however deep."""
        return objects_kept(self.relay_, self.queue, self.volumes, self.patcher, self.outbox)

    def entries(self) -> dict[str, int]:
        """Return the number of entries in each field of each part."""
        queue, telling = self.queue, self.queue._telling
        parts = (
            *(queue, queue.cache, queue.cache.hosts, queue.closing, queue._published, queue.closing.cordons),
            *(telling, telling._states, telling._demand),
            *(self.volumes, self.patcher, self.outbox),
        )
        return {
            f"{type(part).__name__}.{field}": len(value)
            for part in parts
            for field, value in vars(part).items()
            if isinstance(value, Sized)
        }


@dataclass(frozen=True, kw_only=True)
class Life:
    """A JobSet of two slices of one host each; the hosts should be labeled and cannot be."""

    begun: Workload
    waiting: Sequence[Leader]
    hosts: Sequence[Host]
    bound: Sequence[Leader]
    ended: Workload

    @property
    def pools(self) -> list[PoolKey]:
        return [host.pool for host in self.hosts if isinstance(host.pool, PoolKey)]

    @classmethod
    def of(cls, birth: str) -> Self:
        """Return a JobSet under names of its own; the objects are parsed only once, for a day has thousands."""
        name, uid = WorkloadName("research", f"js-{birth}"), WorkloadUid(f"u-{birth}")
        ref = replace(BEGUN.ref, owner=replace(BEGUN.ref.owner, name=name.name, uid=uid))
        job: dict[str, Any] = {"workload": name, "workload_uid": uid, "volumes": (f"data-{birth}",)}
        pods = [replace(each, pod_uid=f"pod-{birth}-{at}", job=f"{name.name}-workers-{at}", **job) for at, each in PODS]
        hosts = [
            replace(HOST, node=f"host-{birth}-{at}", workload_uid=uid, pool=PoolKey(ClaimId(f"tpu-{birth}-{at}"), 1))
            for at in range(2)
        ]
        return cls(
            begun=replace(BEGUN, ref=ref),
            waiting=pods,
            hosts=hosts,
            bound=[replace(each, waiting=False, node=on.node) for each, on in zip(pods, hosts, strict=True)],
            ended=replace(BEGUN, ref=ref, state=WorkloadState.COMPLETED),
        )


def kind_of(seen: Thing) -> Kind:
    match seen:
        case Workload():
            return Kind.JOBSETS
        case Leader():
            return Kind.LEADERS
        case Host():
            return Kind.HOSTS


@pytest.mark.slow
def test_the_relay_keeps_no_more_objects_from_hour_to_hour() -> None:
    day = Day()
    kept = []
    for _ in range(6):
        for _ in range(60):
            day.pass_minute()
        kept.append(day.objects())
    assert kept[-1] <= kept[1] + JOBSETS_PER_MINUTE  # less than one for each JobSet of a minute, of four hours


@pytest.mark.slow
@pytest.mark.proof
def test_after_a_day_the_relay_keeps_no_more_entries_than_after_an_hour() -> None:
    day = Day()
    for _ in range(60):
        day.pass_minute()
    busy = day.entries()
    while day.minute < MINUTES:
        day.pass_minute()
    assert day.topic.ends >= JOBSETS_PER_MINUTE * (MINUTES - 60) * REPORTS
    assert sum(day.entries().values()) <= 1.5 * sum(busy.values())


def test_when_everything_is_gone_no_entry_is_kept() -> None:
    day = Day()
    day.minute = MINUTES - 30
    empty = day.entries()
    for _ in range(60):
        day.pass_minute()
    rest = {field: count for field, count in day.entries().items() if count != empty[field]}
    assert rest == {}
    assert day.topic.ends == 30 * JOBSETS_PER_MINUTE * REPORTS
