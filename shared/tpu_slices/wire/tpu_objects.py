"""Recognises every Kubernetes object that requests TPU chips, and tells those that get no slice from here why. Pure.

Chips are found wherever an object has `limits` or `requests` with `google.com/tpu`, so that kinds unknown here are
recognised, too. What the object's controller is decides what is told:

| kind                                           | no slice, since                        | instead                 |
|------------------------------------------------|----------------------------------------|-------------------------|
| Job that is not Indexed, but for one of one    | no pod of it leads                     | Indexed                 |
| pod that fills a slice                         |                                        |                         |
| CronJob                                        | the Jobs that it creates get them      | plan such a Job         |
| Deployment, ReplicaSet, StatefulSet            | its pods come and go one by one        | `serve`, if each takes  |
|                                                |                                        | a host, or `beside`     |
| ReplicationController                          | the same                               | the vendor's `beside`   |
| DaemonSet                                      | its pods run on nodes that exist       | nothing                 |
| Pod without a controller                       | it is not among those that `serve` has | that, `serve`, a JobSet |
| LeaderWorkerSet                                | a pod of it that does not lead         | plan the set            |
| ray.io: RayCluster, RayJob, RayService, …      | KubeRay creates its pods one by one    | a Job, LeaderWorkerSet, |
|                                                |                                        | or `beside`             |
| kubeflow.org: PyTorchJob, JAXJob, MPIJob, …    | its pods are not those of Jobs         | a TrainJob, or a JobSet |
| trainer.kubeflow.org, PathwaysJob              | the JobSet that it becomes gets slices | plan that JobSet        |
| disaggregatedset.x-k8s.io: DisaggregatedSet    | each role of it is a LeaderWorkerSet   | plan these              |
| every other                                    | its kind is unknown here               | that, or a JobSet       |

An object of another one is told with its controller, and with its JobSet if it has one. Where a template selects nodes
of GKE's own provisioners (`GKE_PROVISIONERS`), in a cluster of GKE that is told instead. `wire.pods` has those that are
served where the setting `serve` names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tpu_slices.domain.model.clusters import PodsOf
from tpu_slices.domain.model.vendors import GKE, Vendor
from tpu_slices.domain.planning.host_labels import GKE_PROVISIONERS
from tpu_slices.wire import leader_worker_sets
from tpu_slices.wire.jobs import NOBODY_LEADS
from tpu_slices.wire.workloads import CHIPS, COMPLETION_INDEX, JOBSET_NAME, Json

_PREFIX = 58
"""Of longer prefixes of generated names the API server takes the beginning."""
_PATHWAYS = ("pathways-job.pathways.domain", "PathwaysJob")
"""Names machine types instead of chips (google/pathways-job, api/v1)."""

_TPU_NODES = "cloud-tpus.google.com/"
"""How the names of resources began by which GKE's clusters had TPUs before they had hosts with TPUs."""

_ONE_BY_ONE = "its pods come and go one by one, and a slice is created and deleted as a whole: {vendor.beside}"
_BY_SETTING = "or, if each pod takes a whole host, add {kind} to serve in the cluster's settings"
_KINDS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        (
            "batch",
            "CronJob",
        ): "the Jobs that it creates get slices like any others: plan such a Job",
        ("apps", "Deployment"): f"{_ONE_BY_ONE}, {_BY_SETTING}",
        ("apps", "ReplicaSet"): f"{_ONE_BY_ONE}, {_BY_SETTING}",
        ("apps", "StatefulSet"): f"{_ONE_BY_ONE}, {_BY_SETTING}",
        ("", "ReplicationController"): _ONE_BY_ONE,
        ("apps", "DaemonSet"): "its pods run on the nodes that exist, and no node is created for them: nothing to do",
        (
            "",
            "Pod",
        ): "a pod by itself gets none here: {vendor.beside}, or make it a Job of a JobSet, or, if it takes a whole "
        "host, add {kind} to serve in the cluster's settings",
        (
            "leaderworkerset.x-k8s.io",
            "LeaderWorkerSet",
        ): "its group's leader gets the slice: plan the LeaderWorkerSet",
        _PATHWAYS: "the JobSet that its controller creates gets the slices: plan that one",
    }
)
SERVED_AS: Mapping[tuple[str, str], PodsOf] = MappingProxyType(
    {
        ("", "Pod"): PodsOf.POD,
        ("apps", "Deployment"): PodsOf.DEPLOYMENT,
        ("apps", "ReplicaSet"): PodsOf.DEPLOYMENT,
        ("apps", "StatefulSet"): PodsOf.STATEFUL_SET,
    }
)
"""What the setting `serve` calls objects whose pods it may serve, by API group and kind."""
_GROUPS: Mapping[str, str] = MappingProxyType(
    {
        "ray.io": "KubeRay creates and deletes its pods one by one: {vendor.beside}, or run Ray in a Job or a "
        "LeaderWorkerSet",
        "kubeflow.org": "its pods are not those of Jobs: use a JobSet, or a TrainJob, which Kubeflow makes one of",
        "disaggregatedset.x-k8s.io": "the LeaderWorkerSets that its controller makes of its roles get the slices: plan "
        "one of each role",
        "trainer.kubeflow.org": "the JobSet that Kubeflow Trainer makes of it gets the slices: plan that one",
    }
)
_INDEXED = "the Job's pod of completion index 0 gets the slice: plan the Job"
_UNKNOWN = (
    "no slice is made for its kind: {vendor.beside}, or a JobSet; JobSets, Jobs and LeaderWorkerSets that its "
    "controller creates get slices"
)


@dataclass(frozen=True, slots=True)
class Controller:
    """The object whose controller decides what becomes of the pods."""

    group: str
    kind: str
    name: str
    indexed: bool


def name_of(metadata: Json) -> str:
    """Return the name of an object, or one such as the API server would generate; empty if it is to have none."""
    prefix = metadata.get("generateName")
    return str(metadata.get("name") or (f"{str(prefix)[:_PREFIX]}xxxxx" if prefix else ""))


def requests_chips(obj: Json) -> bool:
    """Return whether an object of whatever kind requests chips for the pods that come of it."""
    group, kind = _group_and_kind(obj)
    sections = (section for each in mappings(obj.get("spec") or obj) for section in _resources(each))
    return (group, kind) == _PATHWAYS or any(section.get(CHIPS) not in (None, 0, "0") for section in sections)


def of_tpu_nodes(obj: Json) -> str | None:
    """Return the resource of TPU Nodes that an object requests, which no host offers; None: it requests none."""
    sections = (section for each in mappings(obj.get("spec") or obj) for section in _resources(each))
    return next((str(name) for section in sections for name in section if str(name).startswith(_TPU_NODES)), None)


def why_not_served(obj: Json, vendor: Vendor = GKE) -> str | None:
    """Return why an object that requests chips gets no slice, and what to do; None: it requests none.

    Workloads that are served (`readers.READERS`), and their leader pods, are not to be asked for.
    """
    if not requests_chips(obj):
        return None
    metadata = _mapping(obj.get("metadata"))
    itself = f"{obj.get('kind')} {name_of(metadata)}"
    labels = _mapping(metadata.get("labels"))
    if JOBSET_NAME in labels:
        return f"{itself} belongs to JobSet {labels[JOBSET_NAME]}, whose Jobs get the slices: plan that one"
    controller = controller_of(obj)
    whose = f"{controller.kind} {controller.name}"
    of = "" if whose == itself else f" of {whose}"
    theirs = provisioned_by_gke(obj) if vendor is GKE else None
    return f"{itself}{of} gets no slice: {theirs or why_none_for(controller, vendor)}"


def why_none_for(controller: Controller, vendor: Vendor) -> str:
    """Return why the pods that an object controls get no slice, as a clause with the remedy."""
    kind = controller.group, controller.kind
    if kind == ("batch", "Job"):
        return _INDEXED if controller.indexed else NOBODY_LEADS
    text = _KINDS.get(kind) or _GROUPS.get(controller.group, _UNKNOWN)
    return text.format(vendor=vendor, kind=SERVED_AS.get(kind, controller.kind))


def provisioned_by_gke(obj: Json) -> str | None:
    """Return that GKE provisions the nodes, if a pod template selects so."""
    selectors = (_mapping(each.get("nodeSelector")) for each in mappings(obj) if "containers" in each)
    selected = ((key, selector[key]) for selector in selectors for key in GKE_PROVISIONERS if key in selector)
    return next(
        (f'{key}: its pods select "{value}", so GKE itself provisions the nodes' for key, value in selected), None
    )


def controller_of(obj: Json) -> Controller:
    """Return an object's LeaderWorkerSet or controller, or itself if it has neither."""
    metadata = _mapping(obj.get("metadata"))
    labels, annotations = _mapping(metadata.get("labels")), _mapping(metadata.get("annotations"))
    if leader_worker_sets.NAME in labels:
        return Controller(
            "leaderworkerset.x-k8s.io", "LeaderWorkerSet", str(labels[leader_worker_sets.NAME]), indexed=False
        )
    references = (_mapping(each) for each in metadata.get("ownerReferences") or ())
    owner = next((each for each in references if each.get("controller")), None)
    if owner is not None:
        return Controller(
            *_group_and_kind(owner), str(owner.get("name")), indexed=COMPLETION_INDEX in {**labels, **annotations}
        )
    indexed = _mapping(obj.get("spec")).get("completionMode") == "Indexed"
    return Controller(*_group_and_kind(obj), name_of(metadata), indexed=indexed)


def _group_and_kind(obj: Json) -> tuple[str, str]:
    """Return the API group, empty for the core one, and the kind of an object or of a reference to one."""
    group, slash, _ = str(obj.get("apiVersion")).partition("/")
    return group if slash else "", str(obj.get("kind"))


def _resources(section: Json) -> Iterator[Json]:
    return (_mapping(section.get(key)) for key in ("limits", "requests"))


def mappings(value: Any) -> Iterator[Json]:
    """Yield every mapping in a value, each once: YAML's aliases may repeat them, and refer to what they are in."""
    left, seen = [value], set[int]()
    while left:
        current = left.pop()
        if id(current) in seen:
            continue
        if isinstance(current, Mapping):
            seen.add(id(current))
            yield current
            left.extend(current.values())
        elif isinstance(current, list):
            seen.add(id(current))
            left.extend(current)


def _mapping(value: Any) -> Json:
    return value if isinstance(value, Mapping) else {}
