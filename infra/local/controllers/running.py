"""A controller as a program of the local stack."""

from __future__ import annotations

import http.client
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from infra.local.controllers.catalogue import Controller
from infra.local.controllers.manifests import HOST
from infra.local.patience import ATTEMPT_SECONDS, PATIENCE_SECONDS
from infra.local.ports import free_ports
from infra.local.processes import Asked, Program

_SELDOM_COLLECTED = {"GOGC": "200"}


def program(
    controller: Controller, name: str, kubeconfig: Path, folder: Path, environment: Mapping[str, str]
) -> Program:
    """Return the program that installs a controller and runs it; it is ready when its webhooks are served.

    `kubeconfig` is an administrator's; `environment` has what Python needs. If it is started again, its ports are the
    same, and its webhooks are those that the API server knows.
    """
    webhook_port, health_port = free_ports(2)
    return Program(
        name=name,
        command=(
            *(sys.executable, "-m", "infra.local.controllers", controller.name),
            *("--kubeconfig", str(kubeconfig), "--folder", str(folder)),
            *("--webhook-port", str(webhook_port), "--health-port", str(health_port)),
        ),
        ready=Asked(_is_ready(health_port)),
        folder=Path(__file__).parents[3],
        environment={**environment, **_SELDOM_COLLECTED},
        patience_seconds=PATIENCE_SECONDS,
    )


def _is_ready(port: int) -> Callable[[], bool]:
    def asked() -> bool:
        connection = http.client.HTTPConnection(HOST, port, timeout=ATTEMPT_SECONDS)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    return asked
