"""The admission plugins that matter here: they complete a new object, or refuse it (plugin/pkg/admission).

NamespaceLifecycle, ServiceAccount (without the token's volume), Priority, DefaultTolerationSeconds,
ExtendedResourceToleration (which GKE enables), TaintNodesByCondition; and what the strategies of Jobs generate.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from infra.local.embedded.store import errors
from infra.local.embedded.store.defaults import containers
from infra.local.embedded.store.deletion import PERMANENT_NAMESPACES
from infra.local.embedded.store.kinds import Key, Kind, Object
from infra.local.embedded.store.objects import Objects
from infra.local.embedded.store.quantities import is_extended
from infra.local.embedded.store.rules import SYSTEM_CLASSES
from infra.local.embedded.store.table import BUILT_IN

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


@dataclass(frozen=True, slots=True)
class Admission:
    """`toleration_seconds`: how long pods stay on a node that is lost (--default-not-ready-toleration-seconds)."""

    objects: Objects
    toleration_seconds: int = 300

    def require_namespace(self, kind: Kind, obj: Object) -> None:
        """Raise ApiError 404 or 403 if the namespace of a new object does not exist, or is being deleted."""
        name = obj["metadata"].setdefault("namespace", "default")
        namespace = self.objects.get(BUILT_IN["namespaces"], "", name)
        if "deletionTimestamp" in namespace["metadata"]:
            why = f"unable to create new content in namespace {name} because it is being terminated"
            refusal = errors.forbidden(kind.plural, kind.group, obj["metadata"].get("name", ""), why)
            message = f"namespace {name} is being terminated"
            cause = {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
            refusal.details["causes"] = [cause]
            raise refusal

    def complete(self, kind: Kind, new: Object) -> None:
        """Complete a new object. Raise ApiError 403 if it is refused."""
        match kind.id:
            case "pods":
                self._account(new)
                self._priority(new)
                self._tolerate(new["spec"])
            case "nodes":
                taints = new["spec"].setdefault("taints", [])
                if not any(taint.get("key") == NOT_READY for taint in taints):
                    taints.append({"key": NOT_READY, "effect": "NoSchedule"})
            case "jobs":
                _own_pods(new)
            case "priorityclasses":
                self._one_default(new)

    def complete_update(self, kind: Kind, old: Object, new: Object) -> None:
        """Complete an updated object with what was added when it was created."""
        if kind.id == "pods":
            for kept in ("nodeName", "priority", "preemptionPolicy", "serviceAccountName", "serviceAccount"):
                if kept in old["spec"]:
                    new["spec"].setdefault(kept, old["spec"][kept])
            self._tolerate(new["spec"])

    def _account(self, pod: Object) -> None:
        spec, metadata = pod["spec"], pod["metadata"]
        name = spec["serviceAccountName"] = spec.get("serviceAccountName") or "default"
        spec["serviceAccount"] = name
        if self.objects.find(Key("serviceaccounts", metadata["namespace"], name)) is None:
            why = f'error looking up service account {metadata["namespace"]}/{name}: serviceaccount "{name}" not found'
            raise errors.forbidden("pods", "", metadata.get("name", ""), why)

    def _priority(self, pod: Object) -> None:
        spec, name = pod["spec"], pod["metadata"].get("name", "")
        chosen = self._class(spec.get("priorityClassName", ""), name)
        priority = chosen.get("value", 0) if chosen else 0
        if spec.setdefault("priority", priority) != priority:
            why = f"the integer value of priority ({spec['priority']}) must not be provided in pod spec"
            raise errors.forbidden("pods", "", name, why)
        if chosen:
            spec["priorityClassName"] = chosen["metadata"]["name"]
        spec.setdefault("preemptionPolicy", chosen["preemptionPolicy"] if chosen else "PreemptLowerPriority")

    def _class(self, wanted: str, pod: str) -> Object | None:
        """Return the PriorityClass of that name; without one the default with the lowest value, if there is any."""
        classes = self.objects.stored(BUILT_IN["priorityclasses"])
        found = [one for one in classes if (one["metadata"]["name"] == wanted if wanted else one.get("globalDefault"))]
        if wanted and not found:
            raise errors.forbidden("pods", "", pod, f"no PriorityClass with name {wanted} was found")
        return min(found, key=lambda one: int(one.get("value", 0)), default=None)

    def _one_default(self, new: Object) -> None:
        for other in self.objects.stored(BUILT_IN["priorityclasses"]):
            if new.get("globalDefault") and other.get("globalDefault"):
                name = other["metadata"]["name"]
                why = f"PriorityClass {name} is already marked as default. Only one default can exist"
                raise errors.forbidden("priorityclasses", "scheduling.k8s.io", new["metadata"].get("name", ""), why)

    def _tolerate(self, spec: Object) -> None:
        tolerations = spec.setdefault("tolerations", [])
        for key in (NOT_READY, UNREACHABLE):
            if not any(_covers(toleration, key) for toleration in tolerations):
                seconds = {"effect": "NoExecute", "tolerationSeconds": self.toleration_seconds}
                tolerations.append({"key": key, "operator": "Exists"} | seconds)
        for name in sorted(set(_extended_resources(spec))):
            if (toleration := {"key": name, "operator": "Exists", "effect": "NoSchedule"}) not in tolerations:
                tolerations.append(toleration)


def _covers(toleration: Object, key: str) -> bool:
    return toleration.get("key", key) in (key, "") and toleration.get("effect", "") in ("", "NoExecute")


def _extended_resources(spec: Object) -> Iterator[str]:
    for container in containers(spec):
        yield from filter(is_extended, container.get("resources", {}).get("requests", {}))


def _own_pods(job: Object) -> None:
    """Generate the selector and the pods' labels (pkg/registry/batch/job/strategy.go: generateSelector)."""
    metadata, spec = job["metadata"], job["spec"]
    if spec.get("manualSelector"):
        raise errors.not_implemented("manualSelector of Jobs")
    uid, name = metadata["uid"], metadata.get("name", "")
    keys = {"controller-uid": uid, "job-name": name}
    own = {f"{prefix}{key}": value for key, value in keys.items() for prefix in ("batch.kubernetes.io/", "")}
    template = spec["template"].setdefault("metadata", {})
    template["labels"] = template.get("labels", {}) | own
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    metadata.setdefault("labels", dict(template["labels"]))


def first_objects() -> Iterator[tuple[Kind, Object]]:
    """Yield what a new cluster has from the beginning, beside roles."""
    for name in PERMANENT_NAMESPACES:
        yield BUILT_IN["namespaces"], {"metadata": {"name": name}}
    for name, value in SYSTEM_CLASSES.items():
        yield BUILT_IN["priorityclasses"], {"metadata": {"name": name}, "value": value}
