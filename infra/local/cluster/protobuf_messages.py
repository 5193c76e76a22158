"""The protobuf messages that kubectl sends: the numbers, names and types of their fields.

Facts: generated.proto of meta/v1, core/v1, apps/v1, batch/v1, policy/v1, scheduling/v1, rbac/v1,
authentication/v1 and authorization/v1 in k8s.io/api.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Field(NamedTuple):
    """A field. `kind`: string, strings, int, bool, map (of strings), ignored, or the name of a message.

    Also number: an int for which 0 is a meaningful value.
    """

    name: str
    kind: str = "string"
    repeated: bool = False


_METADATA = Field("metadata", "ObjectMeta")
_STATUS = Field("status", "ignored")  # set by the server only
_ROLE = {1: _METADATA, 2: Field("rules", "PolicyRule", repeated=True)}
_BINDING = {1: _METADATA, 2: Field("subjects", "Subject", repeated=True), 3: Field("roleRef", "RoleRef")}

MESSAGES: Mapping[str, Mapping[int, Field]] = MappingProxyType(
    {
        "ObjectMeta": {
            1: Field("name"),
            2: Field("generateName"),
            3: Field("namespace"),
            8: Field("creationTimestamp", "ignored"),
            11: Field("labels", "map"),
            12: Field("annotations", "map"),
        },
        "Namespace": {1: _METADATA, 2: Field("spec", "ignored"), 3: _STATUS},
        "ConfigMap": {1: _METADATA, 2: Field("data", "map"), 4: Field("immutable", "bool")},
        "PriorityClass": {
            1: _METADATA,
            2: Field("value", "number"),
            3: Field("globalDefault", "bool"),
            4: Field("description"),
            5: Field("preemptionPolicy"),
        },
        "Deployment": {1: _METADATA, 2: Field("spec", "DeploymentSpec"), 3: _STATUS},
        "DeploymentSpec": {
            1: Field("replicas", "number"),
            2: Field("selector", "LabelSelector"),
            3: Field("template", "PodTemplateSpec"),
            4: Field("strategy", "DeploymentStrategy"),
        },
        "DeploymentStrategy": {1: Field("type")},
        "Job": {1: _METADATA, 2: Field("spec", "JobSpec"), 3: _STATUS},
        "JobSpec": {6: Field("template", "PodTemplateSpec")},
        "LabelSelector": {1: Field("matchLabels", "map")},
        "PodTemplateSpec": {1: _METADATA, 2: Field("spec", "PodSpec")},
        "PodSpec": {2: Field("containers", "Container", repeated=True), 3: Field("restartPolicy")},
        "Container": {
            1: Field("name"),
            2: Field("image"),
            3: Field("command", "strings"),
            4: Field("args", "strings"),
            6: Field("ports", "ContainerPort", repeated=True),
        },
        "ContainerPort": {3: Field("containerPort", "int")},
        "Eviction": {1: _METADATA, 2: Field("deleteOptions", "DeleteOptions")},
        "DeleteOptions": {
            1: Field("gracePeriodSeconds", "number"),
            4: Field("propagationPolicy"),
            5: Field("dryRun", "strings"),
        },
        "ServiceAccount": {1: _METADATA, 4: Field("automountServiceAccountToken", "bool")},
        "ClusterRole": _ROLE,
        "Role": _ROLE,
        "PolicyRule": {
            1: Field("verbs", "strings"),
            2: Field("apiGroups", "strings"),
            3: Field("resources", "strings"),
            4: Field("resourceNames", "strings"),
            5: Field("nonResourceURLs", "strings"),
        },
        "ClusterRoleBinding": _BINDING,
        "RoleBinding": _BINDING,
        "Subject": {1: Field("kind"), 2: Field("apiGroup"), 3: Field("name"), 4: Field("namespace")},
        "RoleRef": {1: Field("apiGroup"), 2: Field("kind"), 3: Field("name")},
        "TokenRequest": {1: _METADATA, 2: Field("spec", "TokenRequestSpec"), 3: _STATUS},
        "TokenRequestSpec": {
            1: Field("audiences", "strings"),
            3: Field("boundObjectRef", "BoundObjectReference"),
            4: Field("expirationSeconds", "int"),
        },
        "BoundObjectReference": {1: Field("kind"), 2: Field("apiVersion"), 3: Field("name"), 4: Field("uid")},
        "SelfSubjectReview": {1: _METADATA, 2: _STATUS},
        "SelfSubjectAccessReview": {1: _METADATA, 2: Field("spec", "SelfSubjectAccessReviewSpec"), 3: _STATUS},
        "SelfSubjectAccessReviewSpec": {
            1: Field("resourceAttributes", "ResourceAttributes"),
            2: Field("nonResourceAttributes", "NonResourceAttributes"),
        },
        "ResourceAttributes": {
            1: Field("namespace"),
            2: Field("verb"),
            3: Field("group"),
            4: Field("version"),
            5: Field("resource"),
            6: Field("subresource"),
            7: Field("name"),
        },
        "NonResourceAttributes": {1: Field("path"), 2: Field("verb")},
        "SelfSubjectRulesReview": {1: _METADATA, 2: Field("spec", "SelfSubjectRulesReviewSpec"), 3: _STATUS},
        "SelfSubjectRulesReviewSpec": {1: Field("namespace")},
    }
)

KINDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "v1": ("ConfigMap", "Namespace", "ServiceAccount"),
        "apps/v1": ("Deployment",),
        "batch/v1": ("Job",),
        "policy/v1": ("Eviction",),
        "scheduling.k8s.io/v1": ("PriorityClass",),
        "rbac.authorization.k8s.io/v1": ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
        "authentication.k8s.io/v1": ("TokenRequest", "SelfSubjectReview"),
        "authentication.k8s.io/v1beta1": ("SelfSubjectReview",),
        "authorization.k8s.io/v1": ("SelfSubjectAccessReview", "SelfSubjectRulesReview"),
    }
)
"""The kinds that may be sent, by group and version."""
