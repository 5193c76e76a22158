"""The stack with sample parts instead of the provisioner's own; run as a module, it runs until it is terminated.

`python -m tests.local.stack.sample STATE` prints `up` when everything is ready.
"""

import signal
import sys
from pathlib import Path

import pytest
from google.cloud import firestore

from infra.local.addresses import Addresses
from infra.local.plan import Plan
from infra.local.stack import running

PARTS = Path(__file__).parent / "parts"


def plan(state: Path) -> Plan:
    return Plan(root=PARTS, state=state, sweep_seconds=0.5)


def database(addresses: Addresses) -> firestore.Client:
    """Return a client. It reads the emulator's address from the environment, and only when it is constructed."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FIRESTORE_EMULATOR_HOST", addresses.firestore)
        return firestore.Client(project=addresses.project)


def seed(addresses: Addresses) -> None:
    """Write the settings without which the sample relay refuses to start."""
    database(addresses).document(f"clusters/{addresses.cluster_id}").set({"settings": "sample"})


def main(state: Path) -> None:
    with running(plan(state), seed):
        sys.stdout.write("up\n")
        sys.stdout.flush()
        signal.pause()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
