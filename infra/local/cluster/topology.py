"""How server-side apply merges the lists and maps of objects: the keys of items, and what is atomic.

Facts: `x-kubernetes-list-type`, `-list-map-keys` and `-map-type` of the published OpenAPI documents (core kinds
and the CRDs of JobSet and Kueue; they agree on pod templates). Fields are keyed by the shape that has them.
A list that is not listed here is atomic, and so is a value of a shape in `ATOMIC`.
"""

from collections.abc import Mapping
from types import MappingProxyType

_CONTAINER: Mapping[str, tuple[str, ...]] = {
    "env": ("name",),
    "ports": ("containerPort", "protocol"),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
}

KEYED_LISTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "V1ObjectMeta.ownerReferences": ("uid",),
        "V1PodSpec.containers": ("name",),
        "V1PodSpec.ephemeralContainers": ("name",),
        "V1PodSpec.hostAliases": ("ip",),
        "V1PodSpec.imagePullSecrets": ("name",),
        "V1PodSpec.initContainers": ("name",),
        "V1PodSpec.resourceClaims": ("name",),
        "V1PodSpec.schedulingGates": ("name",),
        "V1PodSpec.topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
        "V1PodSpec.volumes": ("name",),
        **{f"V1Container.{field}": keys for field, keys in _CONTAINER.items()},
        **{f"V1EphemeralContainer.{field}": keys for field, keys in _CONTAINER.items()},
        "V1ResourceRequirements.claims": ("name",),
        "V1PodStatus.conditions": ("type",),
        "V1PodStatus.podIPs": ("ip",),
        "V1PodStatus.resourceClaimStatuses": ("name",),
        "V1ContainerStatus.allocatedResourcesStatus": ("name",),
        "V1ContainerStatus.volumeMounts": ("mountPath",),
        "V1NodeStatus.addresses": ("type",),
        "V1NodeStatus.conditions": ("type",),
        "V1NamespaceStatus.conditions": ("type",),
        "V1ServiceSpec.ports": ("port", "protocol"),
        "V1ServiceStatus.conditions": ("type",),
        "V1ServiceAccount.secrets": ("name",),
        "V1PersistentVolumeClaimStatus.conditions": ("type",),
        "V1DeploymentStatus.conditions": ("type",),
        "V1DaemonSetStatus.conditions": ("type",),
        "JobSetSpec.replicatedJobs": ("name",),
        "ReplicatedJob.dependsOn": ("name",),
        "JobSetStatus.conditions": ("type",),
        "JobSetStatus.replicatedJobsStatus": ("name",),
        "ResourceGroup.flavors": ("name",),
        "FlavorQuotas.resources": ("name",),
        "ClusterQueueStatus.conditions": ("type",),
        "ClusterQueueStatus.flavorsReservation": ("name",),
        "ClusterQueueStatus.flavorsUsage": ("name",),
        "FlavorUsage.resources": ("name",),
        "LocalQueueStatus.conditions": ("type",),
        "LocalQueueStatus.flavorUsage": ("name",),
        "LocalQueueStatus.flavorsReservation": ("name",),
        "WorkloadSpec.podSets": ("name",),
        "Admission.podSetAssignments": ("name",),
        "WorkloadStatus.admissionChecks": ("name",),
        "WorkloadStatus.conditions": ("type",),
        "WorkloadStatus.reclaimablePods": ("name",),
        "WorkloadStatus.resourceRequests": ("name",),
        "SchedulingStats.evictions": ("reason", "underlyingCause"),
    }
)
"""Lists of type `map`, and the fields that identify their items."""

SETS = frozenset(
    {
        "V1ObjectMeta.finalizers",
        "V1NodeSpec.podCIDRs",
        "V1ContainerRestartRuleOnExitCodes.values",
        "V1PodFailurePolicyOnExitCodesRequirement.values",
        "V1UncountedTerminatedPods.failed",
        "V1UncountedTerminatedPods.succeeded",
    }
)

ATOMIC = frozenset(
    {
        "V1ConfigMapKeySelector",
        "V1FileKeySelector",
        "V1LabelSelector",
        "V1LocalObjectReference",
        "V1NodeSelector",
        "V1NodeSelectorTerm",
        "V1ObjectFieldSelector",
        "V1ObjectReference",
        "V1OwnerReference",
        "V1ResourceFieldSelector",
        "V1SecretKeySelector",
        "V1SecretReference",
        "V1TypedLocalObjectReference",
        "V1PodSpec.nodeSelector",
        "V1ServiceSpec.selector",
        "ResourceFlavorSpec.nodeLabels",
    }
)
"""Atomic shapes and maps."""

SEPARABLE = frozenset({"V1PersistentVolumeSpec.claimRef"})
"""Fields whose parts are owned separately although their shape is atomic elsewhere."""

KEY_DEFAULTS: Mapping[str, str] = MappingProxyType({"protocol": "TCP"})
"""Defaults of key fields that an item leaves out."""
