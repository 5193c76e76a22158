"""Rules of the CRDs of kueue.x-k8s.io/v1beta1 beyond the types of fields, like `jobset_schema`.

Source: config/components/crd/bases of sigs.k8s.io/kueue. Fields are keyed by the type that has them.
"""

from collections.abc import Mapping
from types import MappingProxyType

from infra.local.cluster.kueue_api.keys import POD_PRIORITY_CLASS, WORKLOAD_PRIORITY_CLASS

_STOP_POLICIES = ("None", "Hold", "HoldAndDrain")

DEFAULTED = frozenset({"PodSet.count"})
"""Required by the schema but never missing, because it also defaults them."""

ENUMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "LocalQueueSpec.stopPolicy": _STOP_POLICIES,
        "ClusterQueueSpec.stopPolicy": _STOP_POLICIES,
        "ClusterQueueSpec.queueingStrategy": ("StrictFIFO", "BestEffortFIFO"),
        "FlavorFungibility.preference": ("BorrowingOverPreemption", "PreemptionOverBorrowing"),
        "FlavorFungibility.whenCanBorrow": ("MayStopSearch", "TryNextFlavor", "Borrow"),
        "FlavorFungibility.whenCanPreempt": ("MayStopSearch", "TryNextFlavor", "Preempt"),
        "ClusterQueuePreemption.reclaimWithinCohort": ("Never", "LowerPriority", "Any"),
        "ClusterQueuePreemption.withinClusterQueue": ("Never", "LowerPriority", "LowerOrNewerEqualPriority"),
        "BorrowWithinCohort.policy": ("Never", "LowerPriority"),
        "WorkloadSpec.priorityClassSource": (
            WORKLOAD_PRIORITY_CLASS,
            POD_PRIORITY_CLASS,
            "",
        ),
        "AdmissionCheckState.state": ("Pending", "Ready", "Retry", "Rejected"),
    }
)

MINIMUMS: Mapping[str, int] = MappingProxyType(
    {
        "WorkloadSpec.maximumExecutionTimeSeconds": 1,
        "PodSet.count": 0,
        "PodSet.minCount": 1,
        "ReclaimablePod.count": 0,
        "RequeueState.count": 0,
    }
)

MAX_ITEMS: Mapping[str, int] = MappingProxyType(
    {
        "ClusterQueueSpec.resourceGroups": 16,
        "ResourceGroup.coveredResources": 64,
        "ResourceGroup.flavors": 64,
        "FlavorQuotas.resources": 64,
        "ResourceFlavorSpec.nodeTaints": 8,
        "ResourceFlavorSpec.tolerations": 8,
        "WorkloadSpec.podSets": 18,
        "WorkloadStatus.reclaimablePods": 18,
    }
)

SCHEMA_DEFAULTS: Mapping[str, object] = MappingProxyType(
    {
        "ClusterQueueSpec.queueingStrategy": "BestEffortFIFO",
        "ClusterQueueSpec.stopPolicy": "None",
        "LocalQueueSpec.stopPolicy": "None",
        "FlavorFungibility.whenCanBorrow": "MayStopSearch",
        "FlavorFungibility.whenCanPreempt": "TryNextFlavor",
        "ClusterQueuePreemption.reclaimWithinCohort": "Never",
        "ClusterQueuePreemption.withinClusterQueue": "Never",
        "BorrowWithinCohort.policy": "Never",
        "WorkloadSpec.active": True,
        "PodSet.count": 1,
        "PodSet.name": "main",
    }
)
"""Defaults that the API server fills in (see `defaults`) and `kubectl explain` shows."""
