from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long things take. Times in objects are whole seconds, so what starts at them may be a second shorter."""

    start: timedelta = timedelta(seconds=1)
    """From binding to Running; represents images, volumes and network."""

    run: timedelta = timedelta(seconds=10)
    """From when all pods of their Job run to the end, for pods without the annotation `local.kubelet/run-seconds`."""

    termination: timedelta = timedelta(seconds=1)
    """From a running pod's deletion to its end: the part of the grace period that it uses."""

    lease: timedelta = timedelta(seconds=10)
    """Between two renewals of a node's Lease (kubelet's nodeLeaseDurationSeconds of 40 s, divided by four)."""
