"""Admission: what runs between validation and the store.

NamespaceLifecycle, Priority, ExtendedResourceToleration (which GKE enables),
the Job strategy's selector, and JobSet's webhook for pods (pkg/webhooks/pod_webhook.go).
DefaultTolerationSeconds is not covered: if a pod sets no tolerationSeconds, the controllers assume its 300. Nor is
the ServiceAccount of pods: no pod runs a program.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from infra.local.cluster import errors
from infra.local.cluster.defaults import containers
from infra.local.cluster.errors import ApiError
from infra.local.cluster.resources import Resource

_LABEL = "jobset.sigs.k8s.io/"
JOBSET_NAME = _LABEL + "jobset-name"
REPLICATED_JOB_NAME = _LABEL + "replicatedjob-name"
JOB_INDEX = _LABEL + "job-index"
JOB_KEY = _LABEL + "job-key"
PRIORITY = _LABEL + "priority"
EXCLUSIVE_TOPOLOGY = "alpha.jobset.sigs.k8s.io/exclusive-topology"
NODE_SELECTOR_STRATEGY = "alpha.jobset.sigs.k8s.io/node-selector"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TRANSIENT = "this is an expected, transient error"


class Cluster(Protocol):
    """The objects that admission looks up."""

    def get(self, plural: str, namespace: str | None, name: str) -> dict[str, Any]: ...

    def stored(self, plural: str, namespace: str | None = None) -> Sequence[dict[str, Any]]: ...


def admit(cluster: Cluster, resource: Resource, new: dict[str, Any]) -> None:
    """Complete a new object. Raise ApiError 403 if it is refused, 404 if its namespace does not exist."""
    if resource.namespaced:
        _require_live_namespace(cluster, resource, new["metadata"])
    if resource.plural == "jobs":
        _select_own_pods(new)
    if resource.plural == "priorityclasses":
        _one_default(cluster, new)
    if resource.plural == "pods":
        _set_priority(cluster, new)
        _tolerate_extended_resources(new["spec"])
        _place_exclusively(cluster, new)


def admit_update(resource: Resource, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Complete an updated object with what admission set on creation."""
    if resource.plural == "pods":
        for kept in ("priority", "preemptionPolicy"):
            if kept in old["spec"]:
                new["spec"].setdefault(kept, old["spec"][kept])
        _tolerate_extended_resources(new["spec"])


def _require_live_namespace(cluster: Cluster, resource: Resource, metadata: dict[str, Any]) -> None:
    name = metadata.setdefault("namespace", "default")
    namespace = cluster.get("namespaces", None, name)
    if "deletionTimestamp" in namespace["metadata"]:
        why = f"unable to create new content in namespace {name} because it is being terminated"
        raise errors.forbidden(resource.plural, resource.group, metadata.get("name", ""), why)


def _select_own_pods(job: dict[str, Any]) -> None:
    """Generate the selector and the pods' labels (pkg/registry/batch/job/strategy.go: generateSelector)."""
    metadata, spec = job["metadata"], job["spec"]
    if spec.get("manualSelector"):
        raise errors.not_implemented("manualSelector of Jobs")
    template = spec["template"].setdefault("metadata", {})
    uid, name = metadata["uid"], metadata.get("name", "")
    own = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    template["labels"] = template.get("labels", {}) | own
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    metadata.setdefault("labels", dict(template["labels"]))


def _set_priority(cluster: Cluster, pod: dict[str, Any]) -> None:
    """Set the pod's priority from its PriorityClass (plugin/pkg/admission/priority)."""
    spec, name = pod["spec"], pod["metadata"].get("name", "")
    chosen = _priority_class(cluster, spec.get("priorityClassName", ""), name)
    priority = chosen["value"] if chosen else 0
    if spec.setdefault("priority", priority) != priority:
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name"
        )
        raise errors.forbidden("pods", "", name, why)
    if chosen:
        spec["priorityClassName"] = chosen["metadata"]["name"]
    spec.setdefault("preemptionPolicy", chosen["preemptionPolicy"] if chosen else "PreemptLowerPriority")


def _priority_class(cluster: Cluster, wanted: str, pod: str) -> dict[str, Any] | None:
    """Return the class of that name; without a name, the default with the lowest value, or None if there is none."""
    classes = cluster.stored("priorityclasses")
    if wanted:
        found = next((one for one in classes if one["metadata"]["name"] == wanted), None)
        if found is None:
            raise errors.forbidden("pods", "", pod, f"no PriorityClass with name {wanted} was found")
        return found
    defaults = [one for one in classes if one.get("globalDefault")]
    return min(defaults, key=lambda one: int(one["value"]), default=None)


def _one_default(cluster: Cluster, new: dict[str, Any]) -> None:
    """Refuse a second default PriorityClass."""
    name = new["metadata"].get("name", "")
    for other in cluster.stored("priorityclasses"):
        known = other["metadata"]["name"]
        if new.get("globalDefault") and other.get("globalDefault") and known != name:
            why = f"PriorityClass {known} is already marked as default. Only one default can exist"
            raise errors.forbidden("priorityclasses", "scheduling.k8s.io", name, why)


def _tolerate_extended_resources(spec: dict[str, Any]) -> None:
    """Add a toleration for each extended resource that a container requests.

    plugin/pkg/admission/extendedresourcetoleration: `{key: <resource>, operator: Exists, effect: NoSchedule}`.
    """
    asked = {
        name
        for container in containers(spec)
        for name in container.get("resources", {}).get("requests", {})
        if "/" in name and not name.partition("/")[0].endswith("kubernetes.io")
    }
    for name in sorted(asked):
        toleration = {"key": name, "operator": "Exists", "effect": "NoSchedule"}
        tolerations = spec.setdefault("tolerations", [])
        if toleration not in tolerations:
            tolerations.append(toleration)


def _place_exclusively(cluster: Cluster, pod: dict[str, Any]) -> None:
    """Apply JobSet's mutating and validating pod webhooks to a JobSet's pods."""
    annotations = pod["metadata"].get("annotations", {})
    if JOBSET_NAME not in annotations or NODE_SELECTOR_STRATEGY in annotations:
        return
    labels = pod["metadata"].setdefault("labels", {})
    labels[PRIORITY] = str(pod["spec"]["priority"])
    topology = annotations.get(EXCLUSIVE_TOPOLOGY)
    if topology is None:
        return
    if annotations.get(COMPLETION_INDEX) == "0":
        _repel_other_jobs(pod, topology)
    else:
        _follow_leader(cluster, pod, topology)


def _repel_other_jobs(pod: dict[str, Any], topology: str) -> None:
    """Add to a leader pod affinity to its own Job and anti-affinity to other Jobs of the same priority."""
    labels = pod["metadata"]["labels"]
    own = [labels.get(JOB_KEY, "")]
    affinity = pod["spec"].setdefault("affinity", {})
    together = affinity.setdefault("podAffinity", {}).setdefault(_REQUIRED, [])
    together.append(_term(topology, [{"key": JOB_KEY, "operator": "In", "values": own}]))
    apart = affinity.setdefault("podAntiAffinity", {}).setdefault(_REQUIRED, [])
    apart.append(
        _term(
            topology,
            [
                {"key": JOB_KEY, "operator": "Exists"},
                {"key": JOB_KEY, "operator": "NotIn", "values": own},
                {"key": PRIORITY, "operator": "In", "values": [labels[PRIORITY]]},
            ],
        )
    )


def _term(topology: str, expressions: list[dict[str, Any]]) -> dict[str, Any]:
    selector = {"matchExpressions": expressions}
    return {"labelSelector": selector, "topologyKey": topology, "namespaceSelector": {}}


def _follow_leader(cluster: Cluster, pod: dict[str, Any], topology: str) -> None:
    """Select the leader's topology domain for a follower, or refuse the follower until the leader is on a node."""
    selector = pod["spec"].get("nodeSelector", {})
    leader, doubt = _leader_of(cluster, pod)
    if leader is not None and leader["spec"].get("nodeName"):
        pod["spec"]["nodeSelector"] = selector | {topology: _domain(cluster, leader, topology)}
        return
    if not selector:
        raise _denied("follower pod node selector not set")
    if topology not in selector:
        raise _denied(f"follower pod node selector for topology domain not found. missing selector: {topology}")
    raise _denied(doubt or f"leader pod not yet scheduled, not creating follower pod. {_TRANSIENT}")


def _domain(cluster: Cluster, leader: dict[str, Any], topology: str) -> str:
    name = leader["spec"]["nodeName"]
    try:
        labels = cluster.get("nodes", None, name)["metadata"].get("labels", {})
    except ApiError as error:
        raise _denied(error.message, webhook="mpod.kb.io") from error
    if topology not in labels:
        raise _denied(f"node does not have topology label: {topology}", webhook="mpod.kb.io")
    domain: str = labels[topology]
    return domain


def _leader_of(cluster: Cluster, pod: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Return the only live leader of the follower's Job, or None and the reason why there is none."""
    labels, namespace = pod["metadata"]["labels"], pod["metadata"]["namespace"]
    for key in (JOBSET_NAME, REPLICATED_JOB_NAME, JOB_INDEX):
        if key not in labels:
            return None, f"pod missing label: {key}"
    name = f"{labels[JOBSET_NAME]}-{labels[REPLICATED_JOB_NAME]}-{labels[JOB_INDEX]}-0"
    leaders = [other for other in cluster.stored("pods", namespace) if _is_live_leader(other, name)]
    if len(leaders) != 1:
        return None, f"expected 1 leader pod ({name}), but got {len(leaders)}. {_TRANSIENT}"
    own, theirs = _controller(pod), _controller(leaders[0])
    if own is None:
        return None, "follower pod has no owner reference"
    if theirs is None:
        return None, f'leader pod "{leaders[0]["metadata"]["name"]}" has no owner reference'
    if own != theirs:
        return None, f"follower pod owner UID ({own}) != leader pod owner UID ({theirs})"
    return leaders[0], ""


def _is_live_leader(pod: dict[str, Any], name: str) -> bool:
    """Return whether a live pod matches as in JobSet's index: by its name without the random suffix."""
    metadata = pod["metadata"]
    named = metadata["name"].rpartition("-")[0] == name
    ended = pod["status"].get("phase") in ("Succeeded", "Failed")
    return named and not ended and "deletionTimestamp" not in metadata


def _controller(pod: dict[str, Any]) -> str | None:
    references = pod["metadata"].get("ownerReferences", [])
    return next((reference["uid"] for reference in references if reference.get("controller")), None)


def _denied(why: str, webhook: str = "vpod.kb.io") -> ApiError:
    return ApiError(403, "Forbidden", f'admission webhook "{webhook}" denied the request: {why}')
