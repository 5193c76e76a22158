"""The admission plugins that matter here, and what the strategy of Jobs generates (plugin/pkg/admission)."""

from tpu_standins.clients.quantities import is_extended
from tpu_standins.embedded.store import errors
from tpu_standins.embedded.store.defaults import containers
from tpu_standins.embedded.store.kinds import Key, Kind, Object
from tpu_standins.embedded.store.objects import Objects
from tpu_standins.embedded.store.table import BUILT_IN

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
_TOLERATION_SECONDS = 300  # --default-not-ready-toleration-seconds
_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path
_KEPT = ("nodeName", "priority", "preemptionPolicy", "serviceAccountName", "serviceAccount", "volumes")


def require_namespace(objects: Objects, kind: Kind, obj: Object) -> None:
    """Raise ApiError 404 or 403 if the namespace of a new object does not exist, or is being deleted."""
    name = obj["metadata"].setdefault("namespace", "default")
    namespace = objects.get(BUILT_IN["namespaces"], "", name)
    if "deletionTimestamp" in namespace["metadata"]:
        why = f"unable to create new content in namespace {name} because it is being terminated"
        refusal = errors.forbidden(kind.plural, kind.group, obj["metadata"].get("name", ""), why)
        cause = {"reason": "NamespaceTerminating", "message": f"namespace {name} is being terminated"}
        refusal.details["causes"] = [cause | {"field": "metadata.namespace"}]
        raise refusal


def complete(objects: Objects, kind: Kind, new: Object) -> None:
    """Complete a new object. Raise ApiError 403 if it is refused."""
    if kind.id == "pods":
        _account(objects, new)
        _priority(objects, new)
        _tolerate(new["spec"])
    elif kind.id == "nodes":
        taints = new["spec"].setdefault("taints", [])
        if not any(taint.get("key") == NOT_READY for taint in taints):
            taints.append({"key": NOT_READY, "effect": "NoSchedule"})
    elif kind.id == "jobs":
        _own_pods(new)


def complete_update(kind: Kind, old: Object, new: Object) -> None:
    """Complete an updated object with what was added when it was created."""
    if kind.id == "pods":
        new["spec"] = {key: old["spec"][key] for key in _KEPT if key in old["spec"]} | new["spec"]
        for before, after in zip(containers(old["spec"]), containers(new["spec"]), strict=False):
            after.setdefault("volumeMounts", before.get("volumeMounts", []))
        _tolerate(new["spec"])


def _account(objects: Objects, pod: Object) -> None:
    """Set the pod's ServiceAccount, and a volume with the account's token."""
    spec, namespace = pod["spec"], pod["metadata"]["namespace"]
    name = spec["serviceAccountName"] = spec["serviceAccount"] = spec.get("serviceAccountName") or "default"
    if objects.find(Key("serviceaccounts", namespace, name)) is None:
        why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise errors.forbidden("pods", "", pod["metadata"].get("name", ""), why)
    if spec.get("automountServiceAccountToken", True):
        volume = f"kube-api-access-{pod['metadata']['uid'][:5]}"
        source = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
        spec.setdefault("volumes", []).append({"name": volume, "projected": {"sources": [source], "defaultMode": 420}})
        for container in containers(spec):
            mount = {"name": volume, "readOnly": True, "mountPath": _TOKEN}
            container.setdefault("volumeMounts", []).append(mount)


def _priority(objects: Objects, pod: Object) -> None:
    """Set the priority of the pod's PriorityClass; without one, of the default with the lowest value."""
    spec, name, wanted = pod["spec"], pod["metadata"].get("name", ""), pod["spec"].get("priorityClassName", "")
    classes = objects.stored(BUILT_IN["priorityclasses"])
    found = [one for one in classes if (one["metadata"]["name"] == wanted if wanted else one.get("globalDefault"))]
    if wanted and not found:
        raise errors.forbidden("pods", "", name, f"no PriorityClass with name {wanted} was found")
    chosen = min(found, key=lambda one: int(one.get("value", 0)), default=None)
    priority = chosen.get("value", 0) if chosen else 0
    if int(spec.setdefault("priority", priority)) != priority:
        why = f"the integer value of priority ({spec['priority']}) must not be provided in pod spec"
        raise errors.forbidden("pods", "", name, why)
    spec |= {"priorityClassName": chosen["metadata"]["name"]} if chosen else {}
    spec.setdefault("preemptionPolicy", chosen["preemptionPolicy"] if chosen else "PreemptLowerPriority")


def _tolerate(spec: Object) -> None:
    tolerations = spec.setdefault("tolerations", [])
    for key in (NOT_READY, UNREACHABLE):
        same = (each for each in tolerations if each.get("key", key) in (key, ""))
        if not any(each.get("effect", "") in ("", "NoExecute") for each in same):
            seconds = {"effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS}
            tolerations.append({"key": key, "operator": "Exists"} | seconds)
    asked = {name for each in containers(spec) for name in each.get("resources", {}).get("requests", {})}
    added = ({"key": name, "operator": "Exists", "effect": "NoSchedule"} for name in sorted(filter(is_extended, asked)))
    tolerations += [each for each in added if each not in tolerations]


def _own_pods(job: Object) -> None:
    """Generate the selector and the pods' labels (pkg/registry/batch/job/strategy.go: generateSelector)."""
    metadata, spec = job["metadata"], job["spec"]
    if spec.get("manualSelector"):
        raise errors.not_implemented("manualSelector of Jobs")
    keys = {"controller-uid": metadata["uid"], "job-name": metadata.get("name", "")}
    own = {f"{prefix}{key}": value for key, value in keys.items() for prefix in ("batch.kubernetes.io/", "")}
    template = spec["template"]["metadata"]
    template["labels"] = template.get("labels", {}) | own
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": metadata["uid"]}}
    metadata.setdefault("labels", dict(template["labels"]))
