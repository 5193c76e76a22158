"""The fixed table of resources that the local API server serves."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A resource as discovery describes it.

    `has_status`: the status is written only through its own subresource.
    `has_generation`: metadata.generation counts changes of the spec (core kinds before Pod never had it).
    `custom`: defined by a CRD; it refuses strategic merge patches and updates without resourceVersion.
    `returns_deleted`: DELETE returns the object itself (`Store.ReturnDeletedObject`), else a Status.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    has_status: bool
    has_generation: bool = False
    custom: bool = False
    returns_deleted: bool = False
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular(self) -> str:
        return self.kind.lower()


_RETURNED = ("persistentvolumeclaims", "persistentvolumes", "pods", "serviceaccounts", "services")


def _core(  # one row of the table below
    plural: str, kind: str, *, namespaced: bool = True, has_status: bool = True, short: str = ""
) -> Resource:
    return Resource(
        group="",
        version="v1",
        plural=plural,
        kind=kind,
        namespaced=namespaced,
        has_status=has_status,
        has_generation=plural == "pods",
        returns_deleted=plural in _RETURNED,
        short_names=(short,),
        categories=("all",) if plural in ("pods", "services") else (),
    )


def _plain(  # as above, for groups whose objects are only stored
    group: str, plural: str, kind: str, *, namespaced: bool = True, short: str = ""
) -> Resource:
    has_status = group == "apps"
    return Resource(
        group=group,
        version="v1",
        plural=plural,
        kind=kind,
        namespaced=namespaced,
        has_status=has_status,
        has_generation=plural != "leases",
        short_names=(short,) if short else (),
        categories=("all",) if has_status else (),
    )


def _rbac(plural: str, kind: str, *, namespaced: bool) -> Resource:
    return Resource(
        group="rbac.authorization.k8s.io",
        version="v1",
        plural=plural,
        kind=kind,
        namespaced=namespaced,
        has_status=False,
    )


def _kueue(
    plural: str, kind: str, *, namespaced: bool = True, has_status: bool = True, short: tuple[str, ...]
) -> Resource:
    return Resource(
        group="kueue.x-k8s.io",
        version="v1beta1",
        plural=plural,
        kind=kind,
        namespaced=namespaced,
        has_status=has_status,
        has_generation=True,
        custom=True,
        short_names=short,
    )


_TABLE = (
    _core("namespaces", "Namespace", namespaced=False, short="ns"),
    _core("nodes", "Node", namespaced=False, short="no"),
    _core("pods", "Pod", short="po"),
    _core("services", "Service", short="svc"),
    _core("events", "Event", has_status=False, short="ev"),
    _core("serviceaccounts", "ServiceAccount", has_status=False, short="sa"),
    _core("persistentvolumeclaims", "PersistentVolumeClaim", short="pvc"),
    _core("persistentvolumes", "PersistentVolume", namespaced=False, short="pv"),
    _core("configmaps", "ConfigMap", has_status=False, short="cm"),
    _plain("apps", "deployments", "Deployment", short="deploy"),
    _plain("apps", "daemonsets", "DaemonSet", short="ds"),
    _plain("coordination.k8s.io", "leases", "Lease"),
    _plain("scheduling.k8s.io", "priorityclasses", "PriorityClass", namespaced=False, short="pc"),
    Resource(
        group="batch",
        version="v1",
        plural="jobs",
        kind="Job",
        namespaced=True,
        has_status=True,
        has_generation=True,
        categories=("all",),
    ),
    Resource(
        group="jobset.x-k8s.io",
        version="v1alpha2",
        plural="jobsets",
        kind="JobSet",
        namespaced=True,
        has_status=True,
        has_generation=True,
        custom=True,
    ),
    _rbac("clusterroles", "ClusterRole", namespaced=False),
    _rbac("clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    _rbac("roles", "Role", namespaced=True),
    _rbac("rolebindings", "RoleBinding", namespaced=True),
    _kueue("resourceflavors", "ResourceFlavor", namespaced=False, has_status=False, short=("flavor", "flavors", "rf")),
    _kueue("clusterqueues", "ClusterQueue", namespaced=False, short=("cq",)),
    _kueue("localqueues", "LocalQueue", short=("queue", "queues", "lq")),
    _kueue("workloads", "Workload", short=("kwl", "kueueworkload", "kueueworkloads")),
    _kueue("workloadpriorityclasses", "WorkloadPriorityClass", namespaced=False, has_status=False, short=("wpc",)),
)

RESOURCES: Mapping[str, Resource] = MappingProxyType({resource.plural: resource for resource in _TABLE})
"""By plural name, which is unique in this table."""
