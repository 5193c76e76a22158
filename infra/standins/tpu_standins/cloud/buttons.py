"""Buttons that the simulated GKE and Compute Engine share: their faults, and the calls that they took."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, replace
from enum import Enum
from typing import Any

from tpu_standins.cloud.faults import CAPACITIES
from tpu_standins.cloud.timed import Moment, Timed

Button = Callable[[Any, Mapping[str, Any]], dict[str, Any]]
"""From a control plane and a JSON object to the JSON that answers."""
Body = Mapping[str, Any]
Reply = dict[str, Any]
Plane = Timed[Any, Any]
Parse = Callable[[Body], tuple[Any, float | None]]
"""Returns a fault, and its duration in seconds, if any. Raises KeyError, TypeError, ValueError or re.error."""


class UnknownThingError(Exception):
    """A button's target does not exist or is not in a suitable state. The message is for people."""


def pressed(
    buttons: Mapping[tuple[str, str], Button], plane: object, method: str, path: str, body: bytes
) -> tuple[int, dict[str, Any]]:
    """Press the button at a method and a path; return the HTTP status and the JSON response."""
    button = buttons.get((method, path))
    if button is None:
        return 404, {"error": f"no such button: {method} {path}", "buttons": [" ".join(key) for key in buttons]}
    try:
        asked = json.loads(body or b"{}")
        if not isinstance(asked, dict):
            return 400, {"error": "the body must be a JSON object"}
        return 200, button(plane, asked)
    except (UnknownThingError, KeyError, ValueError) as error:
        return 400, {"error": str(error)}


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


def read_fault(
    kinds: type[Enum], body: Body, pattern: str, lasting: Collection[Enum] = ()
) -> tuple[Reply, float | None]:
    """Return the fields of a fault, and its duration in seconds, if any: with it, all calls are affected until then.

    `pattern`: the field that names what is meant, by a regular expression. `lasting`: kinds that last until cleared.
    """
    kind, lasts = kinds(body["kind"]), None if body.get("for") is None else float(body["for"])
    times = body.get("times", 1 if lasts is None and kind not in lasting else None)
    read = {
        **_shortage(body),
        "kind": kind,
        "times": None if times is None else int(times),
        "seconds": float(body.get("seconds", 10)),
        "share": float(body.get("share", 1)),
        pattern: re.compile(body.get(pattern, ".*")).pattern,
    }
    return {**{name: value for name, value in body.items() if name != "for"}, **read}, lasts


def _shortage(body: Body) -> Reply:
    """Return the fields that say which capacity is short. Raises ValueError."""
    if body.get("capacity") not in (None, *CAPACITIES):
        raise ValueError(f"capacities: {', '.join(CAPACITIES)}")
    if body.get("available") and body["kind"] != "stockout":
        raise ValueError("available: of a stockout")
    return {"at_least": int(body.get("at_least", 0)), "available": tuple(map(str, body.get("available", ())))}


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
