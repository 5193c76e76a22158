"""The groups of a LeaderWorkerSet as they are: what of them is ready, made anew, or to be (pure)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from infra.local.clients.conditions import is_true
from infra.local.clients.objects import Object
from infra.local.clients.owners import controller_uid
from infra.local.lws.keys import EXCLUSIVE_TOPOLOGY, GROUP_INDEX, REVISION, WORKER_INDEX
from infra.local.lws.stateful_sets import annotations, labels, revision, size

_RECREATE, _RECREATE_AFTER_START = "RecreateGroupOnPodRestart", "RecreateGroupAfterStart"
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A leader, the StatefulSet of its workers if there is one, and its workers."""

    leader: Object
    worker_set: Object | None
    workers: tuple[Object, ...]
    ready: bool
    outdated: bool
    """Whether some of it has a template that the LeaderWorkerSet has no longer."""

    complete: bool
    """Whether the set of its workers is there, if it has any."""

    @property
    def index(self) -> int:
        return int(labels(self.leader)[GROUP_INDEX])

    @property
    def updated(self) -> bool:
        return self.complete and not self.outdated


def groups_of(
    lws: Object, leaders: Iterable[Object], sets: Mapping[str, Object], workers: Mapping[str, list[Object]]
) -> list[Group]:
    """Return the groups in their order. `sets` are by the UID of their leader, `workers` by that of their set."""
    wanted, alone = revision(lws), size(lws) == 1

    def group(leader: Object) -> Group:
        worker_set = sets.get(leader["metadata"]["uid"])
        parts = [leader] if worker_set is None else [leader, worker_set]
        complete = alone or worker_set is not None
        return Group(
            leader=leader,
            worker_set=worker_set,
            workers=tuple(workers.get(worker_set["metadata"]["uid"], ())) if worker_set else (),
            ready=complete and _is_running(leader) and (worker_set is None or _has_all(worker_set)),
            complete=complete,
            outdated=any(labels(part).get(REVISION) != wanted for part in parts),
        )

    return sorted(map(group, leaders), key=lambda each: each.index)


def _is_running(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") == "Running" and is_true(pod, "Ready")


def _has_all(worker_set: Object) -> bool:
    status = worker_set.get("status", {})
    settled: bool = status.get("currentRevision") == status.get("updateRevision")
    available: bool = worker_set["spec"]["replicas"] == status.get("availableReplicas", 0)
    return settled and available


def partition(lws: Object, groups: Sequence[Group]) -> int:
    """Return from which group on leaders get the new template: from the last, as many at once as may be unavailable.

    0 if no group has an old one. Old groups that are not ready do not wait for their turn.
    """
    replicas: int = lws["spec"]["replicas"]
    by_index = {group.index: group for group in groups}
    if not any(group.outdated for group in groups):
        return 0
    done = 0
    while done < replicas and _is_done(by_index.get(replicas - 1 - done)):
        done += 1
    first = max(0, replicas - done - _max_unavailable(lws))
    while first > 0 and not (first - 1 in by_index and by_index[first - 1].ready):
        first -= 1
    return first


def _is_done(group: Group | None) -> bool:
    return group is not None and group.ready and not group.outdated


def _max_unavailable(lws: Object) -> int:
    """Return how many groups may be unavailable during an update: at least one."""
    replicas, update = lws["spec"]["replicas"], lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
    said: int | str = update["maxUnavailable"]
    return max(1, int(said.rstrip("%")) * replicas // 100 if isinstance(said, str) else said)


def to_recreate(lws: Object, groups: Iterable[Group], known: Mapping[str, str]) -> Iterator[tuple[Group, Object]]:
    """Yield the groups that end as a whole because of one of their pods, each with that pod.

    `known` are the UIDs by which workers of these sets were first seen, by `place`: another is a pod made anew.
    """
    policy = lws["spec"]["leaderWorkerTemplate"]["restartPolicy"]
    if policy not in (_RECREATE, _RECREATE_AFTER_START):
        return
    for group in groups:
        if "deletionTimestamp" in group.leader["metadata"]:
            continue
        if policy == _RECREATE_AFTER_START and _is_starting(lws, group):
            continue
        restarted = (worker for worker in group.workers if _is_restarted(worker, known))
        culprit = next(restarted, group.leader if _has_restarts(group.leader) else None)
        if culprit is not None:
            yield group, culprit


def place(worker: Object) -> str:
    """Return what names a worker's place in its set, which outlives it."""
    return f"{controller_uid(worker)}/{worker['metadata']['name']}"


def _is_restarted(worker: Object, known: Mapping[str, str]) -> bool:
    """Return whether a worker is deleted or ended, or was, or a container of it.

    Upstream watches for a deletion and a container's restart. Local kubelets restart none: their pods end.
    """
    metadata = worker["metadata"]
    ended = worker.get("status", {}).get("phase") in _ENDED
    another = known.get(place(worker), metadata["uid"]) != metadata["uid"]
    return "deletionTimestamp" in metadata or ended or another or _has_restarts(worker)


def _has_restarts(pod: Object) -> bool:
    status = pod.get("status", {})
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return any(each.get("restartCount", 0) > 0 for each in containers)


def _is_starting(lws: Object, group: Group) -> bool:
    pods = (group.leader, *group.workers)
    return len(pods) != size(lws) or any(pod.get("status", {}).get("phase") == "Pending" for pod in pods)


def wants_workers(lws: Object, group: Group) -> bool:
    """Return whether the set of a leader's workers is to be created now, as far as that depends on the leader."""
    leader = group.leader
    if size(lws) == 1 or group.worker_set is not None or "deletionTimestamp" in leader["metadata"]:
        return False
    if lws["spec"]["startupPolicy"] == "LeaderReady" and not is_true(leader, "Ready"):
        return False
    return EXCLUSIVE_TOPOLOGY not in annotations(lws) or bool(leader["spec"].get("nodeName"))


def is_leader(pod: Object) -> bool:
    return labels(pod).get(WORKER_INDEX) == "0"
