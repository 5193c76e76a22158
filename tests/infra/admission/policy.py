"""A MutatingAdmissionPolicy as the API server evaluates it, on Google's implementation of CEL.

Kubernetes' own part is small: the type JSONPatch, jsonpatch.escapeKey, variables, and JSON Patch itself (RFC 6902).
Source: Kubernetes' page "Mutating Admission Policy"; k8s.io/apiserver pkg/cel/mutation.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, struct_pb2

Json = dict[str, Any]
_Field = descriptor_pb2.FieldDescriptorProto


def _escape_key(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _json_patch() -> descriptor_pool.DescriptorPool:
    """Declare `JSONPatch{op, path, from, value}`, whose value may be any JSON."""
    pool = descriptor_pool.DescriptorPool()
    value = descriptor_pb2.FileDescriptorProto()
    struct_pb2.DESCRIPTOR.CopyToProto(value)
    pool.Add(value)
    file = descriptor_pb2.FileDescriptorProto(name="json_patch.proto", syntax="proto3", dependency=[value.name])
    message = file.message_type.add(name="JSONPatch")
    for number, name in enumerate(("op", "path", "from"), start=1):
        message.field.add(name=name, number=number, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL)
    any_json = {"type": _Field.TYPE_MESSAGE, "type_name": ".google.protobuf.Value", "label": _Field.LABEL_OPTIONAL}
    message.field.add(name="value", number=4, **any_json)
    pool.Add(file)
    return pool


@dataclass(frozen=True)
class Policy:
    """The spec of a MutatingAdmissionPolicy."""

    spec: Json

    @cached_property
    def _env(self) -> Any:
        escape = cel.Overload(
            id="jsonpatch_escape_key", return_type=cel.Type.STRING, parameters=[cel.Type.STRING], impl=_escape_key
        )
        numbers = cel.Overload(
            id="lists_range", return_type=cel.Type.DYN, parameters=[cel.Type.INT], impl=lambda size: list(range(size))
        )
        return cel.NewEnv(
            descriptor_pool=_json_patch(),
            variables=dict.fromkeys(("object", "oldObject", "variables"), cel.Type.DYN),
            extensions=[ext_optional.ExtOptional(), ext_strings.ExtStrings()],
            functions=[cel.FunctionDecl("jsonpatch.escapeKey", [escape]), cel.FunctionDecl("lists.range", [numbers])],
        )

    @cached_property
    def _compiled(self) -> dict[str, Any]:
        """By expression; to compile one takes as long as to evaluate many."""
        return {}

    def matches(self, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> bool:
        """Return whether every match condition holds: only then is the policy evaluated at all."""
        given = {"object": obj, "oldObject": old}
        return all(self._eval(each["expression"], **given) is True for each in self.spec["matchConditions"])

    def admitted(self, obj: Json, old: Json | None = None, /, **settings: str) -> Json:
        """Return the object as it is stored; `settings` are expressions in place of those of variables.

        `old`: as it was; None: it is new.
        """
        if not self.matches(obj, old):
            return obj
        known: Json = {}
        for variable in self.spec["variables"]:
            expression = settings.get(variable["name"], variable["expression"])
            known[variable["name"]] = self._eval(expression, object=obj, oldObject=old, variables=known)
        result = obj
        for mutation in self.spec["mutations"]:
            expression = mutation["jsonPatch"]["expression"]
            for patch in self._eval(expression, object=result, oldObject=old, variables=known):
                result = patched(result, json_format.MessageToDict(patch))
        return result

    def _eval(self, expression: str, **data: Any) -> Any:
        if expression not in self._compiled:
            self._compiled[expression] = self._env.compile(expression)
        return self._compiled[expression].eval(data=data).plain_value()


def patched(document: Json, patch: Json) -> Json:
    """Apply `add` or `remove` to a member of an object, or append to a list; what is not there cannot be removed."""
    result = copy.deepcopy(document)
    *most, last = (part.replace("~1", "/").replace("~0", "~") for part in patch["path"].split("/")[1:])
    inner: Any = result
    for part in most:
        inner = inner[int(part)] if isinstance(inner, list) else inner[part]
    match patch["op"], last:
        case "add", "-":
            inner.append(patch["value"])
        case "add", _:
            inner[last] = patch["value"]
        case "remove", _:
            del inner[last]
        case other, _:
            raise NotImplementedError(other)
    return result
