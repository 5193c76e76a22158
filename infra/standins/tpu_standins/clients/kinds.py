"""The kinds of objects that local clients read and write, and where they are served."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind: `api` is its apiVersion, `group/version` or the core group's `v1`."""

    plural: str
    api: str
    name: str
    namespaced: bool = True

    @property
    def root(self) -> str:
        """The path at which the kinds of its API version are listed."""
        return f"/apis/{self.api}" if "/" in self.api else f"/api/{self.api}"

    def path(self, namespace: str | None = None, name: str = "", part: str = "") -> str:
        """Return the path of an object or its part (`status`), or of a list; without a namespace that of all."""
        within = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return "/".join(filter(None, (f"{self.root}{within}/{self.plural}", name, part)))


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.plural: kind
        for kind in (
            Kind("namespaces", "v1", "Namespace", namespaced=False),
            Kind("nodes", "v1", "Node", namespaced=False),
            Kind("pods", "v1", "Pod"),
            Kind("services", "v1", "Service"),
            Kind("events", "v1", "Event"),
            Kind("serviceaccounts", "v1", "ServiceAccount"),
            Kind("secrets", "v1", "Secret"),
            Kind("jobs", "batch/v1", "Job"),
            Kind("leases", "coordination.k8s.io/v1", "Lease"),
            Kind("priorityclasses", "scheduling.k8s.io/v1", "PriorityClass", namespaced=False),
            Kind("clusterroles", "rbac.authorization.k8s.io/v1", "ClusterRole", namespaced=False),
            Kind("clusterrolebindings", "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", namespaced=False),
            Kind("roles", "rbac.authorization.k8s.io/v1", "Role"),
            Kind("rolebindings", "rbac.authorization.k8s.io/v1", "RoleBinding"),
            Kind("deployments", "apps/v1", "Deployment"),
            Kind("statefulsets", "apps/v1", "StatefulSet"),
            Kind("customresourcedefinitions", "apiextensions.k8s.io/v1", "CustomResourceDefinition", namespaced=False),
            Kind(
                "mutatingwebhookconfigurations",
                "admissionregistration.k8s.io/v1",
                "MutatingWebhookConfiguration",
                namespaced=False,
            ),
            Kind(
                "validatingwebhookconfigurations",
                "admissionregistration.k8s.io/v1",
                "ValidatingWebhookConfiguration",
                namespaced=False,
            ),
            Kind(
                "validatingadmissionpolicies",
                "admissionregistration.k8s.io/v1",
                "ValidatingAdmissionPolicy",
                namespaced=False,
            ),
            Kind(
                "validatingadmissionpolicybindings",
                "admissionregistration.k8s.io/v1",
                "ValidatingAdmissionPolicyBinding",
                namespaced=False,
            ),
            Kind(
                "mutatingadmissionpolicies",
                "admissionregistration.k8s.io/v1",
                "MutatingAdmissionPolicy",
                namespaced=False,
            ),
            Kind(
                "mutatingadmissionpolicybindings",
                "admissionregistration.k8s.io/v1",
                "MutatingAdmissionPolicyBinding",
                namespaced=False,
            ),
            Kind("tpunodegroups", "tpu.google.com/v1alpha1", "TPUNodeGroup"),
            Kind("tpuslices", "tpu-provisioner.cloud.google.com/v1alpha1", "TPUSlice"),
            Kind("tpuworkloads", "tpu-provisioner.cloud.google.com/v1alpha1", "TPUWorkload"),
            Kind("tpumirrors", "tpu-provisioner.cloud.google.com/v1alpha1", "TPUMirror", namespaced=False),
            Kind("jobsets", "jobset.x-k8s.io/v1alpha2", "JobSet"),
            Kind("leaderworkersets", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
            Kind("workloads", "kueue.x-k8s.io/v1beta2", "Workload"),
            Kind("clusterqueues", "kueue.x-k8s.io/v1beta2", "ClusterQueue", namespaced=False),
            Kind("localqueues", "kueue.x-k8s.io/v1beta2", "LocalQueue"),
            Kind("resourceflavors", "kueue.x-k8s.io/v1beta2", "ResourceFlavor", namespaced=False),
            Kind("workloadpriorityclasses", "kueue.x-k8s.io/v1beta2", "WorkloadPriorityClass", namespaced=False),
        )
    }
)
"""By plural."""
