"""Buttons for what can be booked. Pure.

POST   /advice  {"zone": Z, "vm_family": F, "chips": 64, "starts_in": 3600}: so many chips can be booked in the zone
                from so many seconds on
DELETE /advice  nothing can be booked any more, in any zone
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tpu_standins.compute.reserved import Offer
from tpu_standins.compute.state import State

Body = Mapping[str, Any]
OfferButton = Callable[[State, Body, float], State]


def shown(state: State) -> dict[str, Any]:
    """Return what the buttons show of offers."""
    return {
        "offers": [
            {"zone": each.zone, "vm_family": each.vm_family, "chips": each.chips, "starts": each.starts}
            for each in state.offers
        ]
    }


def _offer(state: State, body: Body, now: float) -> State:
    made = Offer(
        zone=str(body["zone"]),
        vm_family=str(body["vm_family"]),
        chips=int(body["chips"]),
        starts=now + float(body.get("starts_in", 0)),
    )
    others = (each for each in state.offers if (each.zone, each.vm_family) != (made.zone, made.vm_family))
    return replace(state, offers=(*others, made))


def _nothing(state: State, _body: Body, _now: float) -> State:
    return replace(state, offers=())


OFFER_BUTTONS: Mapping[tuple[str, str], OfferButton] = {("POST", "/advice"): _offer, ("DELETE", "/advice"): _nothing}
