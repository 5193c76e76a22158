"""Buttons for people and demos: endpoints that inspect state and inject faults, HTTP and JSON on a separate port.

GET  /groups /instances /templates /policies /reservations /advice /operations /faults /calls
POST /faults      {"kind": "stockout", "names": "tpu-.*", "zone": null}. Kinds:
                  stockout, quota: a group's VMs cannot be created, until the fault is cleared; "hosts": how many still
                  can; "for": seconds, instead; "times": that many attempts; "told": "group" or "instances", where a
                  group with BULK tells it, instead of "both"; "capacity": only of spot, on-demand or reservation;
                  "at_least": only if so many VMs and more are to be created at once; "available": the zones that a
                  stockout says have stock
                  create_fails: the same with a "code" and a "message" of yours
                  permission, rate, unavailable, internal: the next call fails; "method", such as
                  "instanceGroupManagers.insert"; "times": the next calls; "share": fraction of the calls, 0 to 1
                  lost_answer: the next change happens, but its caller gets 503
                  slow: the next operation takes "seconds" longer
                  fails: the next operation ends with an error of "code" and "message"
DELETE /faults    clear all faults, or with {"names": ".*"} those with that pattern
POST /reservations, /bookings: reservations and future reservations, see `reservations.buttons`
POST /advice      what can be booked in which zone, see `advice.buttons`
POST /instances/... kill, preempt, silence, heal: see `vm_buttons`
"""

from collections.abc import Callable, Mapping
from typing import Any

from tpu_standins.cloud.buttons import fault_buttons, pressed, read_fault
from tpu_standins.compute.advice.buttons import OFFER_BUTTONS, OfferButton
from tpu_standins.compute.advice.buttons import shown as shown_offers
from tpu_standins.compute.control_plane import ControlPlane
from tpu_standins.compute.faults import SHORTAGES
from tpu_standins.compute.reservations.buttons import RESERVATION_BUTTONS, ReservationButton, shown
from tpu_standins.compute.state import Fault, Kind
from tpu_standins.compute.vm_buttons import VM_BUTTONS, Body, VmButton

Reply = dict[str, Any]
Button = Callable[[ControlPlane, Body], Reply]


def _groups(plane: ControlPlane, _: Body) -> Reply:
    state, _now = plane.look()
    return {
        "groups": [
            {
                "name": path.name,
                "path": str(path),
                "template": str(group.template),
                "policy": str(group.policy or ""),
                "bulk": group.bulk,
                "target": group.target,
                "instances": [each.path.name for each in state.members(path)],
                "problem": group.check[0].code if group.check else "",
                "deleting": group.leaving,
            }
            for path, group in state.groups.items()
        ]
    }


def _instances(plane: ControlPlane, _: Body) -> Reply:
    state, now = plane.look()
    return {
        "instances": [
            {
                "name": path.name,
                "path": str(path),
                "group": each.group.name,
                "action": each.action.value,
                "status": each.vm.status(now) if each.vm else "",
                "life": each.life,
                "problem": each.trouble.code if each.trouble else "",
                "metadata": dict(each.vm.metadata) if each.vm else {},
                "guest_attributes": {"/".join(key): value for key, value in each.vm.attributes.items()}
                if each.vm
                else {},
            }
            for path, each in state.instances.items()
        ]
    }


def _templates(plane: ControlPlane, _: Body) -> Reply:
    return {"templates": [str(path) for path in plane.look()[0].templates]}


def _policies(plane: ControlPlane, _: Body) -> Reply:
    found = plane.look()[0].policies
    return {"policies": [{"path": str(path), "topology": each.topology} for path, each in found.items()]}


def _reservations(plane: ControlPlane, _: Body) -> Reply:
    return shown(plane.look()[0])


def _operations(plane: ControlPlane, _: Body) -> Reply:
    state, _now = plane.look()
    return {
        "operations": [
            {
                "name": path.name,
                "scope": path.scope,
                "method": each.method,
                "target": str(each.target),
                "started": each.started,
                "ended": each.ended,
                "error": each.error.code if each.error else "",
            }
            for path, each in state.operations.items()
        ]
    }


def _fault(body: Body) -> tuple[Fault, float | None]:
    read, lasts = read_fault(Kind, body, "names", SHORTAGES)
    if "share" in body and read["kind"] in SHORTAGES:
        raise ValueError("share: of calls, not of VMs")
    if read["kind"] not in SHORTAGES and body.keys() & {"capacity", "at_least"}:
        raise ValueError("capacity, at_least: of VMs, not of calls")
    if body.get("told", "both") not in ("both", "group", "instances"):
        raise ValueError(body["told"])
    return Fault(**read | {"hosts": int(body.get("hosts", 0))}), lasts


def _on_reservations(press: ReservationButton) -> Button:
    def button(plane: ControlPlane, body: Body) -> Reply:
        plane.change(lambda state, moment: press(state, body, moment.now))
        return _reservations(plane, {})

    return button


def _offers(plane: ControlPlane, _: Body) -> Reply:
    return shown_offers(plane.look()[0])


def _on_offers(press: OfferButton) -> Button:
    def button(plane: ControlPlane, body: Body) -> Reply:
        plane.change(lambda state, moment: press(state, body, moment.now))
        return _offers(plane, {})

    return button


def _on_vms(press: VmButton) -> Button:
    def button(plane: ControlPlane, body: Body) -> Reply:
        plane.change(lambda state, moment: press(state, body, moment.now))
        return _instances(plane, {})

    return button


BUTTONS: Mapping[tuple[str, str], Button] = {
    ("GET", "/groups"): _groups,
    ("GET", "/instances"): _instances,
    ("GET", "/templates"): _templates,
    ("GET", "/policies"): _policies,
    ("GET", "/reservations"): _reservations,
    ("GET", "/advice"): _offers,
    ("GET", "/operations"): _operations,
    **fault_buttons(Kind, _fault),
    **{path: _on_reservations(change) for path, change in RESERVATION_BUTTONS.items()},
    **{path: _on_offers(change) for path, change in OFFER_BUTTONS.items()},
    **{("POST", path): _on_vms(change) for path, change in VM_BUTTONS.items()},
}


def press(plane: ControlPlane, method: str, path: str, body: bytes) -> tuple[int, Reply]:
    """Return the HTTP status and the JSON response."""
    return pressed(BUTTONS, plane, method, path, body)
