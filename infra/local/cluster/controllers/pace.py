from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Durations in the local cluster.

    Times in objects are whole seconds (metav1.Time), so durations that start at them may be up to a second short.
    """

    gather: timedelta = timedelta(milliseconds=10)
    """How long changes are gathered before the controllers run again."""

    scheduling_backoff: timedelta = timedelta(seconds=1)
    """Minimum interval at which the scheduler updates why a pod does not fit. A pod that fits is bound at once."""

    pod_start: timedelta = timedelta(seconds=1)
    """From binding to Running; represents images, volumes and network."""

    pod_run: timedelta = timedelta(seconds=10)
    """From Running to the end, for pods without the annotation `local.kubelet/run-seconds`."""

    pod_termination: timedelta = timedelta(seconds=1)
    """From a running pod's deletion to its end: the part of the grace period that it uses."""

    toleration: float = 0.1
    """Factor applied to tolerationSeconds of NoExecute taints: half a minute instead of the usual five."""

    sweep: timedelta = timedelta(minutes=1)
    """Interval at which outdated events and finished pods are removed."""

    event_life: timedelta = timedelta(hours=1)
    """How long an event is kept after its last occurrence."""

    finished_pods: int = 12_500
    """How many finished pods are kept, regardless of age."""

    retry: timedelta = timedelta(seconds=1)
    """Delay after which a controller runs again after an unexpected error."""

    pod_backoff: timedelta = timedelta(seconds=10)
    """From a pod's failure to its replacement by the Job. Kubernetes doubles its 10 s each time; this one does not."""
