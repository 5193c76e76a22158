"""Entry points of the functions: each hands its event through to the door behind it."""

from __future__ import annotations

import os
from functools import cache

import functions_framework
from cloudevents.http import CloudEvent

from tpu_slices.adapters import logs
from tpu_slices.app import handlers, wiring
from tpu_slices.app.settings import Settings
from tpu_slices.ports.deps import Desk, Ports

logs.configure(os.environ.get("GOOGLE_CLOUD_PROJECT", ""))


@cache
def _desk() -> Desk:
    return wiring.build_desk(Settings.from_env(os.environ))


@cache
def _ports() -> Ports:
    return wiring.build_ports(Settings.from_env(os.environ))


@functions_framework.cloud_event
def receive(event: CloudEvent) -> None:
    """Take in a fact that a relay published."""
    handlers.receive_door(_open(event), _desk())


@functions_framework.cloud_event
def reconcile(event: CloudEvent) -> None:
    """Bring slices nearer to what is wanted."""
    handlers.reconcile_door(_open(event), _ports())


@functions_framework.cloud_event
def sweep(event: CloudEvent) -> None:
    """Find what is due and what was left behind."""
    handlers.sweep_door(_open(event), _ports())


def _open(event: CloudEvent) -> handlers.Event:
    return handlers.Event(id=event["id"], source=event["source"], data=event.data)
