"""Rules of the CRD of jobset.x-k8s.io/v1alpha2 that are not in the models of `kubeflow_trainer_api`.

Source: config/components/crd/bases of JobSet, and the fields that its mutating webhook fills in before the schema is
checked. Fields are keyed by the type that has them.
"""

from collections.abc import Mapping
from types import MappingProxyType

DEFAULTED = frozenset({"FailurePolicyRule.name"})
"""Required by the schema but never missing, because the webhook defaults them first."""

ENUMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "DependsOn.status": ("Ready", "Complete"),
        "SuccessPolicy.operator": ("All", "Any"),
        "StartupPolicy.startupPolicyOrder": ("AnyOrder", "InOrder"),
        "FailurePolicy.restartStrategy": ("Recreate", "BlockingRecreate", "InPlaceRestart"),
        "FailurePolicyRule.action": (
            "FailJobSet",
            "RestartJobSet",
            "RestartJobSetAndIgnoreMaxRestarts",
            "RestartJob",
            "RestartJobAndIgnoreMaxRestarts",
        ),
        "VolumeRetentionPolicy.whenDeleted": ("Delete", "Retain"),
    }
)

MINIMUMS: Mapping[str, int] = MappingProxyType(
    {
        "JobSetSpec.ttlSecondsAfterFinished": 0,
        "JobSetStatus.currentInPlaceRestartAttempt": 0,
        "JobSetStatus.previousInPlaceRestartAttempt": 0,
        "ReplicatedJob.replicas": 0,
    }
)

MAX_ITEMS: Mapping[str, int] = MappingProxyType(
    {
        "JobSetSpec.volumeClaimPolicies": 50,
        "ReplicatedJob.dependsOn": 5,
        "ReplicatedJobStatus.jobRestarts": 1024,
        "ReplicatedJobStatus.jobRestartsCountTowardsMax": 1024,
        "VolumeClaimPolicy.templates": 50,
    }
)

SCHEMA_DEFAULTS: Mapping[str, object] = MappingProxyType(
    {
        "FailurePolicy.restartStrategy": "Recreate",
        "ReplicatedJob.groupName": "default",
        "ReplicatedJob.replicas": 1,
        "VolumeRetentionPolicy.whenDeleted": "Delete",
    }
)
"""Defaults that the API server fills in (see `defaults`) and `kubectl explain` shows."""
