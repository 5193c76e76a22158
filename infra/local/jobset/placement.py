"""JobSet's pod controller: followers that do not select their leader's domain are deleted, and then recreated.

Source: sigs.k8s.io/jobset pkg/controllers/pod_controller.go of 0.12. Pods placed by node selector do not follow.
"""

from collections.abc import Iterable
from datetime import datetime

from infra.local.clients.conditions import Condition, is_true, of, with_condition
from infra.local.clients.events import Recorder
from infra.local.clients.objects import Object, Objects
from infra.local.clients.owners import by_controller, controller_uid
from infra.local.clients.rounds import each
from infra.local.jobset.keys import EXCLUSIVE_TOPOLOGY, NODE_SELECTOR_STRATEGY
from infra.local.jobset.pods import is_leader, lives

SOURCE = "pod"
"""The name of the event recorder upstream (main.go)."""

_VIOLATION = Condition(
    type="DisruptionTarget",
    reason="ExclusivePlacementViolation",
    message="Pod violated JobSet exclusive placement policy",
)


class Placement:
    """The controller, and its Events."""

    def __init__(self) -> None:
        self._recorder = Recorder(SOURCE)

    def reconcile(self, objects: Objects, now: datetime, _: object) -> datetime | None:
        pods = objects.stored("pods")
        siblings = by_controller(pods)
        nodes = {node["metadata"]["name"]: node for node in objects.stored("nodes")}

        def check(leader: Object) -> None:
            node = nodes.get(leader["spec"]["nodeName"])
            owner = controller_uid(leader)
            if node is not None and owner is not None:
                for pod in astray(leader, node, siblings[owner]):
                    _end(objects, pod, now)

        return each(filter(_leads, pods), check, self._recorder.doubting(objects, now))


def astray(leader: Object, node: Object, pods: Iterable[Object]) -> list[Object]:
    """Return all live followers if one of them selects another domain than that of the leader's node (pure)."""
    key = leader["metadata"]["annotations"][EXCLUSIVE_TOPOLOGY]
    domain = (node["metadata"].get("labels") or {}).get(key)
    followers = [pod for pod in pods if lives(pod) and not is_leader(pod)]
    led = all((pod["spec"].get("nodeSelector") or {}).get(key) == domain for pod in followers)
    return [] if led or domain is None else followers


def _leads(pod: Object) -> bool:
    annotations = pod["metadata"].get("annotations") or {}
    exclusive = EXCLUSIVE_TOPOLOGY in annotations and NODE_SELECTOR_STRATEGY not in annotations
    return exclusive and lives(pod) and bool(pod["spec"].get("nodeName")) and is_leader(pod)


def _end(objects: Objects, pod: Object, now: datetime) -> None:
    if not is_true(pod, _VIOLATION.type):
        status = pod.get("status", {}) | {"conditions": with_condition(of(pod), _VIOLATION, now)}
        objects.update("pods", pod | {"status": status}, status=True)
    objects.delete("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
