"""The whole system in memory, and the stories that tests tell with it; a fuse can blow anywhere.

Messages are delivered in any order the test asks for.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from relay.objects import PoolKey
from tests.builders import CLUSTER, MINUTE, NOW, a_job, a_jobset_ref, a_request, an_owner, settings
from tests.manifests import a_manifest
from tests.node_groups import two_hosts
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.model.facts import Fact, TemplateRequest, WorkloadState
from tpu_slices.domain.model.observations import Creating, Deleting
from tpu_slices.domain.model.slices import ClaimId, OwnerKind, WorkloadUid, claim_id
from tpu_slices.domain.records.heartbeats import RelayHeartbeat
from tpu_slices.domain.records.ladders import OnLadder
from tpu_slices.domain.records.slices import SliceRecord
from tpu_slices.flows.looking import Told
from tpu_slices.wire.workloads import Json
from tpu_slices_simulator.cluster import NOT_READY
from tpu_slices_simulator.fuse import Fuse
from tpu_slices_simulator.live import LiveWorkload
from tpu_slices_simulator.objects import announcement, maintenance
from tpu_slices_simulator.system import STEP, System

ENDED = Told(ended=True)
"""What is told with GKE's word that an operation ended."""


class World(System):
    """`jobset_appears`, `settle`, `ends` and the fakes' buttons tell the story; `pools` and `records` are its end."""

    def __init__(self, fuse: Fuse | None = None, of_cluster: ClusterSettings | None = None) -> None:
        super().__init__(of_cluster or settings(), NOW, fuse)
        self.store.put(RelayHeartbeat(cluster=CLUSTER, received_at=NOW, uninterrupted_since=NOW - 60 * MINUTE))

    def jobset_appears(
        self,
        name: str = "llama",
        slices: int = 1,
        request: TemplateRequest | None = None,
        namespace: str = "research",
        **changes: Any,
    ) -> LiveWorkload:
        ref = a_jobset_ref(name=name, namespace=namespace, uid=WorkloadUid(f"uid-{name}-{len(self.workloads)}"))
        jobset = LiveWorkload(ref, a_manifest(slices=slices, request=request), **changes)
        self.cluster.puts(jobset)
        return jobset

    def sharing_appears(self, name: str = "llama") -> LiveWorkload:
        """Let a JobSet appear whose Jobs of one pod share a slice."""
        ref = a_jobset_ref(name=name, namespace="research", uid=WorkloadUid(f"uid-{name}-{len(self.workloads)}"))
        jobset = LiveWorkload(ref, a_manifest(shared=True))
        self.cluster.puts(jobset)
        return jobset

    def other_appears(self, kind: OwnerKind, slices: int = 1, manifest: Json | None = None) -> LiveWorkload:
        """Let a Job by itself appear, or a LeaderWorkerSet of so many groups; `manifest`: another than usual."""
        owner = an_owner("other", kind=kind, uid=WorkloadUid(f"uid-other-{len(self.workloads)}"))
        workload = LiveWorkload(a_jobset_ref(owner=owner), manifest or a_manifest(kind, slices))
        self.cluster.puts(workload)
        return workload

    def pod_appears(self, name: str = "web-1", key: str = "uid-rs", **changes: Any) -> LiveWorkload:
        """Let a pod by itself appear; its controller's pods have one key."""
        owner = an_owner(name, kind=OwnerKind.POD, uid=WorkloadUid(f"uid-{name}-{len(self.workloads)}"))
        request = a_request(**{"accelerator": "tpu-v4-podslice", "topology": "2x2x1", **changes})
        pod = LiveWorkload(a_jobset_ref(owner=owner), a_manifest(OwnerKind.POD, request=request), key=key)
        self.cluster.puts(pod)
        return pod

    def group_appears(self, manifest: Json | None = None, name: str = "group", **changes: str) -> LiveWorkload:
        """Let somebody apply a TPUNodeGroup."""
        uid = WorkloadUid(f"uid-group-{len(self.workloads)}")
        owner = an_owner(name, kind=OwnerKind.TPU_NODE_GROUP, uid=uid, **changes)
        group = LiveWorkload(a_jobset_ref(owner=owner), manifest or two_hosts())
        self.cluster.puts(group)
        return group

    def group_is_deleted(self, group: LiveWorkload) -> None:
        """Let somebody delete a TPUNodeGroup; its object stays while it has finalizers."""
        group.ref = replace(group.ref, generation=group.ref.generation + 1)
        self.ends(group, WorkloadState.DELETED)

    def stands(self, group: LiveWorkload) -> bool:
        """Return whether the object of a TPUNodeGroup is there."""
        return self.cluster.workload(group.ref.owner) is not None

    def status(self, group: LiveWorkload) -> dict[str, Any]:
        """Return the status that a TPUNodeGroup has, its conditions by their types."""
        status = group.manifest.get("status") or {}
        return {**status, "conditions": {each["type"]: each for each in status.get("conditions", ())}}

    def reasons(self, group: LiveWorkload) -> dict[str, str]:
        """Return the reasons of a TPUNodeGroup's conditions; those that are not True with an exclamation mark."""
        conditions = self.status(group)["conditions"].values()
        return {each["type"]: f"{'' if each['status'] == 'True' else '!'}{each['reason']}" for each in conditions}

    def scales(self, workload: LiveWorkload, groups: int) -> None:
        """Change the number of a LeaderWorkerSet's groups; the last ones go."""
        for index in range(groups, workload.slices):
            self.cluster.removes_pod(workload, index)
        self.edits(workload, a_manifest(workload.ref.owner.kind, groups))
        self.relay_publishes()

    def edits(self, workload: LiveWorkload, manifest: Json) -> None:
        """Let a person change a workload."""
        workload.edit(manifest)
        self.cluster.changes(workload)

    def guest_appears(self, name: str = "guest") -> LiveWorkload:
        """Let a JobSet appear whose leader is bound only where a test binds it."""
        return self.jobset_appears(name, absent=True)

    def ends_unreported(self, jobset: LiveWorkload) -> None:
        """Let a JobSet end while no relay watches."""
        was_dead, self.relay_is_dead = self.relay_is_dead, True
        self.ends(jobset, WorkloadState.DELETED)
        self.relay_is_dead = was_dead

    def api_server_loses(self, jobsets: Iterable[LiveWorkload], version: int | None = None) -> None:
        """Let the API server not know these JobSets and their pods any more, and watches break off.

        `version`: that of the cluster from then on; None: it is as it was.
        """
        lost = [jobset.ref.owner.uid for jobset in jobsets]
        self.cluster.workloads = {uid: each for uid, each in self.workloads.items() if uid not in lost}
        for pods in (self.cluster.pods, self.cluster.followers):
            for uid in [uid for uid, pod in pods.items() if pod.jobset.ref.owner.uid in lost]:
                del pods[uid]
        self.cluster._version = version or self.cluster._version
        for relay in self.cluster.relays:
            relay.lists_anew()
        self.relay_publishes()

    def relay_restarts(self) -> None:
        """Let a relay start that knows nothing, and publish what it sees."""
        self.cluster.restart_relay()
        self.relay_publishes()

    def loses_its_records(self) -> None:
        """Remove every record of slices and workloads."""
        for place in self.store.places():
            if place.collection in {"slices", "workloads", "slots"}:
                self.store.remove_document(place)

    def binds(self, jobset: LiveWorkload, slice_: ClaimId, attempt: int, index: int = 0) -> None:
        """Bind the leader of a Job to the hosts of an attempt."""
        self._nodes_join()
        self.cluster.binds(jobset, PoolKey(slice_, attempt), index)
        self.relay_publishes()

    @contextmanager
    def loses(self, kind: type[Fact]) -> Iterator[None]:
        """Let no fact of this kind arrive meanwhile."""
        publish = self.publish
        self.publish = lambda fact: None if isinstance(fact, kind) else publish(fact)  # type: ignore[method-assign]
        try:
            yield
        finally:
            self.publish = publish  # type: ignore[method-assign]

    def shuffle_messages(self, chance: random.Random) -> None:
        """Duplicate the facts under way and shuffle them; some older reconcile requests come again, too."""
        facts = [*self._facts, *self._facts]
        chance.shuffle(facts)
        self._facts = deque(facts)
        self.publisher.requests.extend(chance.sample(self.publisher.requests, min(3, len(self.publisher.requests))))

    def a_host_breaks(self) -> None:
        """Let one host be unusable from now on."""
        self.cluster.changes_node(next(iter(self.cluster.nodes.values())), NOT_READY)

    def all_hosts_break(self) -> None:
        for node in self.cluster.nodes.values():
            self.cluster.changes_node(node, NOT_READY)

    def host_is_maintained(self, name: str) -> None:
        """Let Google maintain a host's machine: GKE labels its node, which is not Ready."""
        self.cluster.changes_node(self.cluster.nodes[name], maintenance(on=True))

    def maintenance_is_announced(self, name: str, at: datetime | None) -> None:
        """Let Google announce when it maintains a host's machine, or None: that it does not, after all."""
        self.cluster.changes_node(self.cluster.nodes[name], announcement(at))

    def host_is_back(self, name: str, *, ready: bool = True) -> None:
        """Let the maintenance of a host's machine end; its node is Ready again, or is not."""
        self.cluster.changes_node(self.cluster.nodes[name], maintenance(on=False))
        if not ready:
            self.cluster.changes_node(self.cluster.nodes[name], NOT_READY)

    def settle(self, *, minutes: int = 20, until: Callable[[], bool] = lambda: False) -> None:
        """Let minutes pass, in each of which the cluster, GKE and the functions do what they can."""
        for _ in range(minutes):
            self.steps()
            if until():
                return
            self.operations_end()
            self.clock.advance(MINUTE - 2 * STEP)
            self.sweeps()

    def operations_end(self) -> None:
        for pool in list(self.backend.pools.values()):
            if (isinstance(pool.seen, Creating | Deleting) or pool.relabels) and pool.operation is not None:
                self.backend.finish(pool.name)

    def on_ladder(self, jobset: LiveWorkload) -> OnLadder:
        """Return where a workload is on its ladder."""
        uid = jobset.ref.owner.uid
        return next(iter(self.store.workloads(CLUSTER, [uid])[uid].value.ladders.values()))

    def record(self, jobset: LiveWorkload, index: int = 0) -> SliceRecord:
        replicated_job = jobset.requests[0].replicated_job if jobset.requests else ""
        job = a_job(owner=jobset.ref.owner, replicated_job=replicated_job, job_index=index)
        return self.records[claim_id(job)]
