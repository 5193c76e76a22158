"""How many hosts a reservation has, who uses them, and how many are left. Pure."""

from collections.abc import Mapping

from tpu_standins.compute.paths import Resource
from tpu_standins.compute.reserved import Block, Reserved, SubBlock
from tpu_standins.compute.state import Instance, State


def reservation_path(group: Resource, name: str) -> Resource:
    """Return the path of a reservation: of a project's own, or shared by another one [py-gce ReservationAffinity]."""
    if name.startswith("projects/"):
        _, project, _, name = name.split("/")[:4]
    else:
        project = group.project
    return Resource(project, group.scope, "reservations", name)


def members(state: State, reservation: Resource) -> tuple[Instance, ...]:
    """Return the instances of our groups that have a VM from a reservation."""
    groups = {
        path
        for path, group in state.groups.items()
        if (name := state.templates[group.template].reservation) and reservation_path(path, name) == reservation
    }
    return tuple(each for each in state.instances.values() if each.group in groups and each.vm is not None)


def consumed(state: State, reservation: Resource) -> int:
    """Return how many VMs of our groups run from a reservation."""
    return len(members(state, reservation))


def left(state: State, reserved: Reserved) -> int:
    """Return how many VMs our groups can still have of it: a host that is degraded or used by others gives none."""
    if reserved.status != "READY":
        return 0
    return max(0, sum(part.open for part in reserved.parts) - consumed(state, reserved.path))


def in_use(state: State, reserved: Reserved) -> Mapping[str, int]:
    """Return how many hosts are in use, by the name of the part; "": of a reservation without blocks."""
    rest = consumed(state, reserved.path)
    used: dict[str, int] = {}
    for part in reserved.parts:
        ours = min(rest, part.open)
        rest -= ours
        used[part.name] = part.others + ours
    return used


def block_named(reserved: Reserved | None, name: str) -> Block | None:
    return next((each for each in reserved.blocks if each.name == name), None) if reserved else None


def part_named(block: Block | None, name: str) -> SubBlock | None:
    return next((each for each in block.parts if each.name == name), None) if block else None
