"""Fault injection commands, translated into the HTTP requests that the stand-ins accept. Pure."""

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infra.local.up.note import Note

_ON_INSTANCES = {"break": "silence", "heal": "heal", "preempt": "preempt", "repair": "kill"}
"""What a command does to the instances of a group."""
LASTING = {"preempt": "back", "repair": "for", "upgrade": "for"}
"""What takes hosts away for as long as is asked, and the field of GKE's button that says so."""
_OF_SHORTAGES = ("capacity", "at_least", "available")
"""What may be asked of a shortage, as the buttons name it."""
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Press:
    """An HTTP request; the body is JSON."""

    url: str
    method: str = "GET"
    body: Mapping[str, Any] | None = None


class NotSimulated(Exception):
    """The command is for a simulated GKE only."""


def seconds(text: str) -> float:
    """Parse a duration such as `90s`, `5m` or `1h`."""
    amount = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if amount is None:
        raise argparse.ArgumentTypeError(f'"{text}" is not a duration: write 90s, 5m or 1h')
    return float(amount[1]) * _UNITS[amount[2]]


def share(text: str) -> float:
    """Parse a percentage such as `10%`."""
    amount = re.fullmatch(r"(\d+(?:\.\d+)?)%", text)
    if amount is None or not 0 < float(amount[1]) <= 100:
        raise argparse.ArgumentTypeError(f'"{text}" is not a percentage: write 10%')
    return float(amount[1]) / 100


def simulated(where: Note) -> str:
    """Return the URL of the simulated vendor. Raises NotSimulated if GKE itself is used."""
    if where.gke is None:
        raise NotSimulated("GKE is not simulated here: there are no faults of it to inject")
    return where.gke


def zones(text: str) -> list[str]:
    """Parse names of zones, separated by commas."""
    return text.split(",")


def fault(kind: str, asked: argparse.Namespace, where: Note) -> Press:
    """Return the request for a fault of node pool creations, for a duration or for a number of creations."""
    names = "names" if where.compute else "pools"
    body: dict[str, Any] = {"kind": kind, names: asked.pools, "zone": asked.zone}
    body |= {key: value for key in _OF_SHORTAGES if (value := vars(asked).get(key))}
    if asked.lasting is not None:
        body["for"] = asked.lasting
    else:
        body["times"] = asked.times
    if kind == "slow":
        body["seconds"] = asked.longer
    return Press(f"{simulated(where)}/faults", "POST", body)


def api_errors(asked: argparse.Namespace, where: Note) -> Press:
    """Return the request that makes a percentage of the calls to an API fail."""
    if asked.of == "kubernetes":
        answer = {"code": 503, "message": "the server is currently unable to handle the request"}
        body = {"fault": "answer", "share": asked.share, "for": asked.lasting, **answer}
        return Press(f"{where.faults}/faults", "POST", body)
    if where.compute:
        raise NotSimulated("the local Compute Engine fails calls one by one: see the buttons in its log")
    gke = {"kind": "unavailable", "method": "*", "share": asked.share, "times": None, "for": asked.lasting}
    return Press(f"{simulated(where)}/faults", "POST", gke)


def of_api_server(fault: Mapping[str, Any]) -> str:
    """Return a description of a fault between the relay and the API server."""
    lasts = "until `clear`" if fault["for"] is None else f"for another {fault['for']:.0f} s"
    return f"{fault['code']}: {fault['share']:.0%} of the relay's calls to Kubernetes, {lasts}"


def in_words(fault: Mapping[str, Any], now: float) -> str:
    """Return a description of an injected fault and its remaining duration; `now` in seconds since 1970."""
    share, until, times = fault.get("share", 1), fault["until"], fault["times"]
    often = f"{share:.0%} of " if share < 1 else ""
    where = f"{_which(fault)} {fault.get('pools') or fault['names']} in {fault['zone'] or 'every zone'}"
    lasts = f"another {until - now:.0f} s" if until is not None else f"the next {times}" if times else "now on"
    return f"{fault['kind']}: {often}{fault['method']} of {where}, for {lasts}"


def _which(fault: Mapping[str, Any]) -> str:
    """Return which pools a fault affects."""
    capacity, least = fault.get("capacity"), fault.get("at_least", 0)
    return " ".join(filter(None, (capacity, "pools", least > 1 and f"of {least} hosts and more")))


def on_hosts(verb: str, pool: str, where: Note, lasting: float | None = None) -> Press:
    """Return the request for what happens to a pool's hosts. Raise NotSimulated if the vendor does no such thing.

    `lasting`: how many seconds they are away, for what is LASTING on GKE.
    """
    if where.compute:
        if verb not in _ON_INSTANCES:
            raise NotSimulated(f"{verb} is what GKE does; on Compute Engine there are {', '.join(_ON_INSTANCES)}")
        if lasting is not None:
            raise NotSimulated("how long hosts are away is GKE's to say; on Compute Engine leave out --for")
        return Press(f"{simulated(where)}/instances/{_ON_INSTANCES[verb]}", "POST", {"group": pool})
    away = {} if lasting is None else {LASTING[verb]: lasting}
    return Press(f"{simulated(where)}/hosts/{verb}", "POST", {"pool": pool, **away})


def on_part(verb: str, part: str, where: Note) -> Press:
    return Press(f"{where.control}/{part}/{verb}", "POST", {})


def clear(where: Note) -> tuple[Press, ...]:
    return tuple(Press(f"{url}/faults", "DELETE") for url in (where.gke, where.faults) if url)
