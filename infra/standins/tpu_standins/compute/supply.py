"""Whether there are VMs for a group: reservations, and injected shortages. Pure."""

from dataclasses import replace
from http import HTTPStatus

from tpu_standins.cloud.faults import worn
from tpu_standins.compute.errors import Trouble
from tpu_standins.compute.faults import find_shortage, put, shortage
from tpu_standins.compute.reservations.supply import left, reservation_path
from tpu_standins.compute.state import Group, State, Template


def available(state: State, group: Group, count: int) -> tuple[State, int, Trouble | None, str]:
    """Return how many of so many VMs can be created now, the error of the others, and where it is told.

    All or none with target size policy BULK [doc:about-bulk-mode], as many as there are with INDIVIDUAL.
    """
    template = state.templates[group.template]
    reserved, unreserved = _reserved(state, group, template)
    granted = _granted(group, count, reserved)
    index = find_shortage(state, group.path, template, count)
    if index is None or granted == 0:
        return state, granted, unreserved if granted < count else None, "both"
    fault = state.faults[index]
    got = _granted(group, granted, fault.hosts)
    after = replace(fault, hosts=fault.hosts - got)
    if got == granted:
        return put(state, index, (after,)), got, unreserved if got < count else None, "both"
    return put(state, index, worn(after)), got, shortage(fault, group.path, template.machine_type), fault.told


def _granted(group: Group, count: int, left: int) -> int:
    if left >= count:
        return count
    return 0 if group.bulk else left


def _reserved(state: State, group: Group, template: Template) -> tuple[int, Trouble | None]:
    """Return how many VMs its reservation leaves, and the error of what is beyond it.

    Code and wording of the first two: kubernetes/autoscaler, its GCE client's tests; of the last: the same client.
    """
    if not template.reservation:
        return 1_000_000, None
    path = reservation_path(group.path, template.reservation)
    found = state.reservations.get(path)
    if found is None:
        return 0, _condition(f"Specified reservations [{path.name}] do not exist.")
    if found.machine_type != template.machine_type:
        return 0, _condition(f"No available resources in specified reservations '{path.name}'")
    why = f"Specified reservation '{path.name}' does not have available resources for the request."
    return left(state, found), _condition(why)


def _condition(message: str) -> Trouble:
    return Trouble(code="CONDITION_NOT_MET", message=message, http=HTTPStatus.PRECONDITION_FAILED)
