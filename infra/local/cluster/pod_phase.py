"""STATUS, READY and RESTARTS of a pod, as `kubectl get pods` shows them (pure).

Facts: printPod in pkg/printers/internalversion/printers.go.
"""

from typing import Any


def readiness(pod: dict[str, Any]) -> tuple[int, int]:
    """Return the number of ready containers, and of all containers."""
    ready = sum(1 for c in _statuses(pod) if c.get("ready") and "running" in c.get("state", {}))
    return ready, len(pod["spec"].get("containers", []))


def restarts(pod: dict[str, Any]) -> int:
    return sum(c.get("restartCount", 0) for c in _statuses(pod))


def summary(pod: dict[str, Any]) -> str:
    """Return the STATUS of a pod: its phase, or a more specific reason."""
    status = pod.get("status", {})
    reason = status.get("reason") or status.get("phase", "Unknown")
    conditions = {c["type"]: c for c in status.get("conditions", [])}
    if conditions.get("PodScheduled", {}).get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    reason = _containers_reason(pod, conditions) or reason
    if "deletionTimestamp" in pod["metadata"]:
        return "Unknown" if status.get("reason") == "NodeLost" else _terminating(status)
    return str(reason)


def _terminating(status: dict[str, Any]) -> str:
    """Return the STATUS of a pod being deleted: a finished one keeps its outcome."""
    outcomes = {"Succeeded": "Completed", "Failed": "Error"}
    return outcomes.get(status.get("phase", ""), "Terminating")


def _containers_reason(pod: dict[str, Any], conditions: dict[str, dict[str, Any]]) -> str:
    """Return the reason of the first container that is waiting or terminated."""
    reason, running = "", False
    for container in reversed(_statuses(pod)):
        state = container.get("state", {})
        waiting, ended = state.get("waiting", {}), state.get("terminated", {})
        if waiting.get("reason"):
            reason = waiting["reason"]
        elif "terminated" in state:
            reason = ended.get("reason") or _exit(ended)
        elif "running" in state and container.get("ready"):
            running = True
    if reason == "Completed" and running:
        return "Running" if conditions.get("Ready", {}).get("status") == "True" else "NotReady"
    return reason


def _exit(ended: dict[str, Any]) -> str:
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _statuses(pod: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pod.get("status", {}).get("containerStatuses", [])
    return found
