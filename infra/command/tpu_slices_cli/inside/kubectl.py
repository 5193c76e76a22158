"""Runs kubectl: with its user's credentials, and the current context of the kubeconfig unless one is named."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from tpu_slices.ports.errors import Permanent, Temporary

Json = Mapping[str, Any]
_SECONDS = 60


class Refused(Permanent):
    """What kubectl wrote as it failed."""


def items(context: str | None, *arguments: str) -> Iterator[Json]:
    """Yield the objects that `kubectl get` finds; Refused: it fails."""
    yield from json.loads(run(context, "get", *arguments, "--output", "json"))["items"]


def run(context: str | None, *arguments: str) -> str:
    """Return what kubectl writes; Refused: it fails; Temporary: it does not answer; Permanent: it is not there."""
    command = ["kubectl", *(("--context", context) if context else ()), *arguments]
    try:
        said = subprocess.run(  # noqa: S603 - no shell, and what the user says is an argument
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except FileNotFoundError as missing:
        raise Permanent("kubectl is not there, by which this reaches the cluster: install kubectl") from missing
    except subprocess.TimeoutExpired as late:
        raise Temporary(f"kubectl did not answer within {_SECONDS} s: {' '.join(command)}") from late
    if said.returncode:
        raise Refused(said.stderr)
    return said.stdout
