"""How a create or update prepares an object: server-owned fields, defaults, validation (pure).

The registry's strategies (`k8s.io/apiserver/pkg/registry/rest`: PrepareForCreate, PrepareForUpdate,
Validate, ValidateUpdate).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from infra.local.cluster import errors, jobsets, plain_kinds, rbac_validation, validation
from infra.local.cluster.defaults import CREATION_DEFAULTS, DEFAULTS
from infra.local.cluster.errors import FieldError
from infra.local.cluster.kueue_api import rules as kueue_rules
from infra.local.cluster.resources import Resource

_SERVER_OWNED = (
    "uid",
    "creationTimestamp",
    "generation",
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
_NOT_STORED = ("managedFields", "selfLink")
"""Fields that a request cannot write; managedFields are computed by `managed_fields`."""

_FIRST_STATUS: Mapping[str, dict[str, Any]] = MappingProxyType(
    {
        "namespaces": {"phase": "Active"},
        "pods": {"phase": "Pending", "qosClass": "BestEffort"},
        "services": {"loadBalancer": {}},
        "jobs": {},
        "persistentvolumeclaims": {"phase": "Pending"},
        "persistentvolumes": {"phase": "Pending"},
        "deployments": {},
        "daemonsets": {
            "currentNumberScheduled": 0,
            "desiredNumberScheduled": 0,
            "numberMisscheduled": 0,
            "numberReady": 0,
        },
    }
)
"""The status at creation, whatever the request contains. A Node keeps its own: the kubelet registers it with one."""

_DEFAULTS = {**DEFAULTS, **plain_kinds.DEFAULTS}
_OBJECT_RULES = {**validation.OBJECT_RULES, **rbac_validation.OBJECT_RULES, **plain_kinds.OBJECT_RULES}
_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def nothing(resource: Resource) -> dict[str, Any]:
    """Return the empty object that a new one is compared with: core types have spec and status even if empty."""
    return {"metadata": {}} | ({} if resource.custom else {"spec": {}, "status": {}})


def for_create(resource: Resource, new: dict[str, Any]) -> dict[str, Any]:
    """Prepare a new object. Raise ApiError 400 if it has a resourceVersion."""
    metadata = new.setdefault("metadata", {})
    if metadata.get("resourceVersion"):
        raise errors.bad_request("resourceVersion should not be set on objects to be created")
    for owned in (*_SERVER_OWNED, *_NOT_STORED):
        metadata.pop(owned, None)
    if not resource.namespaced:
        metadata.pop("namespace", None)
    _drop_empty(metadata)
    if resource.plural in _FIRST_STATUS:
        new["status"] = dict(_FIRST_STATUS[resource.plural])
    elif resource.custom:
        new.pop("status", None)
    new |= {"apiVersion": resource.api_version, "kind": resource.kind}
    _DEFAULTS[resource.plural](new)
    if resource.plural in CREATION_DEFAULTS:
        CREATION_DEFAULTS[resource.plural](new)
    if resource.plural == "pods":
        new["status"]["qosClass"] = _quality_of_service(new["spec"])
    return new


def for_update(resource: Resource, old: dict[str, Any], new: dict[str, Any], *, status: bool) -> dict[str, Any]:
    """Return the updated object: `old` with the new status, or `new` with the server-owned fields of `old`."""
    if status:
        return {key: value for key, value in old.items() if key != "status"} | (
            {"status": new["status"]} if "status" in new else {}
        )
    kept = {key: old["metadata"][key] for key in (*_SERVER_OWNED, "managedFields") if key in old["metadata"]}
    asked = {k: v for k, v in new["metadata"].items() if k not in (*_SERVER_OWNED, *_NOT_STORED)}
    new["metadata"] = asked | kept
    _drop_empty(new["metadata"])
    if resource.has_status:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
    new |= {"apiVersion": resource.api_version, "kind": resource.kind}
    _DEFAULTS[resource.plural](new)
    return new


def check_preconditions(resource: Resource, old: dict[str, Any], asked: dict[str, Any]) -> None:
    """Raise ApiError 409 for an update of an older version, or of another object with the same name."""
    current = old["metadata"]
    name = current["name"]
    uid, version = asked.get("uid"), asked.get("resourceVersion")
    if uid and uid != current["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current['uid']}"
        raise errors.conflict(resource.plural, resource.group, name, why)
    if version and version != current["resourceVersion"]:
        raise errors.conflict(resource.plural, resource.group, name, _MODIFIED)


def validate_create(resource: Resource, new: dict[str, Any]) -> None:
    """Raise ApiError 422, listing every invalid field, if the new object is invalid."""
    wrong = validation.metadata_errors(resource, new["metadata"])
    if resource.plural == "services" and new["spec"].get("clusterIP") != "None":
        raise errors.not_implemented("services other than headless ones (spec.clusterIP: None)")
    if resource.plural == "jobsets":
        wrong += jobsets.create_errors(new)
    if resource.custom:
        wrong += kueue_rules.CREATE_RULES[resource.plural](new)
    else:
        wrong += _OBJECT_RULES[resource.plural](new)
    _refuse(resource, new, wrong)


def validate_update(resource: Resource, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Raise ApiError 422, listing every invalid field and every changed immutable field."""
    wrong = validation.metadata_errors(resource, new["metadata"])
    wrong += validation.finalizer_errors(old["metadata"], new["metadata"])
    if resource.plural == "jobsets":
        wrong += jobsets.update_errors(old, new)
    if resource.custom:
        wrong += kueue_rules.UPDATE_RULES[resource.plural](old, new)
    else:
        wrong += _OBJECT_RULES[resource.plural](new)
    wrong += plain_kinds.update_errors(resource.plural, old, new)
    if resource.plural == "pods":
        wrong += validation.pod_update_errors(old, new)
    if resource.plural == "jobs":
        wrong += validation.job_update_errors(old, new)
    if resource.plural in ("clusterrolebindings", "rolebindings"):
        wrong += rbac_validation.binding_update_errors(old, new)
    _refuse(resource, new, wrong)


def _refuse(resource: Resource, obj: dict[str, Any], wrong: list[FieldError]) -> None:
    if wrong:
        raise errors.invalid(resource.kind, resource.group, obj["metadata"].get("name", ""), wrong)


def _drop_empty(metadata: dict[str, Any]) -> None:
    """Remove the empty fields that Go's `omitempty` leaves out."""
    for key in ("labels", "annotations", "finalizers", "ownerReferences", "generateName", "namespace"):
        if not metadata.get(key, True):
            del metadata[key]


def _quality_of_service(spec: dict[str, Any]) -> str:
    """Return the v1.PodQOSClass, which depends only on cpu and memory."""
    wants = [c.get("resources", {}) for c in spec.get("containers", [])]
    named = ("cpu", "memory")
    requests = [{k: v for k, v in want.get("requests", {}).items() if k in named} for want in wants]
    limits = [{k: v for k, v in want.get("limits", {}).items() if k in named} for want in wants]
    if not any(requests) and not any(limits):
        return "BestEffort"
    return "Guaranteed" if requests == limits and all(len(limit) == 2 for limit in limits) else "Burstable"
