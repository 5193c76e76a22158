"""A controller as a program of the local stack."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tpu_standins.controllers.catalogue import Controller, built
from tpu_standins.controllers.installing import manifests_of
from tpu_standins.controllers.manifests import HOST, Json, Place, questions
from tpu_standins.patience import ATTEMPT_SECONDS, PATIENCE_SECONDS
from tpu_standins.ports import free_ports
from tpu_standins.processes import Asked, Program

_SELDOM_COLLECTED = {"GOGC": "200"}


def program(
    controller: Controller,
    kubeconfig: Path,
    state: Path,
    environment: Mapping[str, str],
    configuration: Path | None = None,
) -> Program:
    """Return the program that installs a controller and runs it; it is ready when its webhooks are served.

    `kubeconfig` is an administrator's; a folder in `state` is for what it reads; `environment` has what Python needs;
    `configuration` is read instead of the project's. If it is started again, its ports are the same: the API server
    calls its webhooks where it did.
    """
    webhook_port, health_port = free_ports(2)
    place = Place(folder=state / controller.part, webhook_port=webhook_port, health_port=health_port)
    asked = questions(manifests_of(built(controller, os.environ)))
    return Program(
        name=controller.part,
        command=(
            *(sys.executable, "-m", "tpu_standins.controllers", controller.name),
            *("--kubeconfig", str(kubeconfig), "--folder", str(place.folder)),
            *("--webhook-port", str(webhook_port), "--health-port", str(health_port)),
            *(("--configuration", str(configuration)) if configuration else ()),
        ),
        ready=Asked(is_ready(place, asked)),
        folder=Path(__file__).parents[2],
        environment={**environment, **_SELDOM_COLLECTED},
        patience_seconds=PATIENCE_SECONDS,
    )


def is_ready(place: Place, asked: Mapping[str, Json]) -> Callable[[], bool]:
    """Return the question whether a controller says that it is ready, and each webhook is served; `asked`: by path.

    A controller is ready once it listens: it registers webhooks a moment later, and answers 404 until then.
    """

    def healthy() -> bool:
        said = _status(http.client.HTTPConnection(HOST, place.health_port, timeout=ATTEMPT_SECONDS), "GET", "/readyz")
        return said == http.client.OK

    def served(path: str) -> bool:
        trust = ssl.create_default_context(cafile=place.authority)
        connection = http.client.HTTPSConnection(HOST, place.webhook_port, timeout=ATTEMPT_SECONDS, context=trust)
        return _status(connection, "POST", path, json.dumps(asked[path])) not in {None, http.client.NOT_FOUND}

    return lambda: healthy() and all(map(served, asked))


def _status(connection: http.client.HTTPConnection, method: str, path: str, body: str | None = None) -> int | None:
    """Return the status with which a path is answered; None: nobody answers."""
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
