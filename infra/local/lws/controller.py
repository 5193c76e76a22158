"""The LeaderWorkerSet controller: StatefulSets of leaders and of their workers, the restart of groups, the status."""

from collections.abc import Sequence
from datetime import datetime

from infra.local.clients.events import Happening, Recorder
from infra.local.clients.objects import Object, Objects
from infra.local.clients.owners import by_controller, controller, controller_uid
from infra.local.clients.rounds import each
from infra.local.lws import stateful_sets
from infra.local.lws.groups import Group, groups_of, is_leader, partition, place, to_recreate, wants_workers
from infra.local.lws.keys import EXCLUSIVE_TOPOLOGY, GROUP_INDEX, NAME, REPLICAS, REVISION
from infra.local.lws.stateful_sets import annotations, labels
from infra.local.lws.status import status_of, true_now

SOURCE = "leaderworkerset"
"""The name of the event recorder upstream (cmd/main.go)."""

_OF_GROUPS = {"labelSelector": NAME}
WATCHED = {
    "leaderworkersets": {},
    "statefulsets": _OF_GROUPS,
    "pods": _OF_GROUPS,
    "services": _OF_GROUPS,
    "nodes": {},
}
"""Kinds, with selectors."""


class LeaderWorkerSets:
    """The controller, and what it remembers: its Events, and by which UIDs workers were first seen."""

    def __init__(self) -> None:
        self._recorder = Recorder(SOURCE)
        self._workers: dict[str, str] = {}

    def reconcile(self, objects: Objects, now: datetime, _: object) -> datetime | None:
        living = [lws for lws in objects.stored("leaderworkersets") if "deletionTimestamp" not in lws["metadata"]]
        self._remember(objects)

        def control(lws: Object) -> None:
            self._control(objects, lws, now)

        return each(living, control, self._recorder.doubting(objects, now))

    def _remember(self, objects: Objects) -> None:
        sets = {each["metadata"]["uid"] for each in objects.stored("statefulsets")}
        self._workers = {key: uid for key, uid in self._workers.items() if key.partition("/")[0] in sets}
        for pod in objects.stored("pods"):
            if controller_uid(pod) in sets and not is_leader(pod):
                self._workers.setdefault(place(pod), pod["metadata"]["uid"])

    def _control(self, objects: Objects, lws: Object, now: datetime) -> None:
        leader_set = _named(objects, "statefulsets", lws)
        if leader_set is not None and not _is_current(lws, leader_set):
            return
        groups = _groups(objects, lws, leader_set)
        leader_set = self._ensure_leaders(objects, lws, leader_set, groups, now)
        if _named(objects, "services", lws) is None:
            objects.create("services", stateful_sets.service(lws))
        ended = set()
        for group, pod in to_recreate(lws, groups, self._workers):
            self._recreate(objects, lws, group, pod, now)
            ended.add(group.index)
        for group in groups:
            if group.index not in ended and wants_workers(lws, group):
                self._create_workers(objects, lws, group.leader, now)
        self._tell(objects, lws, leader_set, groups, now)

    def _ensure_leaders(
        self, objects: Objects, lws: Object, found: Object | None, groups: Sequence[Group], now: datetime
    ) -> Object:
        wanted = stateful_sets.leader_set(lws, partition(lws, groups))
        if found is None:
            made = objects.create("statefulsets", wanted)
            text = f"Created leader statefulset {made['metadata']['name']}"
            self._recorder.record(objects, Happening(lws, "GroupsProgressing", text, action="Create"), now)
            return made
        return found if _is_as(found, wanted) else objects.update("statefulsets", _changed(found, wanted))

    def _recreate(self, objects: Objects, lws: Object, group: Group, pod: Object, now: datetime) -> None:
        leader = group.leader["metadata"]
        objects.delete("pods", leader["namespace"], leader["name"], propagation="Foreground")
        name, index = pod["metadata"]["name"], group.index
        text = f"Worker pod {name} failed, deleted leader pod {leader['name']} to recreate group {index}"
        self._recorder.record(objects, Happening(lws, "RecreateGroup", text, action="Delete"), now)

    def _create_workers(self, objects: Objects, lws: Object, leader: Object, now: datetime) -> None:
        """Create the set of a leader's workers, unless that of an earlier leader of this name is still there."""
        namespace, name = leader["metadata"]["namespace"], leader["metadata"]["name"]
        if any(one["metadata"]["name"] == name for one in objects.stored("statefulsets", namespace)):
            return
        objects.create("statefulsets", stateful_sets.worker_set(lws, leader, _domain(objects, lws, leader)))
        text = f"Created worker statefulset for leader pod {name}"
        self._recorder.record(objects, Happening(lws, "GroupsProgressing", text, action="Create"), now)

    def _tell(self, objects: Objects, lws: Object, leader_set: Object, groups: Sequence[Group], now: datetime) -> None:
        status = status_of(lws, leader_set, groups, now)
        before = lws.get("status") or {}
        if status == before:
            return
        objects.update("leaderworkersets", lws | {"status": status}, status=True)
        if status["conditions"] != before.get("conditions"):
            (news, *_), replicas = true_now(lws, groups), lws["spec"]["replicas"]
            text = f"{news.message}, with {status['readyReplicas']} groups ready of total {replicas} groups"
            self._recorder.record(objects, Happening(lws, news.reason, text, action="Update"), now)


def _named(objects: Objects, plural: str, lws: Object) -> Object | None:
    """Return the object of this kind that has the LeaderWorkerSet's name."""
    metadata = lws["metadata"]
    stored = objects.stored(plural, metadata["namespace"])
    return next((one for one in stored if one["metadata"]["name"] == metadata["name"]), None)


def _is_current(lws: Object, leader_set: Object) -> bool:
    """Return whether it is no set that goes: with an earlier LeaderWorkerSet of this name, or deleted by itself."""
    return controller_uid(leader_set) == lws["metadata"]["uid"] and "deletionTimestamp" not in leader_set["metadata"]


def _groups(objects: Objects, lws: Object, leader_set: Object | None) -> list[Group]:
    if leader_set is None:
        return []
    namespace = lws["metadata"]["namespace"]
    pods = by_controller(objects.stored("pods", namespace))
    leaders = [pod for pod in pods[leader_set["metadata"]["uid"]] if GROUP_INDEX in labels(pod)]
    sets = {owner["uid"]: one for one in objects.stored("statefulsets", namespace) if (owner := controller(one))}
    return groups_of(lws, leaders, sets, pods)


def _is_as(found: Object, wanted: Object) -> bool:
    """Return whether a leaders' set needs no change. All of its template is in its revision."""
    spec, wanted_spec = found["spec"], wanted["spec"]
    same = all(spec[field] == wanted_spec[field] for field in ("replicas", "updateStrategy"))
    told = annotations(found).get(REPLICAS) == annotations(wanted)[REPLICAS]
    return same and told and labels(found).get(REVISION) == labels(wanted)[REVISION]


def _changed(found: Object, wanted: Object) -> Object:
    own = {key: wanted["metadata"][key] for key in ("labels", "annotations")}
    fields = {key: wanted["spec"][key] for key in ("replicas", "template", "updateStrategy")}
    return found | {"metadata": found["metadata"] | own, "spec": found["spec"] | fields}


def _domain(objects: Objects, lws: Object, leader: Object) -> str | None:
    """Return the exclusive domain of a leader that is bound. Raise ValueError where its node is in none."""
    key = annotations(lws).get(EXCLUSIVE_TOPOLOGY)
    if key is None:
        return None
    name = leader["spec"]["nodeName"]
    node = next((one for one in objects.stored("nodes") if one["metadata"]["name"] == name), None)
    if node is None or key not in labels(node):
        raise ValueError(f"node {name} does not have the topology label {key}")
    domain: str = labels(node)[key]
    return domain
