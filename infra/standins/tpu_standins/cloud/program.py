"""A control plane as a program: its arguments, its clock, and its end on a signal."""

import argparse
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from tpu_standins.cloud.sink import sink
from tpu_standins.cloud.timed import Outside

SIGNAL_SECONDS = 0.5
"""How late a signal is noticed at most: one that comes as the main thread begins to wait does not wake it."""

P = TypeVar("P")
"""A dataclass of durations in seconds, each with its default."""
Begin = Callable[[argparse.Namespace, Outside, ExitStack], str]
"""Starts what serves until the stack is closed; returns the addresses to print."""


def parser(name: str, description: str, pace: Any) -> argparse.ArgumentParser:
    """Return the arguments that every control plane has; `pace` is the type of its durations."""
    made = argparse.ArgumentParser(prog=f"python -m {name}", description=description)
    made.add_argument("--port", type=int, default=0, help="port of the API; 0: any free port")
    made.add_argument("--buttons-port", type=int, default=0, help="port of the HTTP buttons; 0: any free port")
    made.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="where Nodes are made (default: KUBECONFIG, else nowhere)"
    )
    made.add_argument(
        "--operations-topic", metavar="projects/P/topics/T", help="topic of the log sink (default: no sink)"
    )
    for each in fields(pace):
        made.add_argument(f"--{each.name.replace('_', '-')}-seconds", type=float, default=each.default)
    return made


def kubeconfig(arguments: argparse.Namespace) -> Path | None:
    """Return the kubeconfig of the cluster in which Nodes are made; None: they are made nowhere."""
    path = arguments.kubeconfig or os.environ.get("KUBECONFIG")
    return Path(path) if path else None


def paced(pace: type[P], arguments: argparse.Namespace) -> P:
    """Return the durations that the arguments give."""
    return pace(**{each.name: getattr(arguments, f"{each.name}_seconds") for each in fields(pace)})  # type: ignore[arg-type]


def run(arguments: argparse.Namespace, begin: Begin) -> None:
    """Serve until a signal; print the addresses on one line."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with ExitStack() as closing:
        outside = Outside(
            clock=time.time,  # noqa: TID251 - the only place where the clock is read
            token=lambda: str(uuid.uuid4()),
            publish=sink(arguments.operations_topic, closing),
        )
        print(f"listening on {begin(arguments, outside, closing)}", flush=True)
        while not stop.wait(SIGNAL_SECONDS):
            continue
