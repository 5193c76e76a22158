"""The methods covered: how each is asked for over HTTP, with which of Google's request messages.

Paths and messages are those of the client library's own transports [py-gce]; a request that carries anything that
its message does not have is refused, as Google's API servers refuse it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import proto
from google.cloud.compute_v1 import types as gce
from google.protobuf import json_format

from tpu_standins.compute.errors import Refusal, invalid, not_implemented
from tpu_standins.compute.paths import Resource

_BEGINNING = "/compute/v1/"
_IGNORED = ("alt", "$alt", "prettyPrint")
_POLICY = "projects/{project}/regions/{region}/resourcePolicies"
_TEMPLATE = "projects/{project}/global/instanceTemplates"
_REGIONAL = "projects/{project}/regions/{region}/instanceTemplates"
_GROUP = "projects/{project}/zones/{zone}/instanceGroupManagers"
_RESERVATION = "projects/{project}/zones/{zone}/reservations"
_SUB_BLOCK = "projects/{project}/zones/{zone}/{parent_name=reservations/*/reservationBlocks/*}/reservationSubBlocks"
_BOOKING = "projects/{project}/zones/{zone}/futureReservations"
_INSTANCE = "projects/{project}/zones/{zone}/instances/{instance}"


@dataclass(frozen=True, slots=True)
class Route:
    """A method of the API. `body`: the field of the request message that is the body, in snake_case."""

    method: str
    verb: str
    path: str
    request: type[proto.Message]
    body: str = ""

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"{(\w+)(?:=([^}]+))?}", _segments, self.path))


@dataclass(frozen=True, slots=True)
class Call:
    """A request that was understood: `target` is the resource, or the list of them, that it is about."""

    method: str
    target: Resource
    message: Any
    body: Any = None

    @property
    def request_id(self) -> str:
        return str(getattr(self.message, "request_id", ""))


def _segments(found: re.Match[str]) -> str:
    """Return the pattern of a variable of a path: one segment, or what its own template says."""
    return f"(?P<{found[1]}>{(found[2] or '*').replace('*', '[^/]+')})"


def _of_group(verb: str, request: type[proto.Message], body: str = "") -> Route:
    path = f"{_GROUP}/{{instance_group_manager}}/{verb}"
    return Route(f"instanceGroupManagers.{verb}", "GET" if verb == "listErrors" else "POST", path, request, body)


def _operations(service: str, place: str, get: type[proto.Message], listed: type[proto.Message]) -> tuple[Route, Route]:
    path = f"projects/{{project}}/{place}/operations"
    return (
        Route(f"{service}.get", "GET", f"{path}/{{operation}}", get),
        Route(f"{service}.list", "GET", path, listed),
    )


_NAMED_GROUP = f"{_GROUP}/{{instance_group_manager}}"
ROUTES = (
    Route("resourcePolicies.insert", "POST", _POLICY, gce.InsertResourcePolicyRequest, body="resource_policy_resource"),
    Route("resourcePolicies.get", "GET", f"{_POLICY}/{{resource_policy}}", gce.GetResourcePolicyRequest),
    Route("resourcePolicies.delete", "DELETE", f"{_POLICY}/{{resource_policy}}", gce.DeleteResourcePolicyRequest),
    Route("resourcePolicies.list", "GET", _POLICY, gce.ListResourcePoliciesRequest),
    Route(
        "resourcePolicies.aggregatedList",
        "GET",
        "projects/{project}/aggregated/resourcePolicies",
        gce.AggregatedListResourcePoliciesRequest,
    ),
    Route(
        "instanceTemplates.insert",
        "POST",
        _TEMPLATE,
        gce.InsertInstanceTemplateRequest,
        body="instance_template_resource",
    ),
    Route("instanceTemplates.get", "GET", f"{_TEMPLATE}/{{instance_template}}", gce.GetInstanceTemplateRequest),
    Route(
        "instanceTemplates.delete", "DELETE", f"{_TEMPLATE}/{{instance_template}}", gce.DeleteInstanceTemplateRequest
    ),
    Route("instanceTemplates.list", "GET", _TEMPLATE, gce.ListInstanceTemplatesRequest),
    Route(
        "regionInstanceTemplates.insert",
        "POST",
        _REGIONAL,
        gce.InsertRegionInstanceTemplateRequest,
        body="instance_template_resource",
    ),
    Route(
        "regionInstanceTemplates.get", "GET", f"{_REGIONAL}/{{instance_template}}", gce.GetRegionInstanceTemplateRequest
    ),
    Route(
        "regionInstanceTemplates.delete",
        "DELETE",
        f"{_REGIONAL}/{{instance_template}}",
        gce.DeleteRegionInstanceTemplateRequest,
    ),
    Route(
        "instanceGroupManagers.insert",
        "POST",
        _GROUP,
        gce.InsertInstanceGroupManagerRequest,
        body="instance_group_manager_resource",
    ),
    Route("instanceGroupManagers.get", "GET", _NAMED_GROUP, gce.GetInstanceGroupManagerRequest),
    Route("instanceGroupManagers.delete", "DELETE", _NAMED_GROUP, gce.DeleteInstanceGroupManagerRequest),
    Route(
        "instanceGroupManagers.patch",
        "PATCH",
        _NAMED_GROUP,
        gce.PatchInstanceGroupManagerRequest,
        body="instance_group_manager_resource",
    ),
    Route("instanceGroupManagers.list", "GET", _GROUP, gce.ListInstanceGroupManagersRequest),
    Route(
        "instanceGroupManagers.aggregatedList",
        "GET",
        "projects/{project}/aggregated/instanceGroupManagers",
        gce.AggregatedListInstanceGroupManagersRequest,
    ),
    _of_group("listManagedInstances", gce.ListManagedInstancesInstanceGroupManagersRequest),
    _of_group("listErrors", gce.ListErrorsInstanceGroupManagersRequest),
    _of_group(
        "recreateInstances",
        gce.RecreateInstancesInstanceGroupManagerRequest,
        "instance_group_managers_recreate_instances_request_resource",
    ),
    _of_group(
        "deleteInstances",
        gce.DeleteInstancesInstanceGroupManagerRequest,
        "instance_group_managers_delete_instances_request_resource",
    ),
    Route("instances.get", "GET", _INSTANCE, gce.GetInstanceRequest),
    Route("instances.list", "GET", "projects/{project}/zones/{zone}/instances", gce.ListInstancesRequest),
    Route(
        "instances.setMetadata", "POST", f"{_INSTANCE}/setMetadata", gce.SetMetadataInstanceRequest, "metadata_resource"
    ),
    Route(
        "instances.getGuestAttributes", "GET", f"{_INSTANCE}/getGuestAttributes", gce.GetGuestAttributesInstanceRequest
    ),
    Route(
        "advice.calendarMode",
        "POST",
        "projects/{project}/regions/{region}/advice/calendarMode",
        gce.CalendarModeAdviceRpcRequest,
        body="calendar_mode_advice_request_resource",
    ),
    Route("reservations.get", "GET", f"{_RESERVATION}/{{reservation}}", gce.GetReservationRequest),
    Route("reservations.list", "GET", _RESERVATION, gce.ListReservationsRequest),
    Route(
        "reservationBlocks.get",
        "GET",
        f"{_RESERVATION}/{{reservation}}/reservationBlocks/{{reservation_block}}",
        gce.GetReservationBlockRequest,
    ),
    Route(
        "reservationBlocks.list",
        "GET",
        f"{_RESERVATION}/{{reservation}}/reservationBlocks",
        gce.ListReservationBlocksRequest,
    ),
    Route(
        "reservationSubBlocks.get", "GET", f"{_SUB_BLOCK}/{{reservation_sub_block}}", gce.GetReservationSubBlockRequest
    ),
    Route("reservationSubBlocks.list", "GET", _SUB_BLOCK, gce.ListReservationSubBlocksRequest),
    Route("futureReservations.get", "GET", f"{_BOOKING}/{{future_reservation}}", gce.GetFutureReservationRequest),
    Route("futureReservations.list", "GET", _BOOKING, gce.ListFutureReservationsRequest),
    *_operations("zoneOperations", "zones/{zone}", gce.GetZoneOperationRequest, gce.ListZoneOperationsRequest),
    *_operations(
        "regionOperations", "regions/{region}", gce.GetRegionOperationRequest, gce.ListRegionOperationsRequest
    ),
    *_operations("globalOperations", "global", gce.GetGlobalOperationRequest, gce.ListGlobalOperationsRequest),
    Route(
        "globalOperations.aggregatedList",
        "GET",
        "projects/{project}/aggregated/operations",
        gce.AggregatedListGlobalOperationsRequest,
    ),
)
_PATTERNS = tuple((route, route.pattern) for route in ROUTES)
_COLLECTIONS = {"regionInstanceTemplates": "instanceTemplates"}


def understand(verb: str, url: str, body: bytes) -> Call | Refusal:
    """Return the call that a request makes, or the refusal of one that is not understood."""
    parts = urlsplit(url)
    if not parts.path.startswith(_BEGINNING):
        return not_implemented(f"{verb} {parts.path}")
    path = parts.path.removeprefix(_BEGINNING)
    for route, pattern in _PATTERNS:
        found = pattern.fullmatch(path)
        if found is not None and route.verb == verb:
            given = {name: unquote(value) for name, value in found.groupdict().items()}
            return _call(route, given, parts.query, body)
    return not_implemented(f"{verb} {path}")


def _call(route: Route, given: Mapping[str, str], query: str, body: bytes) -> Call | Refusal:
    fields: dict[str, Any] = dict(given)
    for name, value in parse_qsl(query, keep_blank_values=True):
        known = _field(route.request, name)
        if known is not None:
            fields[known.name] = value == "true" if known.type == known.TYPE_BOOL else value
        elif name not in _IGNORED:
            return _unknown_name(f'Unknown name "{name}": Cannot bind query parameter.')
    try:
        if route.body:
            fields[route.body] = _object(body)
        elif body.strip() not in (b"", b"{}"):
            return _unknown_name("Request bodies are not allowed here.")
        message = route.request(json_format.ParseDict(fields, route.request.pb(route.request())))
    except json_format.ParseError as error:
        return _unknown_name(_why(error))
    except ValueError as error:
        return _unknown_name(str(error))
    inner = getattr(message, route.body) if route.body else None
    stray = _stray_value(inner, "resource") if inner is not None else None
    return stray or Call(route.method, _target(route, given, inner), message, inner)


def _unknown_name(why: str) -> Refusal:
    message = f"Invalid JSON payload received. {why}"
    return Refusal(code=HTTPStatus.BAD_REQUEST, reason="invalid", message=message, rule="unreadable")


def _object(body: bytes) -> dict[str, Any]:
    """Parse a body. Raise ValueError if it is no JSON object."""
    found = json.loads(body or b"{}")
    if not isinstance(found, dict):
        raise ValueError("The body must be a JSON object.")  # noqa: TRY004 - a value, for whoever sent it
    return found


def _why(error: json_format.ParseError) -> str:
    """Return Google's words for a field that a message does not have, else those of the library."""
    found = re.search(r'has no field named "([^"]*)" at "[^".]*\.?([^"]*)"', str(error))
    return str(error) if found is None else f"Unknown name \"{found[1]}\" at '{found[2]}': Cannot find field."


def _field(request: type[proto.Message], name: str) -> Any:
    """Return the field that a query parameter means; None: there is none."""
    fields = request.pb(request()).DESCRIPTOR.fields
    return next((field for field in fields if name in (field.json_name, field.name)), None)


def _target(route: Route, given: Mapping[str, str], body: Any) -> Resource:
    service, verb = route.method.split(".")
    collection = "operations" if service.endswith("Operations") else _COLLECTIONS.get(service, service)
    names = [value for key, value in given.items() if key not in ("project", "zone", "region")]
    name = body.name if verb == "insert" else names[0] if names else ""
    scope = next((f"{kind}s/{given[kind]}" for kind in ("zone", "region") if kind in given), "global")
    return Resource(given["project"], scope, collection, name)


def _stray_value(message: proto.Message, where: str) -> Refusal | None:
    """Refuse a value that the enum of its field does not have; such fields are strings in Google's messages."""
    kind = type(message)
    for name, field in kind.meta.fields.items():
        value = getattr(message, name)
        at = f"{where}.{field.json_name or json_name(name)}"
        if possible := _possible(kind, name):
            if value and value not in possible:
                return invalid(at, value, f"Must be one of {', '.join(possible[1:])}.", "enum")
        elif field.message and name in message:
            several = [value] if isinstance(value, proto.Message) else value
            several = several.values() if isinstance(several, Mapping) else several
            inner = (each for each in several if isinstance(each, proto.Message))
            if bad := next((bad for each in inner if (bad := _stray_value(each, at))), None):
                return bad
    return None


def _possible(kind: type[proto.Message], field: str) -> list[str]:
    """Return the values that a field can have by the enum that is named after it; none: it has no enum."""
    enum = getattr(kind, field.rstrip("_").title().replace("_", ""), None)
    return list(getattr(enum, "__members__", ()))


def json_name(name: str) -> str:
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.title() for word in rest)
