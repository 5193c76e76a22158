"""The fields of every kind, from published packages (pure).

Core kinds: the models of the official client. JobSet: the models of `kubeflow_trainer_api`, generated from
JobSet's own OpenAPI document; rules of the CRD that they lack are in `jobset_schema`. Kueue's kinds:
models written for this server, because no package publishes any.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from kubeflow_trainer_api import models as jobset_models
from kubernetes import client
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from infra.local.cluster import jobset_schema
from infra.local.cluster.kueue_api import models as kueue_models
from infra.local.cluster.kueue_api import schema as kueue_schema
from infra.local.cluster.resources import Resource

_JOBSET = "JobsetV1alpha2"
_CORE_OF_JOBSET = re.compile(r"^IoK8s\w*?(?=V\d)")
"""Names of core kinds in the models of JobSet: they include the package, unlike those of the official client."""

_QUANTITIES = frozenset({"limits", "requests", "capacity", "allocatable", "overhead", "allocatedResources"})
"""Maps of quantities, which the models declare as maps of strings."""

_SCALARS: Mapping[Any, str] = {
    str: "str",
    int: "int",
    bool: "bool",
    float: "float",
    datetime: "datetime",
    kueue_models.Quantity: "Quantity",
}
_DEFAULTED = jobset_schema.DEFAULTED | kueue_schema.DEFAULTED
ENUMS: Mapping[str, tuple[str, ...]] = {**jobset_schema.ENUMS, **kueue_schema.ENUMS}
MINIMUMS: Mapping[str, int] = {**jobset_schema.MINIMUMS, **kueue_schema.MINIMUMS}
MAX_ITEMS: Mapping[str, int] = {**jobset_schema.MAX_ITEMS, **kueue_schema.MAX_ITEMS}
SCHEMA_DEFAULTS: Mapping[str, object] = {**jobset_schema.SCHEMA_DEFAULTS, **kueue_schema.SCHEMA_DEFAULTS}
"""Rules of the custom resources' schemas beyond types; fields are keyed by the type that has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Type:
    """The type of a field.

    `scalar`: str, int, bool, float, datetime, Quantity, IntOrString. `any`: any JSON value.
    `object` is one of the shapes, by `name`; `list` and `map` (with string keys) contain `element`.
    """

    form: Literal["scalar", "any", "object", "list", "map"]
    name: str = ""
    element: "Type | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    type: Type
    required: bool
    description: str


_ROOTS = {"Event": "CoreV1Event", "TokenRequest": "AuthenticationV1TokenRequest"}
"""Kinds for which the official client uses a longer name."""


def root(resource: Resource) -> str:
    """Return the name of the shape of a resource's objects."""
    if resource.custom:
        return resource.kind
    return _ROOTS.get(resource.kind, f"V1{resource.kind}")


@cache
def shape(name: str) -> Mapping[str, Property]:
    """Return the properties of an object type, by JSON name."""
    fields = {
        info.serialization_alias or info.alias or attribute: info
        for attribute, info in _model(name).model_fields.items()
    }
    return {key: _property(name, key, info) for key, info in fields.items()}


@cache
def description(name: str) -> str:
    """Return the description of an object type, without the generator's additions for Python."""
    model = _model(name)
    text = " ".join((model.__doc__ or "").partition("Attributes:")[0].split())
    return "" if text == model.__name__ else text


def _model(name: str) -> type[BaseModel]:
    homes = ((jobset_models, _JOBSET + name), (kueue_models, name), (client, name))
    found: type[BaseModel] = next(getattr(home, known) for home, known in homes if hasattr(home, known))
    return found


def _property(owner: str, key: str, info: FieldInfo) -> Property:
    kind = _read(info.annotation)
    if key in _QUANTITIES and kind.form == "map":
        kind = Type(form="map", element=Type(form="scalar", name="Quantity"))
    required = info.is_required() and f"{owner}.{key}" not in _DEFAULTED
    return Property(type=kind, required=required, description=info.description or "")


def _read(annotation: Any) -> Type:
    """Convert the annotation of a model's field to a type."""
    origin, inner = get_origin(annotation), [arg for arg in get_args(annotation) if arg is not type(None)]
    if origin is Annotated:
        return _read(inner[0])
    if origin in (Union, UnionType):
        choice = len(inner) > 1 and any(_read(arg).name == "int" for arg in inner)
        return Type(form="scalar", name="IntOrString") if choice else _read(inner[-1])
    if origin is list:
        return Type(form="list", element=_read(inner[0]))
    if origin is dict:
        return Type(form="map", element=_read(inner[1]))
    if annotation in _SCALARS:
        return Type(form="scalar", name=_SCALARS[annotation])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        name = annotation.__name__.removeprefix(_JOBSET)
        return Type(form="object", name=_CORE_OF_JOBSET.sub("", name))
    return Type(form="any")
