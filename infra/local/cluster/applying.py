"""Server-side apply requests: their options, and the configuration in their body (pure).

Facts: k8s.io/apiserver/pkg/endpoints/handlers/patch.go (applyPatcher), meta/v1/validation.
"""

from typing import Any

import orjson
import yaml

from infra.local.cluster import errors, field_rules, shapes
from infra.local.cluster.calls import Call
from infra.local.cluster.errors import ApiError
from infra.local.cluster.field_sets import shown, undeclared
from infra.local.cluster.resources import Resource
from infra.local.cluster.schema import decode
from infra.local.cluster.targets import APPLY_PATCH

_OF_TYPES = ("FieldValueTypeInvalid", "FieldValueInvalid")


class _Loader(yaml.SafeLoader):
    """Reads YAML as the API server does: timestamps stay strings. Aliases are not covered."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as in the base class
        first: [known for known in resolvers if known[0] != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise errors.not_implemented("aliases in YAML")
        return super().compose_node(parent, index)


def refuse_options(call: Call) -> None:
    """Raise ApiError 422 if an apply lacks a required option, or another patch has an option reserved for apply."""
    if call.content_type == APPLY_PATCH and not call.params.get("fieldManager"):
        why = "Required value: is required for apply patch"
        raise call.refused("fieldManager", "FieldValueRequired", why)
    if call.content_type != APPLY_PATCH and "force" in call.params:
        why = "Forbidden: may not be specified for non-apply patch"
        raise call.refused("force", "FieldValueForbidden", why)


def configuration(resource: Resource, data: bytes) -> dict[str, Any]:
    """Parse the applied configuration. Raise ApiError 400 if malformed, 422 for wrong types, 500 for unknown fields."""
    config = _parsed(data)
    if not isinstance(config, dict):
        raise errors.bad_request("error decoding YAML: the configuration is not an object")
    metadata = config.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields"):
        raise errors.bad_request("metadata.managedFields must be nil")
    version = config.get("apiVersion", "")
    if version != resource.api_version:
        raise errors.bad_request(
            "Incorrect version specified in apply patch. "
            f"Specified patch version: {version}, expected: {resource.api_version}"
        )
    decoded = decode(resource, config)
    wrong = [problem for problem in decoded.problems if problem.reason in _OF_TYPES]
    if wrong:
        raise errors.invalid(resource.kind, resource.group, decoded.object.get("metadata", {}).get("name", ""), wrong)
    _refuse_undeclared(resource, config)
    return decoded.object


def _parsed(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        return yaml.load(data, _Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise errors.bad_request(f"error decoding YAML: {error}") from error


def _refuse_undeclared(resource: Resource, config: dict[str, Any]) -> None:
    """Refuse unknown fields, under any fieldValidation: they could have no owner."""
    unknown = [shown(path) for path in undeclared(field_rules.struct(shapes.root(resource)), config)]
    if not unknown:
        return
    metadata = config.get("metadata", {})
    name = "/".join(filter(None, [metadata.get("namespace"), metadata.get("name")]))
    kind = f"{resource.api_version}, Kind={resource.kind}"
    told = [f"{path}: field not declared in schema" for path in unknown]
    listed = told[0] if len(told) == 1 else "errors:\n" + "\n".join(f"  {line}" for line in told)
    raise ApiError(500, "", f"failed to create typed patch object ({name}; {kind}): {listed}")
