"""The stack with sample parts in place of the provisioner's own; run as a module it stays up until it is ended."""

import signal
import sys
from pathlib import Path

from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

from infra.local.addresses import Addresses
from infra.local.stack import Plan, running

PARTS = Path(__file__).parent / "parts"


def plan(state: Path) -> Plan:
    return Plan(root=PARTS, state=state, sweep_seconds=0.5)
