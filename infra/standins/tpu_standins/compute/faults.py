"""Injected faults, and Compute Engine's error messages for them."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from types import MappingProxyType

from tpu_standins.cloud import faults
from tpu_standins.compute.errors import Refusal, Trouble
from tpu_standins.compute.paths import Resource, region_of
from tpu_standins.compute.state import Fault, Kind, State, Template

AT_ONCE = frozenset({Kind.PERMISSION, Kind.RATE, Kind.UNAVAILABLE, Kind.INTERNAL})
LATER = frozenset({Kind.SLOW, Kind.FAILS})
ANSWER = frozenset({Kind.LOST_ANSWER})
SHORTAGES = frozenset({Kind.STOCKOUT, Kind.QUOTA, Kind.CREATE_FAILS})
SUPPLY = "supply"
"""The method of attempts to create VMs, which are no calls."""

_UNAVAILABLE = (HTTPStatus.SERVICE_UNAVAILABLE, "backendError", "The service is currently unavailable.")
_WORDS: Mapping[Kind, tuple[HTTPStatus, str, str]] = MappingProxyType(
    {
        # [doc:troubleshooting/service-error-catalog]: 403 forbidden, 403 rateLimitExceeded [doc:api-quota]
        Kind.PERMISSION: (HTTPStatus.FORBIDDEN, "forbidden", "Required '{permission}' permission for '{path}'"),
        Kind.RATE: (HTTPStatus.FORBIDDEN, "rateLimitExceeded", "Rate Limit Exceeded"),
        Kind.UNAVAILABLE: _UNAVAILABLE,
        Kind.INTERNAL: (HTTPStatus.INTERNAL_SERVER_ERROR, "internalError", "Internal error. Please try again."),
        Kind.LOST_ANSWER: _UNAVAILABLE,
    }
)


def take(state: State, kinds: Collection[Kind], method: str, path: Resource) -> tuple[State, Fault | None]:
    """Return the first fault of these kinds that affects this, and the state in which its use is counted."""
    after, taken = faults.take(state.faults, lambda fault: _meant(fault, kinds, method, path))
    return replace(state, faults=after), taken


def find_shortage(state: State, group: Resource, template: Template, count: int) -> int | None:
    """Return the index of the first shortage that affects an attempt to create so many VMs."""
    capacity = template.capacity
    meant = (
        index
        for index, fault in enumerate(state.faults)
        if _meant(fault, SHORTAGES, SUPPLY, group) and fault.takes(capacity, count)
    )
    return next(meant, None)


def put(state: State, index: int, instead: tuple[Fault, ...]) -> State:
    return replace(state, faults=(*state.faults[:index], *instead, *state.faults[index + 1 :]))


def _meant(fault: Fault, kinds: Collection[Kind], method: str, path: Resource) -> bool:
    return (
        fault.is_of(kinds, method)
        and (fault.zone is None or path.scope in {f"zones/{fault.zone}", f"regions/{region_of(fault.zone)}"})
        and re.fullmatch(fault.names, path.name) is not None
    )


def refused(fault: Fault, method: str, path: Resource) -> Refusal:
    code, reason, words = _WORDS[fault.kind]
    collection, verb = method.split(".")
    permission = f"compute.{collection}.{'create' if verb == 'insert' else verb}"
    message = words.format(permission=permission, path=path)
    return Refusal(code=code, reason=reason, message=message, rule=f"fault-{fault.kind.value}")


def failed(fault: Fault) -> Trouble:
    return Trouble(code=fault.code, message=fault.message, http=HTTPStatus.SERVICE_UNAVAILABLE)


def shortage(fault: Fault, group: Resource, machine: str) -> Trouble:
    """Return the error of an attempt to create VMs."""
    match fault.kind:
        case Kind.STOCKOUT:
            return stockout(group, machine, fault.available)
        case Kind.QUOTA:
            return quota(group)
        case _:
            return Trouble(code=fault.code, message=fault.message)


def stockout(group: Resource, machine: str, available: Sequence[str] = ()) -> Trouble:
    """Return Compute's error for a stockout.

    Code: [doc:view-cancel-vm-bulk-creation-in-migs]. Wording: cirruslabs/cirrus-ci-docs#131. Details, and the wording
    where zones are `available`: kubernetes/k8s.io#9834.
    """
    zone = group.location
    nowhere = (
        f"The zone 'projects/{group.project}/zones/{zone}' does not have enough resources available to fulfill the "
        "request.  '(resource type:compute)'."
    )
    return Trouble(
        code="ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        message=faults.elsewhere(machine, zone, available) if available else nowhere,
        http=HTTPStatus.SERVICE_UNAVAILABLE,
        metadata={"attachment": "", "vmType": machine, "zone": zone, "zonesAvailable": ",".join(available)},
    )


def quota(group: Resource) -> Trouble:
    """Return Compute's error for exhausted quota; code and wording: GoogleCloudPlatform/ai-on-gke#849."""
    message = f"Quota 'TPUS_PER_TPU_FAMILY' exceeded.  Limit: 0.0 in region {region_of(group.location)}."
    return Trouble(code="QUOTA_EXCEEDED", message=message, http=HTTPStatus.FORBIDDEN)
