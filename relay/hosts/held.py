"""The pods that the scheduling gate of gangs holds, by their workloads."""

from __future__ import annotations

from collections.abc import Collection

from relay.objects import Follower, Leader, WorkloadName


class HeldPods:
    """What was last seen of each. There is no entry for what has none: few workloads have some at a time."""

    def __init__(self) -> None:
        self._of: dict[WorkloadName, dict[str, Leader | Follower]] = {}

    def saw(self, pod: Leader | Follower) -> None:
        """Record a pod as it is now."""
        if pod.gated and pod.node is None and not pod.status.departing:
            self._of.setdefault(pod.workload, {})[pod.pod_uid] = pod
        else:
            self.lost(pod)

    def lost(self, pod: Leader | Follower) -> None:
        """Record that a pod is gone, or not held any more."""
        held = self._of.get(pod.workload, {})
        held.pop(pod.pod_uid, None)
        if not held:
            self._of.pop(pod.workload, None)

    def of(self, name: WorkloadName) -> Collection[Leader | Follower]:
        """Return the pods of a workload that are held."""
        return self._of.get(name, {}).values()

    @property
    def workloads(self) -> Collection[WorkloadName]:
        """The workloads of which pods are held."""
        return self._of.keys()
