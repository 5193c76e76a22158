"""Our programs beside a control plane, what tests put into it, and what they wait for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tpu_standins.clients.api import Api
from tpu_standins.clients.errors import ApiError
from tpu_standins.clients.objects import Object
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.processes import Program, Says
from tpu_standins.testing.modules import PYTHON
from tpu_standins.testing.waiting import until

POOL = "cloud.google.com/gke-nodepool"


def program(module: str, kubeconfig: Path) -> Program:
    """Return `python -m tpu_standins.MODULE` for this cluster."""
    return Program(
        name=module,
        command=(sys.executable, "-m", f"tpu_standins.{module}", "--kubeconfig", str(kubeconfig)),
        ready=Says("ready"),
        folder=kubeconfig.parent,
        environment=PYTHON,
        patience_seconds=PATIENCE_SECONDS,
    )


def run(module: str, kubeconfig: Path) -> subprocess.CompletedProcess[str]:
    """Run such a program until it exits by itself."""
    return subprocess.run(
        program(module, kubeconfig).command,
        env=PYTHON,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def add_node(api: Api, name: str, pool: str, **labels: str) -> None:
    """Create a node as the local GKE does: four chips, ready, and known as ours."""
    ours = {POOL: pool, "tpu-slices.local/host": "true", "kubernetes.io/hostname": name}
    api.create("nodes", {"metadata": {"name": name, "labels": ours | labels}})
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "16", "google.com/tpu": "4"}
    set_ready(api, name, "True", capacity=amounts, allocatable=amounts)


def set_ready(api: Api, name: str, ready: str, **status: Any) -> None:
    condition = {"type": "Ready", "status": ready, "reason": "Test", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    api.patch("nodes", None, name, {"status": {"conditions": [condition], **status}}, status=True)


def found(api: Api, plural: str, namespace: str | None, name: str) -> Object | None:
    """Return an object, or None if it is not there."""
    try:
        return api.get(plural, namespace, name)
    except ApiError as error:
        if error.code != 404:
            raise
        return None


def items(api: Api, plural: str, namespace: str) -> list[Object]:
    listed: list[Object] = api.list(plural, namespace)["items"]
    return listed


def waited(condition: Callable[[], object], what: str) -> None:
    until(condition, what)
