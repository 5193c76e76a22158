"""The names of what is counted."""

from __future__ import annotations

from collections import Counter

Counts = Counter[str]

READS, WRITES, DELETES = "Firestore reads", "Firestore writes", "Firestore deletes"
RECEIVE, RECONCILE, SWEEP = "calls of receive", "calls of reconcile", "calls of sweep"
UPDATES = "messages to the relay"
MESSAGE_BYTES, BILLED_BYTES = "bytes of all messages", "bytes that Pub/Sub bills"
LINES, LOG_BYTES = "log lines", "bytes of log lines"
GKE_READS, GKE_CHANGES = "GKE calls that read", "GKE calls that change"
COUNTED = (
    *(READS, WRITES, DELETES, RECEIVE, RECONCILE, SWEEP, UPDATES, MESSAGE_BYTES, BILLED_BYTES, LINES, LOG_BYTES),
    *(GKE_READS, GKE_CHANGES),
)
