"""The Cloud Functions, each served by functions-framework in its own process, as when deployed."""

import signal
import sys
from pathlib import Path

from infra.local.addresses import Addresses, port_of
from tpu_standins.processes import Listens, Program

AS_DEPLOYED = {"LOG_EXECUTION_ID": "true"}
"""What Cloud Functions sets: functions-framework writes each line of a log anew, with the id of its execution."""


def function(target: str, root: Path, addresses: Addresses) -> Program:
    """Return the program that serves one function of `functions/main.py` under `root`, at its allotted address."""
    port = port_of(addresses.functions[target])
    own = {"PYTHONPATH": str(root), "PYTHONUNBUFFERED": "1", "NOTIFICATION_TARGETS": str(addresses.targets)}
    return Program(
        name=f"function-{target}",
        command=(
            *(sys.executable, "-m", "functions_framework"),
            *("--source", str(root / "functions" / "main.py")),
            *("--target", target),
            *("--signature-type", "cloudevent"),
            *("--host", "127.0.0.1"),
            *("--port", str(port)),
        ),
        ready=Listens(port),
        folder=root,
        environment=addresses.environment() | AS_DEPLOYED | own,
        ending=signal.SIGQUIT,  # with SIGTERM, gunicorn waits for what its threads do
    )
