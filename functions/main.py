"""Entry points of the functions: each passes its event to its handler."""

from __future__ import annotations

import os
from functools import cache

import functions_framework
from cloudevents.http import CloudEvent
from flask import abort

from tpu_slices.adapters import logs
from tpu_slices.app import handlers, notifying, wiring
from tpu_slices.app.settings import Settings
from tpu_slices.ports.deps import IntakeDeps, NotifyDeps, ReconcileDeps
from tpu_slices.ports.errors import Temporary

logs.configure(os.environ.get("GOOGLE_CLOUD_PROJECT", ""), version=os.environ.get("VERSION", ""))


@cache
def _intake_deps() -> IntakeDeps:
    return wiring.build_intake_deps(Settings.from_env(os.environ))


@cache
def _reconcile_deps() -> ReconcileDeps:
    return wiring.build_reconcile_deps(Settings.from_env(os.environ))


@cache
def _notify_deps() -> NotifyDeps:
    return wiring.build_notify_deps(Settings.from_env(os.environ))


@functions_framework.cloud_event
def receive(event: CloudEvent) -> None:
    """Handle a fact that a relay published."""
    handlers.handle_receive(_open(event), _intake_deps())


@functions_framework.cloud_event
def reconcile(event: CloudEvent) -> None:
    """Reconcile the slices of a request, or the one whose node pool operation has ended."""
    handlers.handle_reconcile(_open(event), _reconcile_deps())


@functions_framework.cloud_event
def sweep(event: CloudEvent) -> None:
    """Request reconciliation of whatever is due in a cluster, and find what was left behind."""
    handlers.handle_sweep(_open(event), _reconcile_deps())


@functions_framework.cloud_event
def notify(event: CloudEvent) -> None:
    """Deliver a notification; answer 429 if Pub/Sub is to deliver it again: a target that is down is no error here."""
    try:
        notifying.handle_notify(_open(event), _notify_deps())
    except Temporary:
        abort(429)


def _open(event: CloudEvent) -> handlers.Event:
    return handlers.Event(id=str(event["id"]), source=event["source"], data=event.data)
