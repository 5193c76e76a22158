"""The methods that change nothing: state and call in, one of Google's messages or a refusal out. Pure."""

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

import proto
from google.cloud.compute_v1 import types as gce
from google.protobuf import json_format

from tpu_standins.compute import filters, guests
from tpu_standins.compute.advice.reading import calendar_mode
from tpu_standins.compute.errors import Refusal, invalid, not_found, not_implemented
from tpu_standins.compute.messages import (
    group_message,
    instance_message,
    managed_message,
    operation_message,
    policy_message,
    record_message,
    template_message,
)
from tpu_standins.compute.paths import link
from tpu_standins.compute.reservations import reading as reserved
from tpu_standins.compute.routes import Call
from tpu_standins.compute.state import State

Read = Callable[[State, Call, float], Any]
Listed = Callable[[State, float], Iterable[tuple[str, str, Any]]]
"""From state and time to (project, scope, message) of each resource of a kind."""

_MOST = 500


def _policies(state: State, now: float) -> Iterable[tuple[str, str, Any]]:
    return ((path.project, path.scope, policy_message(state, each, now)) for path, each in state.policies.items())


def _templates(state: State, now: float) -> Iterable[tuple[str, str, Any]]:
    seen = (each for each in state.templates.values() if each.ready <= now)
    return ((each.path.project, each.path.scope, template_message(each)) for each in seen)


def _groups(state: State, now: float) -> Iterable[tuple[str, str, Any]]:
    seen = (each for each in state.groups.values() if each.ready <= now)
    return ((each.path.project, each.path.scope, group_message(state, each, now)) for each in seen)


def _vms(state: State, now: float) -> Iterable[tuple[str, str, Any]]:
    for path, each in state.instances.items():
        if each.vm is not None:
            yield path.project, path.scope, instance_message(state, each, each.vm, now)


def _operations(state: State, now: float) -> Iterable[tuple[str, str, Any]]:
    return ((path.project, path.scope, operation_message(state, each, now)) for path, each in state.operations.items())


def _get(listed: Listed) -> Read:
    def read(state: State, call: Call, now: float) -> Any:
        place = (call.target.project, call.target.scope)
        for project, scope, message in listed(state, now):
            if (project, scope, message.name) == (*place, call.target.name):
                return message
        return not_found(str(call.target))

    return read


def _list(listed: Listed, answer: type[proto.Message], kind: str) -> Read:
    def read(state: State, call: Call, now: float) -> Any:
        place = (call.target.project, call.target.scope)
        found = (message for project, scope, message in listed(state, now) if (project, scope) == place)
        chosen = _page(call.message, [("", message) for message in found])
        if isinstance(chosen, Refusal):
            return chosen
        items, token = chosen
        return answer(kind=kind, items=[message for _, message in items], next_page_token=token)

    return read


def _aggregated(listed: Listed, answer: type[proto.Message], scoped: type[proto.Message], field: str) -> Read:
    """Return the reading of all scopes of a project; those without results say so (cloud-custodian#4491)."""

    def read(state: State, call: Call, now: float) -> Any:
        project = call.target.project
        found = [(scope, message) for owner, scope, message in listed(state, now) if owner == project]
        chosen = _page(call.message, found)
        if isinstance(chosen, Refusal):
            return chosen
        items, token = chosen
        by_scope: dict[str, list[Any]] = {scope: [] for scope in _scopes(state, field)}
        for scope, message in items:
            by_scope.setdefault(scope, []).append(message)
        entries = {
            scope: scoped(**{field: messages}) if messages else scoped(warning=_nothing(scope))
            for scope, messages in sorted(by_scope.items())
        }
        return answer(items=entries, next_page_token=token)

    return read


def _scopes(state: State, field: str) -> list[str]:
    zones, regions = [f"zones/{zone}" for zone in state.zones], [f"regions/{region}" for region in state.regions]
    return {
        "resource_policies": regions,
        "instance_group_managers": [*zones, *regions],
        "operations": [*zones, *regions, "global"],
    }[field]


def _nothing(scope: str) -> gce.Warning:
    message = f"There are no results for scope '{scope}' on this page."
    return gce.Warning(code="NO_RESULTS_ON_PAGE", message=message, data=[gce.Data(key="scope", value=scope)])


def _page(request: Any, found: list[tuple[str, Any]]) -> tuple[list[tuple[str, Any]], str] | Refusal:
    """Return what the request's filter lets through, in the order of names, and of that the page that it asks for."""
    if request.order_by not in ("", "name"):
        return not_implemented(f"orderBy={request.order_by}")
    try:
        test = filters.parse(request.filter)
    except filters.NotCoveredError as error:
        return not_implemented(f"The filter {error}")
    size = request.max_results if "max_results" in request else _MOST
    if size > _MOST:
        return invalid("maxResults", size, f"Must be less than or equal to {_MOST}.", "page-size")
    matching = [(scope, message) for scope, message in found if test(_as_json(message))]
    ordered = sorted(matching, key=lambda each: (each[1].name, each[0]))
    chosen = filters.page(ordered, size or _MOST, request.page_token)
    return chosen or invalid("pageToken", request.page_token, "Malformed page token.", "page-token")


def _as_json(message: Any) -> Mapping[str, Any]:
    return dict(json_format.MessageToDict(type(message).pb(message)))


def _managed(state: State, call: Call, now: float) -> Any:
    """List managed instances, in one page: PAGELESS, the default [py-gce list_managed_instances_results]."""
    if no := _no_group(state, call, now):
        return no
    if call.message.filter or call.message.order_by:
        return not_implemented("A filter or an order of listManagedInstances")
    members = sorted(state.members(call.target), key=lambda each: each.path.name)
    return gce.InstanceGroupManagersListManagedInstancesResponse(
        managed_instances=[managed_message(state, each, now) for each in members]
    )


def _errors(state: State, call: Call, now: float) -> Any:
    """List errors, the newest first; filter and order are not supported [doc:instanceGroupManagers/listErrors]."""
    if no := _no_group(state, call, now):
        return no
    found = [record_message(each) for each in reversed(state.records) if each.group == call.target]
    size = call.message.max_results or _MOST
    chosen = filters.page(found, size, call.message.page_token)
    if chosen is None:
        return invalid("pageToken", call.message.page_token, "Malformed page token.", "page-token")
    items, token = chosen
    return gce.InstanceGroupManagersListErrorsResponse(items=items, next_page_token=token)


def _no_group(state: State, call: Call, now: float) -> Refusal | None:
    group = state.groups.get(call.target)
    return None if group and group.ready <= now else not_found(str(call.target))


def _instance(state: State, call: Call, now: float) -> Any:
    instance = state.instances.get(call.target)
    if instance is None or instance.vm is None:
        return not_found(str(call.target), "instance-without-vm")
    return instance_message(state, instance, instance.vm, now)


def _guest_attributes(state: State, call: Call, _: float) -> Any:
    """Return guest attributes: all, those of a namespace, or one [py-gce GuestAttributes.query_path]."""
    instance = state.instances.get(call.target)
    if instance is None or instance.vm is None:
        return not_found(str(call.target), "instance-without-vm")
    path = call.message.query_path
    if call.message.variable_key:
        return not_implemented("variableKey")
    if not guests.enabled(instance.vm):
        message = "Guest attributes endpoint access is disabled."
        return Refusal(code=HTTPStatus.FORBIDDEN, reason="forbidden", message=message, rule="guest-attributes-disabled")
    entries = guests.entries(instance.vm, path)
    if not entries:
        return not_found(f"{call.target}/guestAttributes/{path}", "no-guest-attributes")
    return gce.GuestAttributes(
        kind="compute#guestAttributes",
        query_path=path,
        query_value=gce.GuestAttributesValue(
            items=[gce.GuestAttributesEntry(namespace=space, key=key, value=value) for space, key, value in entries]
        ),
        self_link=link(f"{call.target}/guestAttributes/{path}"),
    )


def _below(listed: Callable[[State, Call], list[Any] | Refusal], answer: type[proto.Message], kind: str) -> Read:
    """Return the reading of a list below a resource, which is not there if that is not."""

    def read(state: State, call: Call, _: float) -> Any:
        found = listed(state, call)
        chosen = found if isinstance(found, Refusal) else _page(call.message, [("", each) for each in found])
        if isinstance(chosen, Refusal):
            return chosen
        items, token = chosen
        return answer(kind=kind, items=[message for _, message in items], next_page_token=token)

    return read


_OPERATIONS = ("zoneOperations", "regionOperations", "globalOperations")
READS: Mapping[str, Read] = {
    "resourcePolicies.get": _get(_policies),
    "resourcePolicies.list": _list(_policies, gce.ResourcePolicyList, "compute#resourcePolicyList"),
    "resourcePolicies.aggregatedList": _aggregated(
        _policies, gce.ResourcePolicyAggregatedList, gce.ResourcePoliciesScopedList, "resource_policies"
    ),
    "instanceTemplates.get": _get(_templates),
    "instanceTemplates.list": _list(_templates, gce.InstanceTemplateList, "compute#instanceTemplateList"),
    "regionInstanceTemplates.get": _get(_templates),
    "instanceGroupManagers.get": _get(_groups),
    "instanceGroupManagers.list": _list(_groups, gce.InstanceGroupManagerList, "compute#instanceGroupManagerList"),
    "instanceGroupManagers.aggregatedList": _aggregated(
        _groups,
        gce.InstanceGroupManagerAggregatedList,
        gce.InstanceGroupManagersScopedList,
        "instance_group_managers",
    ),
    "instanceGroupManagers.listManagedInstances": _managed,
    "instanceGroupManagers.listErrors": _errors,
    "instances.get": _instance,
    "instances.list": _list(_vms, gce.InstanceList, "compute#instanceList"),
    "instances.getGuestAttributes": _guest_attributes,
    "advice.calendarMode": calendar_mode,
    "reservations.get": _get(reserved.reservations),
    "reservations.list": _list(reserved.reservations, gce.ReservationList, "compute#reservationList"),
    "reservationBlocks.get": reserved.block,
    "reservationBlocks.list": _below(
        reserved.blocks, gce.ReservationBlocksListResponse, "compute#reservationBlocksListResponse"
    ),
    "reservationSubBlocks.get": reserved.sub_block,
    "reservationSubBlocks.list": _below(
        reserved.sub_blocks, gce.ReservationSubBlocksListResponse, "compute#reservationSubBlocksListResponse"
    ),
    "futureReservations.get": _get(reserved.bookings),
    "futureReservations.list": _list(
        reserved.bookings, gce.FutureReservationsListResponse, "compute#futureReservationsListResponse"
    ),
    **{f"{service}.get": _get(_operations) for service in _OPERATIONS},
    **{f"{service}.list": _list(_operations, gce.OperationList, "compute#operationList") for service in _OPERATIONS},
    "globalOperations.aggregatedList": _aggregated(
        _operations, gce.OperationAggregatedList, gce.OperationsScopedList, "operations"
    ),
}
