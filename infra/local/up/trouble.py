"""Buttons by name: what a person asks for, as the request that the stand-in with that button takes. Pure."""

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infra.local.up.note import Note

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Press:
    """An HTTP request; the body is JSON."""

    url: str
    method: str = "GET"
    body: Mapping[str, Any] | None = None


def seconds(text: str) -> float:
    """Read `90s`, `5m` or `1h`."""
    amount = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if amount is None:
        raise argparse.ArgumentTypeError(f'"{text}" is no time: write 90s, 5m or 1h')
    return float(amount[1]) * _UNITS[amount[2]]


def share(text: str) -> float:
    """Read `10%`."""
    amount = re.fullmatch(r"(\d+(?:\.\d+)?)%", text)
    if amount is None or not 0 < float(amount[1]) <= 100:
        raise argparse.ArgumentTypeError(f'"{text}" is no share: write 10%')
    return float(amount[1]) / 100


def fault(kind: str, asked: argparse.Namespace, where: Note) -> Press:
    """Order what keeps node pools from coming: for a time, or for a number of creations."""
    body: dict[str, Any] = {"kind": kind, "pools": asked.pools, "zone": asked.zone}
    if asked.lasting is not None:
        body["for"] = asked.lasting
    else:
        body["times"] = asked.times
    if kind == "slow":
        body["seconds"] = asked.longer
    return Press(f"{where.gke}/faults", "POST", body)


def api_errors(asked: argparse.Namespace, where: Note) -> Press:
    """Let a share of the calls of an API fail."""
    if asked.of == "kubernetes":
        answer = {"code": 503, "message": "the server is currently unable to handle the request"}
        body = {"fault": "answer", "share": asked.share, "for": asked.lasting, **answer}
        return Press(f"{where.kubernetes}/local/faults", "POST", body)
    gke = {"kind": "unavailable", "method": "*", "share": asked.share, "times": None, "for": asked.lasting}
    return Press(f"{where.gke}/faults", "POST", gke)


def in_words(fault: Mapping[str, Any], now: float) -> str:
    """Say what an ordered fault does, and for how long still; `now` in seconds since 1970."""
    often = f"{fault['share']:.0%} of " if fault["share"] < 1 else ""
    where = f"pools {fault['pools']} in {fault['zone'] or 'every zone'}"
    lasts = f"the next {fault['times']}" if fault["until"] is None else f"{fault['until'] - now:.0f} s more"
    return f"{fault['kind']}: {often}{fault['method']} of {where}, for {lasts}"


def on_hosts(verb: str, pool: str, where: Note) -> Press:
    return Press(f"{where.gke}/hosts/{verb}", "POST", {"pool": pool})


def on_part(verb: str, part: str, where: Note) -> Press:
    return Press(f"{where.control}/{part}/{verb}", "POST", {})


def clear(where: Note) -> tuple[Press, ...]:
    return (
        Press(f"{where.gke}/faults", "DELETE"),
        Press(f"{where.kubernetes}/local/faults", "POST", {"fault": "heal"}),
    )
