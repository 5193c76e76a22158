"""Entry points of the functions: each hands its event through to the door behind it."""

from __future__ import annotations

import os
from functools import cache

import functions_framework
from cloudevents.http import CloudEvent

from shared import doors, wiring
from shared.adapters import logs
from shared.ports import Desk, Ports
from shared.settings import Settings

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
    doors.receive_door(_open(event), _desk())


@functions_framework.cloud_event
def reconcile(event: CloudEvent) -> None:
    """Bring slices nearer to what is wanted."""
    doors.reconcile_door(_open(event), _ports())


@functions_framework.cloud_event
def sweep(event: CloudEvent) -> None:
    """Find what is due and what was left behind."""
    doors.sweep_door(_open(event), _ports())


def _open(event: CloudEvent) -> doors.Event:
    return doors.Event(id=event["id"], source=event["source"], data=event.data)
