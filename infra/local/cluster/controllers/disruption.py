"""Disruption of pods by the cluster itself: the condition DisruptionTarget with the reason, then deletion.

Source: k8s.io/api core/v1 PodConditionType DisruptionTarget, which a Job's podFailurePolicy can ignore.
"""

from datetime import datetime

from infra.local.cluster.controllers.conditions import Condition, is_true, of, with_condition
from infra.local.cluster.objects import Object, Objects

TARGET = "DisruptionTarget"


def end(objects: Objects, pod: Object, why: Condition, now: datetime) -> None:
    """Delete a pod with its own grace period; one that is already being deleted is left alone."""
    metadata = pod["metadata"]
    if "deletionTimestamp" in metadata:
        return
    if not is_true(pod, TARGET):
        status = pod.get("status", {}) | {"conditions": with_condition(of(pod), why, now)}
        objects.update("pods", pod | {"status": status}, status=True)
    objects.delete("pods", metadata["namespace"], metadata["name"])
