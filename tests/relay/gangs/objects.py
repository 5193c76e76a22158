"""Gangs and their pods as the API server returns them, and a relay that judges them."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from relay.gangs.gates import Gates
from relay.notices.gangs import Notice
from relay.objects import JobPod, Leader, WorkloadName
from tests.relay.objects import Json, jobset, node, pod, replicated_job
from tests.relay.watched import Watched, read
from tpu_slices.domain.model.gangs import GANG
from tpu_slices.domain.planning.keys import KEY_LABEL

ALL = {"annotations": {GANG: "all"}}
GATED: Json = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
}


def gated(index: int = 0, *gates: str, **parts: Any) -> Json:
    """Return a leader pod that gates hold, by default that of gangs."""
    held = {"schedulingGates": [{"name": each} for each in gates or (GANG,)]}
    return pod(index, **{**parts, "spec": held | parts.get("spec", {})}, status=GATED)


def opened(index: int = 0, **parts: Any) -> Json:
    """Return such a pod without gates, which the scheduler has not tried yet."""
    return pod(index, **parts, status=GATED)


def gang(replicas: int = 3, **parts: Any) -> Json:
    return jobset(
        metadata=ALL, spec={"replicatedJobs": [replicated_job(replicas=replicas)], **parts.pop("spec", {})}, **parts
    )


def hosts(claim: int = 0, *, key: str = "", attempt: int = 1, **parts: Any) -> list[Json]:
    """Return the four hosts of a claim's slice, by default with its key."""
    labels = {KEY_LABEL: key or f"u-1.j{claim}", **parts.pop("labels", {})}
    slice_id = f"tpu-llama-{claim}-aaaaaaaaaaaaa"
    return [node(number, slice_id=slice_id, attempt=attempt, labels=labels, **parts) for number in range(4)]


@dataclass
class Gate:
    """A fact queue with the gates that judge by it, as the relay feeds them."""

    watched: Watched = field(default_factory=Watched)
    wanted: dict[WorkloadName, list[str]] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gates = Gates(self.watched.queue)
        self.gates.open, self.gates.tell = self._open, self.notices.append

    def _open(self, name: WorkloadName, pods: Collection[JobPod]) -> None:
        self.wanted[name] = sorted(each.pod_uid for each in pods)

    def see(self, *objects: Json) -> None:
        for obj in objects:
            seen = read(obj)
            new = isinstance(seen, Leader) and self.watched.queue.cache.leaders.get(seen.identity) is None
            self.watched.see(obj)
            self.gates.saw(seen, self.watched.now, new=new)

    def opens(self, after: float = 1.0) -> list[str]:
        """Return the pods that may start now, by UID, some time later."""
        self.watched.pass_time(after)
        self.gates.turn(self.watched.now)
        return sorted(uid for uids in self.wanted.values() for uid in uids)
