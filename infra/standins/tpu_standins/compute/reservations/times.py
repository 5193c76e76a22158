"""How future reservations make their reservations, and how reservations end. Pure; times in seconds since 1970."""

from collections.abc import Iterator
from dataclasses import replace

from tpu_standins.compute.paths import Resource
from tpu_standins.compute.reservations.supply import members
from tpu_standins.compute.reserved import Booking, Reserved, SubBlock
from tpu_standins.compute.state import Instance, State

_COMMITTED = ("APPROVED", "COMMITTED")


def pass_time(state: State, now: float) -> State:
    """Return the state at `now`: what is booked until now is there, what ended is gone, and so are its VMs.

    The VMs stop as those of a spot preemption do: a notice, then they are deleted [doc:tpu-calendar-mode].
    """
    for booking in state.bookings.values():
        if _makes(booking) and booking.starts <= now:
            state = _made(state, booking, now)
    for reserved in state.reservations.values():
        if reserved.deletes is not None and reserved.deletes <= now:
            state = _ended(state, reserved, now)
    return state


def milestones(state: State) -> Iterator[float]:
    """Yield the times at which reservations come and go."""
    yield from (each.starts for each in state.bookings.values() if _makes(each))
    yield from (each.deletes for each in state.reservations.values() if each.deletes is not None)


def _makes(booking: Booking) -> bool:
    return not booking.done and booking.procurement in _COMMITTED


def _made(state: State, booking: Booking, now: float) -> State:
    path = Resource(booking.path.project, booking.path.scope, "reservations", booking.reservation)
    made = Reserved(
        path=path,
        machine_type=booking.machine_type,
        created=now,
        part=SubBlock(name="", count=booking.count),
        deletes=booking.ends,
        made_by=booking.path.name,
    )
    return replace(
        state,
        reservations={**state.reservations, path: made},
        bookings={**state.bookings, booking.path: replace(booking, done=True)},
    )


def _ended(state: State, reserved: Reserved, now: float) -> State:
    stopped = [_stopped(each, now, state.pace.shutdown) for each in members(state, reserved.path)]
    left = {path: each for path, each in state.reservations.items() if path != reserved.path}
    return replace(state.with_instances(stopped), reservations=left)


def _stopped(instance: Instance, now: float, shutdown: float) -> Instance:
    if instance.vm is None or instance.vm.stops is not None:
        return instance
    return replace(instance, vm=replace(instance.vm, noticed=now, stops=now + shutdown, preempted=True, for_good=True))
