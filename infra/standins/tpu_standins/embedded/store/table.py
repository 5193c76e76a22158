"""The table of kinds: one row each (pkg/registry, pkg/printers/internalversion of Kubernetes 1.36; pure)."""

from collections.abc import Mapping
from types import MappingProxyType

from tpu_standins.embedded.store import columns as cells
from tpu_standins.embedded.store import defaults, labels, rules
from tpu_standins.embedded.store.columns import columns
from tpu_standins.embedded.store.kinds import Kind

RBAC = "rbac.authorization.k8s.io"
_ROLE = columns("Name, Created At=.metadata.creationTimestamp")
_BINDING = columns("Name, Role=.roleRef.name, Age")
_IDENTITY = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

KINDS: tuple[Kind, ...] = (
    Kind(plural="namespaces", kind="Namespace", short=("ns",), namespaced=False, status=True,
        first_status={"phase": "Active"}, fields=("status.phase",), columns=columns("Name, Status=.status.phase, Age"),
        is_name=labels.is_label, defaults=defaults.namespace),
    Kind(plural="nodes", kind="Node", short=("no",), namespaced=False, status=True, fields=("spec.unschedulable",),
        columns=columns("Name, Status, Roles, Age, Version", "Internal-IP"), computed=cells.of_node,
        defaults=defaults.node, rules=rules.node, update_rules=rules.node_update),
    Kind(plural="pods", kind="Pod", short=("po",), categories=("all",), generation=True, answers_deleted=True,
        status=True, first_status={"phase": "Pending"}, subresources=("binding", "eviction", "log"),
        fields=(
            *(f"spec.{key}" for key in ("nodeName", "restartPolicy", "schedulerName", "serviceAccountName")),
            *(f"status.{key}" for key in ("phase", "podIP", "nominatedNodeName"))),
        columns=columns("Name, Ready, Status, Restarts, Age", "IP, Node, Nominated Node"),
        computed=cells.of_pod, defaults=defaults.pod, rules=rules.pod, update_rules=rules.pod_update),
    Kind(plural="services", kind="Service", short=("svc",), categories=("all",), answers_deleted=True, put_creates=True,
        status=True, first_status={"loadBalancer": {}}, fields=("spec.clusterIP", "spec.type"),
        columns=columns("Name, Type=.spec.type, Cluster-IP=.spec.clusterIP, Age"),
        is_name=labels.is_service_name, defaults=defaults.service, rules=rules.service),
    Kind(plural="events", kind="Event", short=("ev",), put_creates=True,
        fields=(*(f"involvedObject.{key}" for key in _IDENTITY), "reason", "reportingComponent", "type"),
        columns=columns("Last Seen, Type=.type, Reason=.reason, Object, Message=.message", "Source, Count, Name"),
        computed=cells.of_event, defaults=defaults.event, rules=rules.event),
    Kind(plural="serviceaccounts", kind="ServiceAccount", short=("sa",), answers_deleted=True, subresources=("token",)),
    Kind(plural="configmaps", kind="ConfigMap", short=("cm",), columns=columns("Name, Data, Age"),
        computed=cells.of_data),
    Kind(plural="secrets", kind="Secret", fields=("type",), columns=columns("Name, Type=.type, Data, Age"),
        computed=cells.of_data, defaults=defaults.filling(type="Opaque"), rules=rules.secret,
        update_rules=rules.fixed("type")),
    *(Kind(plural=f"{kind.lower()}s", kind=kind, short=(short,), namespaced=short == "pvc", status=True,
            answers_deleted=True, first_status={"phase": "Pending"},
            defaults=defaults.filling(spec={"volumeMode": "Filesystem"}),
            columns=columns("Name, Status=.status.phase, StorageClass=.spec.storageClassName, Age"))
      for kind, short in (("PersistentVolumeClaim", "pvc"), ("PersistentVolume", "pv"))),
    *(Kind(group="apps", plural=f"{kind.lower()}s", kind=kind, short=(short,), categories=("all",), generation=True,
            status=True, first_status={})
        for kind, short in (("Deployment", "deploy"), ("DaemonSet", "ds"), ("ReplicaSet", "rs"))),
    Kind(group="batch", plural="jobs", kind="Job", categories=("all",), generation=True, status=True, first_status={},
        columns=columns("Name, Status, Completions, Duration, Age", "Images"), computed=cells.of_job,
        defaults=defaults.job, rules=rules.job, update_rules=rules.job_update),
    Kind(group="coordination.k8s.io", plural="leases", kind="Lease", needs_version=True, put_creates=True,
        columns=columns("Name, Holder=.spec.holderIdentity, Age"), defaults=defaults.filling(spec={})),
    Kind(group="scheduling.k8s.io", plural="priorityclasses", kind="PriorityClass", short=("pc",), namespaced=False,
        generation=True, columns=columns("Name, Value=.value, Global-Default=.globalDefault, Age"),
        defaults=defaults.filling(preemptionPolicy="PreemptLowerPriority")),
    *(Kind(group=RBAC, plural=f"{kind.lower()}s", kind=kind, namespaced=kind[0] != "C", put_creates=True,
            is_name=labels.is_path_segment, columns=_BINDING if "Binding" in kind else _ROLE,
            defaults=defaults.binding if "Binding" in kind else defaults.filling(rules=None),
            rules=rules.binding, update_rules=rules.fixed("roleRef"))
        for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")),
    Kind(group="apiextensions.k8s.io", plural="customresourcedefinitions", kind="CustomResourceDefinition",
        short=("crd", "crds"), namespaced=False, generation=True, status=True, first_status={}, needs_version=True,
        columns=_ROLE, defaults=defaults.definition, rules=rules.definition),
    *(Kind(group="admissionregistration.k8s.io", plural=f"{kind.lower()}s", kind=kind, namespaced=False,
            generation=True, needs_version=True, defaults=defaults.webhooks, rules=rules.webhooks)
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")),
)  # fmt: skip
"""Every kind that is served without a CustomResourceDefinition."""

BUILT_IN: Mapping[str, Kind] = MappingProxyType({kind.id: kind for kind in KINDS})
