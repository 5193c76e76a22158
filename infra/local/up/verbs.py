"""The commands that control a running stack from another terminal."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import time  # noqa: TID251 - the only place where the clock is read
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

from infra.local.up import reserving, trouble
from infra.local.up.log_lines import Logs
from infra.local.up.note import Note, NothingUp
from infra.local.up.trouble import Press
from tpu_standins.cloud.faults import CAPACITIES
from tpu_standins.patience import PATIENCE_SECONDS

OPENER = build_opener(ProxyHandler({}))
REFUSED, NO_STACK = 1, 2

Verb = Callable[[argparse.Namespace, Note], None]


class Refused(Exception):
    """The stack refused a command; the message says why."""


def add(verbs: Any) -> None:
    """Add the commands to a parser's subparsers."""
    _faults(verbs)
    _hosts(verbs)
    reserving.add(verbs, pressed)
    _parts(verbs)
    _looks(verbs)


def run(verb: Verb, asked: argparse.Namespace, state: Path) -> int:
    """Run a command and return the exit code."""
    try:
        verb(asked, Note.read(state))
    except NothingUp as nothing:
        print(nothing, file=sys.stderr)
        return NO_STACK
    except (Refused, trouble.NotSimulated) as no:
        print(no, file=sys.stderr)
        return REFUSED
    return 0


def pressed(press: Press) -> dict[str, Any]:
    """Send the request and return the response. Raise Refused if it is rejected or unanswered."""
    data = None if press.body is None else json.dumps(press.body).encode()
    try:
        with OPENER.open(Request(press.url, data, method=press.method), timeout=2 * PATIENCE_SECONDS) as said:  # noqa: S310 - our own URL
            answer: dict[str, Any] = json.loads(said.read())
            return answer
    except HTTPError as error:
        raise Refused(_why(error)) from error
    except (URLError, OSError) as error:
        raise Refused(f"{press.url} does not respond: is the stack still running? {error}") from error


def _why(error: HTTPError) -> str:
    try:
        said = json.loads(error.read())
    except ValueError:
        return str(error)
    return str(said.get("error") or said.get("message") or said)


def _faults(verbs: Any) -> None:
    for kind, what in (
        ("stockout", "the zone is out of hosts"),
        ("quota", "the project's quota is exhausted"),
        ("slow", "node pool creations take longer"),
    ):
        parser = verbs.add_parser(kind, help=what)
        parser.add_argument("--zone", help="only in this zone")
        parser.add_argument("--pools", default=".*", metavar="REGEX", help="only node pools with matching names")
        parser.add_argument(
            "--for", dest="lasting", type=trouble.seconds, metavar="TIME", help="how long, such as 90s, 5m or 1h"
        )
        parser.add_argument("--times", type=int, default=1, help="number of creations, unless --for is given")
        if kind == "slow":
            parser.add_argument("--seconds", dest="longer", type=float, default=60.0, help="how much longer")
        else:
            _add_shortage(parser, kind)
        parser.set_defaults(verb=_ordering(kind))
    parser = verbs.add_parser("api-errors", help="a percentage of the calls to an API fails")
    parser.add_argument("share", type=trouble.share, metavar="SHARE", help="such as 10%%")
    parser.add_argument("--of", choices=["gke", "kubernetes"], default="gke")
    parser.add_argument(
        "--for", dest="lasting", type=trouble.seconds, metavar="TIME", default=300.0, help="how long (default: 5m)"
    )
    parser.set_defaults(verb=_api_errors)
    parser = verbs.add_parser("clear", help="end all injected faults")
    parser.set_defaults(verb=_clear)


def _add_shortage(parser: argparse.ArgumentParser, kind: str) -> None:
    """Add what is short: without it, all capacity is."""
    parser.add_argument("--capacity", choices=CAPACITIES, help="only of this capacity")
    least = "only for slices of so many hosts and more: fewer are given"
    parser.add_argument("--hosts", dest="at_least", type=int, metavar="N", help=least)
    if kind == "stockout":
        elsewhere = "the zones that the vendor's answer names as those with stock"
        parser.add_argument("--available", type=trouble.zones, metavar="ZONE,ZONE", help=elsewhere)


def _ordering(kind: str) -> Verb:
    def order(asked: argparse.Namespace, where: Note) -> None:
        ordered = pressed(trouble.fault(kind, asked, where))["faults"][-1]
        print(trouble.in_words(ordered, time()))

    return order


def _api_errors(asked: argparse.Namespace, where: Note) -> None:
    pressed(trouble.api_errors(asked, where))
    whose = "the relay's calls to Kubernetes" if asked.of == "kubernetes" else "the calls to GKE"
    print(f"{asked.share:.0%} of {whose} fail for {asked.lasting:.0f} s")


def _clear(_: argparse.Namespace, where: Note) -> None:
    for press in trouble.clear(where):
        pressed(press)
    print("all injected faults are cleared")


def _hosts(verbs: Any) -> None:
    for name, verb, what in (
        ("break-host", "break", "one host of a slice becomes NotReady"),
        ("heal", "heal", "the hosts of a slice become Ready again"),
        ("preempt", "preempt", "the hosts of a slice are preempted after a notice, and come back as new nodes"),
        ("maintain", "maintain", "the same, announced ten seconds before as scheduled maintenance"),
        ("repair", "repair", "GKE repairs a slice, whose hosts are made anew"),
        ("upgrade", "upgrade", "GKE upgrades a slice, whose hosts come back under new names"),
        ("fill", "fill", "GKE adds the hosts of flex-start to an empty slice"),
        ("end", "end", "GKE takes the hosts of flex-start back, as at the end of their time"),
    ):
        parser = verbs.add_parser(name, help=what)
        parser.add_argument(
            "pool", nargs="?", metavar="POOL", help="node pool name or prefix of it (default: the first)"
        )
        if verb in trouble.LASTING:
            how_long = "how long the hosts are away (default: seconds)"
            parser.add_argument("--for", dest="lasting", type=trouble.seconds, metavar="TIME", help=how_long)
        parser.set_defaults(verb=_pressing_on_hosts(verb))


def _pressing_on_hosts(verb: str) -> Verb:
    def press(asked: argparse.Namespace, where: Note) -> None:
        pool = _pool(asked.pool, where)
        pressed(trouble.on_hosts(verb, pool, where, vars(asked).get("lasting")))
        print(f"{verb}: {pool}")

    return press


def _pool(begins: str | None, where: Note) -> str:
    """Return the first node pool whose name has this prefix, or the first of all; a slice's id is such a prefix."""
    what = "groups" if where.compute else "pools"
    pools = [str(pool["name"]) for pool in pressed(Press(f"{trouble.simulated(where)}/{what}"))[what]]
    if not pools:
        raise Refused("there is no node pool: `kubectl apply -f examples/v5e.yaml` leads to one")
    found = next((pool for pool in pools if pool.startswith(begins or "")), None)
    if found is None:
        raise Refused(f"no node pool's name begins with {begins}: {', '.join(pools)}")
    return found


def _parts(verbs: Any) -> None:
    parser = verbs.add_parser("relay", help="stop or start the relay")
    parser.add_argument("order", choices=["stop", "start"])
    parser.set_defaults(verb=lambda asked, where: _order(asked.order, "relay", where))
    parser = verbs.add_parser(
        "kill", help="kill a part; it is restarted, but pubsub, firestore, gke and the embedded cluster lose all state"
    )
    parser.add_argument("part", metavar="PART", help="receive, reconcile, sweep, relay, pubsub, firestore, ...")
    parser.set_defaults(verb=lambda asked, where: _order("kill", asked.part, where))


def _order(verb: str, part: str, where: Note) -> None:
    print(pressed(trouble.on_part(verb, part, where))["done"])


def _looks(verbs: Any) -> None:
    parser = verbs.add_parser("status", help="the status of each part and the injected faults")
    parser.set_defaults(verb=_status)
    parser = verbs.add_parser("env", help="print the environment for clients: eval $(python -m infra.local env)")
    parser.set_defaults(verb=_environment)
    parser = verbs.add_parser("logs", help="print the logs of all parts, merged")
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("-f", "--follow", action="store_true")
    parser.add_argument("--everything", action="store_true", help="include every line and every field")
    parser.set_defaults(verb=_logs)


def _status(_: argparse.Namespace, where: Note) -> None:
    for name, status in pressed(Press(f"{where.control}/"))["parts"].items():
        print(f"{name:<24} {status}")
    for fault in pressed(Press(f"{where.gke}/faults"))["faults"] if where.gke else ():
        print(f"{'fault':<24} {trouble.in_words(fault, time())}")
    for fault in pressed(Press(f"{where.faults}/faults"))["faults"]:
        print(f"{'fault':<24} {trouble.of_api_server(fault)}")


def _environment(_: argparse.Namespace, where: Note) -> None:
    for name, value in where.environment.items():
        print(f"export {name}={value}")


def _logs(asked: argparse.Namespace, where: Note) -> None:
    logs = Logs(Path(where.logs), frozenset(asked.parts), asked.everything)
    if asked.follow:
        logs.follow(lambda line: print(line, flush=True))
    for line in sorted(logs.news()):
        print(line)
