"""A relay in a cluster whose hosts are all held: each Job's leader and three other pods, and some leaders ended first.

What it keeps and sends must not grow while all of them only run.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Self

from relay.fact_queue import FactQueue
from relay.health import Health
from relay.hosts.occupants import HostPod
from relay.lookups.threads import VolumeLookups
from relay.lookups.users import Looks, in_turn
from relay.objects import (
    Bookmarked,
    Host,
    Kind,
    Known,
    Leader,
    Listed,
    Pool,
    PoolKey,
    Saw,
    Workload,
    WorkloadName,
)
from tests.bench.measures import Measure, measure
from tests.builders import CLUSTER
from tests.relay.objects import Json, bound_pod, jobset, node, replicated_job
from tests.relay.watched import START, a_relay, looking_up, objects_kept, read_as
from tpu_slices.domain.model.facts import Fact
from tpu_slices.domain.model.slices import ClaimId, WorkloadUid

JOBS_EACH = 100
STEP = timedelta(seconds=5)
WORKLOAD = read_as(Workload, jobset(spec={"replicatedJobs": [replicated_job(replicas=JOBS_EACH)]}))
LEADER = read_as(Leader, bound_pod(0, "host"))
HOST = read_as(Host, node())


def rows() -> Iterator[Measure]:
    """Yield what a relay keeps of 10,000 pods that hold chips, and what it sends and asks in an hour."""
    tracemalloc.start()
    held = Held(jobs=2_500, alone=100)
    yield measure("kept of 10,000 pods on hosts", "MiB", [held.traced()])
    held.pass_hour()
    before, sent, lists = held.traced(), sum(held.sent.values()), held.api.lists
    held.pass_hour()
    yield measure("more of them an hour later", "MiB", [held.traced() - before])
    tracemalloc.stop()
    yield measure("sent in that hour, heartbeats alone", "messages", [sum(held.sent.values()) - sent])
    yield measure("asked for 100 Jobs without leaders", "lists a second", [(held.api.lists - lists) / 3_600])


@dataclass(frozen=True, slots=True)
class _Slice:
    workload: Workload
    leader: Leader
    hosts: tuple[Host, ...]

    @classmethod
    def of(cls, number: int) -> Self:
        """Return a slice under names of its own; the objects are parsed only once, for there are thousands."""
        name, index = f"llama-{number // JOBS_EACH}", number % JOBS_EACH
        owner = replace(WORKLOAD.ref.owner, name=name, uid=WorkloadUid(f"u-{name}"))
        workload = replace(WORKLOAD, ref=replace(WORKLOAD.ref, owner=owner))
        pool = PoolKey(ClaimId(f"tpu-{name}-{index}-aaaaaaaaaaaaa"), 1)
        hosts = tuple(replace(HOST, node=f"{pool.slice_id}-1-{host}", pool=pool) for host in range(4))
        leader = replace(
            LEADER,
            pod=f"{name}-{index}",
            pod_uid=f"pod-{number}",
            workload=workload.name,
            workload_uid=owner.uid,
            job=owner.job_name(LEADER.asks.replicated_job, index),
            asks=replace(LEADER.asks, job_index=index),
            node=hosts[0].node,
        )
        return cls(workload, leader, hosts)


class Api:
    """Has a pod of its Job on each host, and the JobSets."""

    def __init__(self, slices: Sequence[_Slice]) -> None:
        self.members = {host.node: each.leader for each in slices for host in each.hosts}
        self.owners = {each.workload.name: each.workload for each in slices}
        self.lists = 0

    def volume_claim(self, *_: str) -> Json | None:
        """Return nothing: no leader mounts a volume."""

    volume = volume_claim

    def nodes_of(self, pool: Pool) -> Sequence[str]:
        raise AssertionError(f"{pool} is not to be closed")

    def chip_pods_on(self, node: str, *, exactly: bool) -> tuple[HostPod, ...]:
        assert not exactly
        self.lists += 1
        return (HostPod(pod=f"research/{node}", node=node, member=self.members[node], ends_by=None),)

    def workload_named(self, name: WorkloadName) -> Workload | None:
        return self.owners.get(name)


class Held:
    """`jobs` Jobs, each on the four hosts of its slice; the leaders of `alone` of them have ended."""

    def __init__(self, jobs: int, alone: int) -> None:
        slices = [_Slice.of(number) for number in range(jobs)]
        owners = {each.workload.name: each.workload for each in slices}
        self.api, self.now, self.sent = Api(slices), START, Counter[str]()
        self.queue = FactQueue(CLUSTER)
        look_up = looking_up(VolumeLookups(self.api, lambda: self.now), Looks(self.api, lambda: self.now, in_turn))
        self.relay_ = a_relay(self.queue, lambda: self.now, self._post, Health(lambda: self.now), look_up)
        there: dict[Kind, Sequence[Known]] = {
            Kind.JOBSETS: [*owners.values()],
            Kind.LEADERS: [each.leader for each in slices],
            Kind.HOSTS: [host for each in slices for host in each.hosts],
        }
        for kind in Kind:
            self.relay_.put(Listed(kind, there.get(kind, []), "1"))
        self.relay_.turn()
        for each in slices[:alone]:
            self.relay_.put(Saw(Kind.LEADERS, replace(each.leader, node=None), "2"))
        self.relay_.turn()

    def _post(self, facts: Sequence[Fact]) -> None:
        self.sent.update(type(each).__name__ for each in facts)

    def pass_hour(self) -> None:
        until = self.now + timedelta(hours=1)
        while self.now < until:
            self.now += STEP
            for kind in Kind:
                self.relay_.put(Bookmarked(kind, "2"))
            self.relay_.turn()

    def objects(self) -> int:
        """Return the number of objects that the relay keeps, however deep."""
        return objects_kept(self.relay_, self.queue)

    def traced(self) -> float:
        """Return the memory in use since tracing began, in MiB."""
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / (1 << 20)
