"""How long the controllers wait."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    scheduling_backoff: timedelta = timedelta(seconds=1)
    """Minimum interval at which the scheduler says anew why a pod does not fit. A pod that fits is bound at once."""

    pod_backoff: timedelta = timedelta(seconds=10)
    """From a pod's failure to its replacement by the Job. Kubernetes doubles its 10 s each time; this one does not."""

    creation_backoff: timedelta = timedelta(seconds=1)
    """From a pod that is refused to the next attempt."""

    node_grace: timedelta = timedelta(seconds=40)
    """Without a sign of life of its kubelet, after which a node is lost (--node-monitor-grace-period)."""

    event_life: timedelta = timedelta(hours=1)
    """How long an Event is kept (--event-ttl)."""
