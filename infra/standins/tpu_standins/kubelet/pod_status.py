"""The status that a kubelet writes when the containers of a pod start or end (pure)."""

from datetime import datetime
from hashlib import sha256

from tpu_standins.clients.conditions import Condition, of, with_condition
from tpu_standins.clients.objects import Object, timestamp


def started(pod: Object, node: Object, now: datetime) -> Object:
    """Return the status in which all containers are running and ready."""
    address = _address(pod)
    running = {"running": {"startedAt": timestamp(now)}}
    status: Object = pod["status"] | {
        "phase": "Running",
        "startTime": timestamp(now),
        "podIP": address,
        "podIPs": [{"ip": address}],
        "containerStatuses": [
            _container_status(container, running, ready=True) for container in pod["spec"]["containers"]
        ],
        "conditions": _with_all(pod, ("Initialized", "ContainersReady", "Ready"), now),
    }
    host = [a["address"] for a in node.get("status", {}).get("addresses") or () if a["type"] == "InternalIP"]
    return status | ({"hostIP": host[0], "hostIPs": [{"ip": host[0]}]} if host else {})


def ended(pod: Object, now: datetime, exit_code: int) -> Object:
    """Return the status in which all containers, if any had started, have ended with this exit code."""
    succeeded = exit_code == 0
    reason = "PodCompleted" if succeeded else "PodFailed"
    conditions = of(pod)
    for kind in ("ContainersReady", "Ready"):
        conditions = with_condition(conditions, Condition(type=kind, status=False, reason=reason), now)
    status: Object = pod["status"] | {
        "phase": "Succeeded" if succeeded else "Failed",
        "conditions": conditions,
        "containerStatuses": [
            known | {"ready": False, "started": False, "state": _terminated(known, now, exit_code)}
            for known in pod["status"].get("containerStatuses") or ()
        ],
    }
    return status


def rejected(pod: Object, reason: str, message: str) -> Object:
    """Return the status of a pod that the kubelet refuses to start."""
    status: Object = pod["status"] | {"phase": "Failed", "reason": reason, "message": message}
    return status


def _with_all(pod: Object, kinds: tuple[str, ...], now: datetime) -> list[Object]:
    conditions = of(pod)
    for kind in kinds:
        conditions = with_condition(conditions, Condition(type=kind), now)
    return conditions


def _container_status(container: Object, state: Object, *, ready: bool) -> Object:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": ready,
        "restartCount": 0,
        "state": state,
    }


def _terminated(known: Object, now: datetime, exit_code: int) -> Object:
    began = known["state"].get("running", {}).get("startedAt")
    end: Object = {
        "exitCode": exit_code,
        "reason": "Completed" if exit_code == 0 else "Error",
        "finishedAt": timestamp(now),
    }
    return {"terminated": end | ({"startedAt": began} if began else {})}


def _address(pod: Object) -> str:
    """Return an address in 10.0.0.0/8 that is stable for the pod."""
    digest = sha256(pod["metadata"]["uid"].encode()).digest()
    return ".".join(str(part) for part in (10, *digest[:3]))
