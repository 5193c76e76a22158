"""The fields of jobset.x-k8s.io/v1alpha2, in the notation of the official client's `openapi_types`.

Source: the published API (api/jobset/v1alpha2/jobset_types.go and its CRD). A name that ends in `!` is
required. Types that start with `V1` are the client's own.
"""

from collections.abc import Mapping
from types import MappingProxyType

SHAPES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "JobSet": {
            "apiVersion": "str",
            "kind": "str",
            "metadata": "V1ObjectMeta",
            "spec": "JobSetSpec",
            "status": "JobSetStatus",
        },
        "JobSetSpec": {
            "replicatedJobs": "List[ReplicatedJob]",
            "network": "Network",
            "successPolicy": "SuccessPolicy",
            "failurePolicy": "FailurePolicy",
            "startupPolicy": "StartupPolicy",
            "suspend": "bool",
            "coordinator": "Coordinator",
            "managedBy": "str",
            "ttlSecondsAfterFinished": "int",
            "volumeClaimPolicies": "List[VolumeClaimPolicy]",
        },
        "ReplicatedJob": {
            "name!": "str",
            "groupName": "str",
            "template!": "V1JobTemplateSpec",
            "replicas": "int",
            "dependsOn": "List[DependsOn]",
        },
        "DependsOn": {"name!": "str", "status!": "str"},
        "Network": {"enableDNSHostnames": "bool", "subdomain": "str", "publishNotReadyAddresses": "bool"},
        "SuccessPolicy": {"operator!": "str", "targetReplicatedJobs": "List[str]"},
        "FailurePolicy": {
            "maxRestarts": "int",
            "restartStrategy": "str",
            "rules": "List[FailurePolicyRule]",
        },
        "FailurePolicyRule": {
            "name": "str",  # required by the schema, after the webhook has defaulted it
            "action!": "str",
            "onJobFailureReasons": "List[str]",
            "onJobFailureMessagePatterns": "List[str]",
            "targetReplicatedJobs": "List[str]",
        },
        "StartupPolicy": {"startupPolicyOrder!": "str"},
        "Coordinator": {"replicatedJob!": "str", "jobIndex": "int", "podIndex": "int"},
        "VolumeClaimPolicy": {
            "templates": "List[V1PersistentVolumeClaim]",
            "retentionPolicy": "VolumeRetentionPolicy",
        },
        "VolumeRetentionPolicy": {"whenDeleted": "str"},
        "JobSetStatus": {
            "conditions": "List[V1Condition]",
            "restarts": "int",
            "restartsCountTowardsMax": "int",
            "terminalState": "str",
            "replicatedJobsStatus": "List[ReplicatedJobStatus]",
            "previousInPlaceRestartAttempt": "int",
            "currentInPlaceRestartAttempt": "int",
        },
        "ReplicatedJobStatus": {
            "name!": "str",
            "ready!": "int",
            "succeeded!": "int",
            "failed!": "int",
            "active!": "int",
            "suspended!": "int",
            "jobRestarts": "List[int]",
            "jobRestartsCountTowardsMax": "List[int]",
        },
    }
)

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

MINIMUMS: Mapping[str, int] = MappingProxyType({"JobSetSpec.ttlSecondsAfterFinished": 0, "ReplicatedJob.replicas": 0})
