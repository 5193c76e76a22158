"""The structural schema of JobSet's CRD, from the published models of `kubeflow_trainer_api`.

`python -m infra.local.jobset.schema` writes it to `schema.json`, from which the CRD is made: importing the models takes
more than a second.

They are generated from JobSet's own OpenAPI document; what that lacks stands in the tables here. Source: the CRD's
markers in api/jobset/v1alpha2/jobset_types.go. What rules out combinations of fields is left to the webhooks.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from infra.local.jobset.manifests import SCHEMA

Schema = dict[str, Any]

_OWN = "JobsetV1alpha2"
_OBJECT_META = "IoK8sApimachineryPkgApisMetaV1ObjectMeta"
_NUMBER_OR_TEXT = "x-kubernetes-int-or-string"

_RULES: Mapping[str, Schema] = MappingProxyType(
    {
        "DependsOn.status": {"enum": ["Ready", "Complete"]},
        "SuccessPolicy.operator": {"enum": ["All", "Any"]},
        "StartupPolicy.startupPolicyOrder": {"enum": ["AnyOrder", "InOrder"]},
        "FailurePolicy.restartStrategy": {
            "enum": ["Recreate", "BlockingRecreate", "InPlaceRestart"],
            "default": "Recreate",
        },
        "FailurePolicyRule.action": {
            "enum": [
                "FailJobSet",
                "RestartJobSet",
                "RestartJobSetAndIgnoreMaxRestarts",
                "RestartJob",
                "RestartJobAndIgnoreMaxRestarts",
            ]
        },
        "VolumeRetentionPolicy.whenDeleted": {"enum": ["Delete", "Retain"], "default": "Delete"},
        "JobSetSpec.ttlSecondsAfterFinished": {"minimum": 0},
        "ReplicatedJob.replicas": {"minimum": 0, "default": 1},
        "ReplicatedJob.groupName": {"default": "default"},
        "ReplicatedJob.dependsOn": {"maxItems": 5},
        "JobSetSpec.volumeClaimPolicies": {"maxItems": 50},
        "IoK8sApiCoreV1ContainerPort.protocol": {"default": "TCP"},
    }
)
"""Rules of fields beyond their types."""

_KEYED = ("JobSetSpec.replicatedJobs", "ReplicatedJob.dependsOn", "JobSetStatus.replicatedJobsStatus")
"""Lists whose items are known by their names."""

_DEFAULTED = ("FailurePolicyRule.name",)
"""Required by the models but never missing: the webhook fills them in before the schema is checked."""

_QUANTITIES = ("limits", "requests", "capacity", "allocatedResources", "overhead")
_QUANTITY = ("sizeLimit", "divisor")
"""Fields that the models declare as texts, but that may be numbers as well."""

_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_METADATA: Schema = {
    "type": "object",
    "properties": {
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "labels": _TEXTS,
        "name": {"type": "string"},
        "namespace": {"type": "string"},
    },
}
"""Of templates: what is kept of their metadata."""

_SCALARS: Mapping[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    datetime: {"type": "string", "format": "date-time"},
}


def parts() -> dict[str, Schema]:
    """Return the schemas of a JobSet's fields besides its metadata."""
    from kubeflow_trainer_api import models  # noqa: PLC0415 - hundreds of modules

    return {"spec": _object(models.JobsetV1alpha2JobSetSpec), "status": _object(models.JobsetV1alpha2JobSetStatus)}


def _object(model: type[BaseModel]) -> Schema:
    if model.__name__ == _OBJECT_META:
        return _METADATA
    owner = model.__name__.removeprefix(_OWN)
    fields = {info.serialization_alias or info.alias or name: info for name, info in model.model_fields.items()}
    schema: Schema = {
        "type": "object",
        "properties": {key: _field(owner, key, info) for key, info in fields.items()},
    }
    required = [key for key, info in fields.items() if info.is_required() and f"{owner}.{key}" not in _DEFAULTED]
    return schema | ({"required": required} if required else {})


def _field(owner: str, key: str, info: FieldInfo) -> Schema:
    if key in _QUANTITIES:
        return {"type": "object", "additionalProperties": {_NUMBER_OR_TEXT: True}}
    if key in _QUANTITY:
        return {_NUMBER_OR_TEXT: True}
    path = f"{owner}.{key}"
    schema = _type(info.annotation) | _RULES.get(path, {})
    if path in _KEYED:
        schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    if path == "JobSetStatus.conditions":
        schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    if info.description and not owner.startswith("Io"):
        schema["description"] = info.description
    return schema


def _type(annotation: Any) -> Schema:
    """Return the schema of a field's annotation; what is no known type may be any object."""
    origin, inner = get_origin(annotation), [arg for arg in get_args(annotation) if arg is not type(None)]
    if origin is Annotated:
        return _type(inner[0])
    if origin in (Union, UnionType):
        return _type(inner[-1]) if len(inner) == 1 else {_NUMBER_OR_TEXT: True}
    if origin is list:
        return {"type": "array", "items": _type(inner[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type(inner[1])}
    if annotation in _SCALARS:
        return dict(_SCALARS[annotation])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {_NUMBER_OR_TEXT: True} if "actual_instance" in annotation.model_fields else _object(annotation)
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def text() -> str:
    return f"{json.dumps(parts(), indent=1, sort_keys=True)}\n"


if __name__ == "__main__":
    SCHEMA.write_text(text(), encoding="utf-8")
