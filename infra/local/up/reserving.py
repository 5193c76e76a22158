"""The commands that make reservations of the local Compute Engine, and show them."""

import argparse
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from infra.local.up import trouble
from infra.local.up.note import Note
from infra.local.up.trouble import NotSimulated, Press

MACHINE = "ct6e-standard-4t"


def add(verbs: Any, pressed: Any) -> None:
    """Add the commands to a parser's subparsers; `pressed` sends a request and returns the response."""
    for name, request, what in (
        ("reserve", reservation, "a reservation is there, and changes if it is made again"),
        ("book", booking, "a future reservation makes its reservation at a time, and deletes it at its end"),
    ):
        parser = verbs.add_parser(name, help=f"{what} (Compute Engine)")
        parser.add_argument("name", metavar="NAME", help="of the reservation")
        parser.add_argument("--zone", required=True)
        parser.add_argument("--hosts", type=int, required=True, metavar="N")
        parser.add_argument("--machine", default=MACHINE, help=f"its machine type (default: {MACHINE})")
        if name == "book":
            parser.add_argument("--in", dest="starts_in", type=trouble.seconds, required=True, metavar="TIME")
        else:
            parser.add_argument("--others", type=int, default=0, metavar="N", help="hosts that others use")
        lasts = "until its end, such as 90s, 5m or 1h"
        parser.add_argument("--for", dest="lasting", type=trouble.seconds, required=name == "book", help=lasts)
        parser.set_defaults(verb=_making(request, pressed))
    verbs.add_parser("reservations", help="what is reserved and booked, and who uses it").set_defaults(
        verb=lambda _, where: _show(pressed(Press(f"{_compute(where)}/reservations")))
    )


def reservation(asked: argparse.Namespace, where: Note) -> Press:
    """Return the request for a reservation. Raises NotSimulated for a cluster of GKE."""
    ends = {} if asked.lasting is None else {"ends_in": asked.lasting}
    return Press(f"{_compute(where)}/reservations", "POST", {**_what(asked, where), "others": asked.others, **ends})


def booking(asked: argparse.Namespace, where: Note) -> Press:
    """Return the request for a future reservation of the same name. Raises NotSimulated for a cluster of GKE."""
    when = {"starts_in": asked.starts_in, "ends_in": asked.starts_in + asked.lasting}
    return Press(f"{_compute(where)}/bookings", "POST", {**_what(asked, where), "reservation": asked.name, **when})


def told(reply: Mapping[str, Any]) -> list[str]:
    """Return what is reserved and booked, a line each."""
    made = [
        f"{_name(each)}: {each['status']}, {each['in_use']} of {each['count']} hosts used, {each['ours']} by this stack"
        + (f", ends at {_time(each['deletes'])}" if each["deletes"] else "")
        for each in reply["reservations"]
    ]
    booked = [
        f"{each['reservation']}: booked, begins at {_time(each['starts'])}"
        for each in reply["bookings"]
        if not each["done"]
    ]
    return made + booked


def _making(request: Any, pressed: Any) -> Any:
    return lambda asked, where: _show(pressed(request(asked, where)))


def _show(reply: Mapping[str, Any]) -> None:
    for line in told(reply) or ["nothing is reserved"]:
        print(line)


def _what(asked: argparse.Namespace, where: Note) -> dict[str, Any]:
    project = where.environment["GOOGLE_CLOUD_PROJECT"]
    given = {"zone": asked.zone, "name": asked.name, "machine_type": asked.machine, "count": asked.hosts}
    return {"project": project, **given}


def _compute(where: Note) -> str:
    if not where.compute:
        raise NotSimulated("reservations are those of the local Compute Engine: start a stack with --backend compute")
    return trouble.simulated(where)


def _name(each: Mapping[str, Any]) -> str:
    return str(each["path"]).rpartition("/")[2]


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%H:%M:%S} UTC"
