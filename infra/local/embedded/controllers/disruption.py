"""Disruption of pods by the cluster itself: the condition DisruptionTarget with the reason, then deletion."""

from datetime import datetime

from infra.local.clients.conditions import Condition, is_true, of, with_condition
from infra.local.clients.objects import Object, Objects

TARGET = "DisruptionTarget"


def finished(pod: Object) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def end(objects: Objects, pod: Object, why: Condition, now: datetime, *, fail: bool = False) -> None:
    """Delete a pod with its own grace period, or (`fail`) at once as failed; Jobs may ignore such a failure."""
    metadata = pod["metadata"]
    status = dict(pod["status"])
    if not is_true(pod, TARGET):
        status["conditions"] = with_condition(of(pod), why, now)
    if fail and not finished(pod):
        status["phase"] = "Failed"
    if status != pod["status"]:
        objects.update("pods", pod | {"status": status}, status=True)
    objects.delete("pods", metadata["namespace"], metadata["name"], grace_seconds=0 if fail else None)
