"""Buttons that the simulated GKE and Compute Engine share: their faults, and the calls that they took."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from enum import Enum
from typing import Any

from infra.local.clients.loopback import Button, UnknownThingError
from infra.local.timed import Moment, Timed

Body = Mapping[str, Any]
Reply = dict[str, Any]
Plane = Timed[Any, Any]
Parse = Callable[[Body], tuple[Any, float | None]]
"""Returns a fault, and its duration in seconds, if any. Raises KeyError, TypeError, ValueError or re.error."""


def fault_buttons(kinds: type[Enum], parse: Parse) -> Mapping[tuple[str, str], Button]:
    """Return the buttons by method and path."""

    def order(plane: Plane, body: Body) -> Reply:
        try:
            fault, lasts = parse(body)
        except (KeyError, TypeError, ValueError, re.error) as error:
            names = ", ".join(kind.value for kind in kinds)
            raise UnknownThingError(f"not a fault ({error!r}); kinds: {names}") from error

        def ordered(state: Any, moment: Moment) -> Any:
            until = None if lasts is None else moment.now + lasts
            return replace(state, faults=(*state.faults, replace(fault, until=until)))

        plane.change(ordered)
        return _faults(plane, {})

    return {
        ("GET", "/faults"): _faults,
        ("POST", "/faults"): order,
        ("DELETE", "/faults"): _forget_faults,
        ("GET", "/calls"): _calls,
    }


def _faults(plane: Plane, _: Body) -> Reply:
    return {"faults": [asdict(fault) for fault in plane.look()[0].faults]}


def _forget_faults(plane: Plane, body: Body) -> Reply:
    """Forget the faults that have what the body says, such as {"pools": ".*"}; without one, all."""
    plane.change(lambda state, _: replace(state, faults=tuple(each for each in state.faults if not _is(each, body))))
    return _faults(plane, {})


def _is(fault: Any, body: Body) -> bool:
    if unknown := body.keys() - asdict(fault).keys():
        raise UnknownThingError(f"a fault has no {', '.join(sorted(unknown))}")
    return all(getattr(fault, name) == value for name, value in body.items())


def _calls(plane: Plane, _: Body) -> Reply:
    return {"calls": [asdict(call) for call in plane.calls()]}
