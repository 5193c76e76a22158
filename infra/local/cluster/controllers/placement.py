"""JobSet's pod controller: followers that do not select their leader's domain are deleted, and then recreated.

Source: sigs.k8s.io/jobset pkg/controllers/pod_controller.go. Pods placed by node selector do not follow a leader.
"""

from collections.abc import Iterable
from datetime import datetime

from infra.local.cluster.controllers import disruption, events
from infra.local.cluster.controllers.board import finished
from infra.local.cluster.controllers.conditions import Condition
from infra.local.cluster.controllers.keys import COMPLETION_INDEX, EXCLUSIVE_TOPOLOGY, NODE_SELECTOR_STRATEGY
from infra.local.cluster.controllers.ownership import by_controller, controller_uid
from infra.local.cluster.controllers.pace import Pace
from infra.local.cluster.controllers.rounds import each
from infra.local.cluster.objects import Object, Objects

SOURCE = "pod"
"""The name of the event recorder upstream (main.go)."""

_VIOLATION = Condition(
    type=disruption.TARGET,
    reason="ExclusivePlacementViolation",
    message="Pod violated JobSet exclusive placement policy",
)


def reconcile(objects: Objects, now: datetime, _: Pace) -> None:
    pods = objects.stored("pods")
    siblings = by_controller(pods)
    nodes = {node["metadata"]["name"]: node for node in objects.stored("nodes")}

    def check(leader: Object) -> None:
        node = nodes.get(leader["spec"]["nodeName"])
        owner = controller_uid(leader)
        if node is not None and owner is not None:
            for pod in astray(leader, node, siblings[owner]):
                disruption.end(objects, pod, _VIOLATION, now)

    each(filter(_leads, pods), check, events.doubting(objects, SOURCE, now))


def astray(leader: Object, node: Object, pods: Iterable[Object]) -> list[Object]:
    """Return all live followers if one of them selects another domain than that of the leader's node (pure)."""
    key = leader["metadata"]["annotations"][EXCLUSIVE_TOPOLOGY]
    domain = (node["metadata"].get("labels") or {}).get(key)
    followers = [
        pod for pod in pods if not (_is_leader(pod) or finished(pod) or "deletionTimestamp" in pod["metadata"])
    ]
    led = all((pod["spec"].get("nodeSelector") or {}).get(key) == domain for pod in followers)
    return [] if led or domain is None else followers


def _leads(pod: Object) -> bool:
    annotations = pod["metadata"].get("annotations") or {}
    exclusive = EXCLUSIVE_TOPOLOGY in annotations and NODE_SELECTOR_STRATEGY not in annotations
    living = not finished(pod) and "deletionTimestamp" not in pod["metadata"]
    return exclusive and living and bool(pod["spec"].get("nodeName")) and _is_leader(pod)


def _is_leader(pod: Object) -> bool:
    return bool((pod["metadata"].get("annotations") or {}).get(COMPLETION_INDEX) == "0")
