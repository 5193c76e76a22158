from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long things take in the local cluster.

    Objects carry whole seconds (metav1.Time), so what is counted from them may be up to a second short.
    """

    gather: timedelta = timedelta(milliseconds=10)
    """How long changes are gathered before the controllers look again."""

    scheduling_backoff: timedelta = timedelta(seconds=1)
    """How often at most the scheduler says anew why a pod does not fit. A pod that fits is bound at once."""

    pod_start: timedelta = timedelta(seconds=1)
    """From binding to Running: images, volumes, network."""

    pod_run: timedelta = timedelta(seconds=10)
    """From Running to the end, for pods without the annotation `local.kubelet/run-seconds`."""

    pod_termination: timedelta = timedelta(seconds=1)
    """From a running pod's deletion to its end: the part of its grace period that is used."""

    toleration: float = 0.1
    """What is left of a pod's tolerationSeconds for a NoExecute taint: half a minute of the usual five."""

    sweep: timedelta = timedelta(minutes=1)
    """How often the cluster looks for what it may forget."""

    event_life: timedelta = timedelta(hours=1)
    """How long an event is kept after it last happened."""

    finished_pods: int = 12_500
    """How many pods that ended are kept, however old."""

    retry: timedelta = timedelta(seconds=1)
    """When a controller whose round failed looks again."""

    pod_backoff: timedelta = timedelta(seconds=10)
    """From a pod's failure to its replacement by the Job. Kubernetes doubles its 10 s each time; this does not."""
