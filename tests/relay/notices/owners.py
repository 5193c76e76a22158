"""What tells the owners of pods that get no slice, as tests drive it, and what the API server has for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from relay.health import Health
from relay.notices.unserved import OwnersTold
from relay.notices.unserved_pod import unserved
from relay.objects import Aside, Bookmarked, Failed, Listed, Lost, Saw, Ticked
from tests.relay.objects import Json
from tests.relay.watched import START, Watched
from tpu_slices.domain.model.slices import Owner
from tpu_slices.domain.model.vendors import GKE, Vendor

SECOND = timedelta(seconds=1)
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d-1", "controller": True}


@dataclass
class Cluster:
    """What the API server has; its calls fail while there is an error."""

    workloads: dict[str, Json] = field(default_factory=dict)
    helped: list[Json] = field(default_factory=list)
    events: dict[str, Json] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)
    posted: int = 0
    error: Exception | None = None

    def workload(self, owner: Owner) -> Json | None:
        self._answer()
        return self.workloads.get(owner.name)

    def replica_set(self, namespace: str, name: str) -> Json | None:
        self._answer()
        if not name.startswith("web"):
            return None
        return {"metadata": {"namespace": namespace, "name": name, "ownerReferences": [DEPLOYMENT]}}

    def scale_ups(self, namespace: str) -> Sequence[Json]:
        self._answer()
        return self.helped if namespace == "research" else []

    def renew(self, event: Mapping[str, Any]) -> None:
        self._answer()
        self.posted += 1
        self.events[event["metadata"]["name"]] = dict(event)

    def open_pod(self, namespace: str, name: str, uid: str) -> None:
        self._answer()
        self.opened.append(f"{namespace}/{name} {uid}")

    def _answer(self) -> None:
        if self.error is not None:
            raise self.error

    def said(self) -> dict[str, str]:
        """Return the message of each Event by the object that it is about."""
        about = {each["metadata"]["name"]: each["involvedObject"] for each in self.events.values()}
        return {f"{about[name]['kind']} {about[name]['name']}": each["message"] for name, each in self.events.items()}


class Told:
    """The relay's part that is tested, on a clock of its own, beside the fact queue, which has the leaders."""

    def __init__(self, vendor: Vendor = GKE) -> None:
        self.now = START
        self.cluster = Cluster()
        self.watched = Watched()
        health, leaders = Health(lambda: self.now), self.watched.queue.unserved
        self._owners = OwnersTold(self.cluster, lambda: self.now, health, leaders, vendor)

    def lists(self, *pods: Json) -> None:
        self._owners.put(Listed(Aside.UNSCHEDULED, [each for each in map(unserved, pods) if each], "1"))

    def sees(self, *pods: Json) -> None:
        for each in pods:
            read = unserved(each)
            assert read is not None
            self._owners.put(Saw(Aside.UNSCHEDULED, read, "2"))

    def loses(self, uid: str) -> None:
        self._owners.put(Lost(Aside.UNSCHEDULED, uid, "3", None, deleted=True))

    def puts(self, event: Bookmarked[Aside] | Failed[Aside] | Ticked[Aside]) -> None:
        self._owners.put(event)

    def after(self, time: timedelta) -> dict[str, str]:
        """Let time pass, and return what Events say."""
        self._owners.take()
        self.now += time
        self._owners.take()
        self._owners.look()
        return self.cluster.said()


def without_chips(made: Json) -> None:
    made["spec"]["containers"][0]["resources"] = {}


def claiming(made: Json, **spec: Any) -> Json:
    """Return a pod that claims chips as devices, in the place of requesting them."""
    without_chips(made)
    made["spec"] |= {"resourceClaims": [{"name": "tpus", "resourceClaimTemplateName": "all-tpus"}], **spec}
    return made
