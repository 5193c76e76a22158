"""The columns of `kubectl get` (pkg/printers/internalversion/printers.go, additionalPrinterColumns; pure)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]
Computed = Callable[[Object, datetime], Mapping[str, Any]]
"""Returns the cells that are no plain fields, by the name of their column."""

_STEP = re.compile(
    r"""\.(?P<field>(?:[^.\[\\]|\\.)+)|\['(?P<key>[^']*)'\]|\[(?P<index>\d+)\]"""
    r"""|\[\?\(@\.(?P<by>\w+)\s*==\s*["'](?P<value>[^"']*)["']\)\]"""
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the JSONPath of its cells (empty: they are computed). With a priority, only `-o wide` shows it."""

    name: str
    path: str = ""
    priority: int = 0
    type: str = "string"

    def cell(self, obj: Object, computed: Mapping[str, Any], now: datetime) -> Any:
        if self.name in computed:
            return computed[self.name]
        found = at(obj, self.path)
        if self.type == "date":
            return age(found, now)
        return str(found).lower() if isinstance(found, bool) else found


def columns(shown: str, wide: str = "") -> tuple[Column, ...]:
    """Return the columns of a list such as `Name, Status=.status.phase, Age`, then those of `-o wide`."""
    return tuple(
        _column(text, priority) for priority, listed in enumerate((shown, wide)) for text in listed.split(", ") if text
    )


def _column(text: str, priority: int) -> Column:
    name, _, path = text.partition("=")
    known = {"Name": ".metadata.name", "Age": ".metadata.creationTimestamp"}
    return Column(name, path or known.get(name, ""), priority, "date" if name == "Age" else "string")


def at(obj: Any, path: str) -> Any:
    """Return the value at a JSONPath of fields, indexes and `[?(@.type=="Ready")]`, or None."""
    found = obj if path else None
    for step in _STEP.finditer(path):
        if isinstance(found, list):
            index, by = step["index"], step["by"]
            chosen = (item for item in found if by and isinstance(item, dict) and item.get(by) == step["value"])
            found = next(iter(found[int(index) : int(index) + 1]), None) if index else next(chosen, None)
        else:
            name = (step["field"] or step["key"] or "").replace("\\", "")
            found = found.get(name) if isinstance(found, dict) else None
    return found


def age(stamp: str | None, now: datetime, missing: str = "<unknown>") -> str:
    """Return the time since a metav1.Time as people read it."""
    if not stamp:
        return missing
    return human_duration((now - datetime.fromisoformat(stamp).astimezone(UTC)).total_seconds())


def human_duration(seconds: float) -> str:
    """Format as k8s.io/apimachinery/pkg/util/duration.HumanDuration does: 59s, 3m4s, 2h, 5d3h, 2y."""
    total = max(int(seconds), 0)
    minutes, hours, days = total // 60, total // 3600, total // 86400
    if total < 120:
        return f"{total}s"
    if minutes < 10:
        return f"{minutes}m" + (f"{total % 60}s" if total % 60 else "")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h" + (f"{minutes % 60}m" if minutes % 60 else "")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d" + (f"{hours % 24}h" if hours % 24 else "")
    return f"{days}d"


def _condition(obj: Object, kind: str) -> str:
    return str(at(obj, f'.status.conditions[?(@.type=="{kind}")].status') or "")


def of_pod(obj: Object, _: datetime) -> Mapping[str, Any]:
    statuses = obj["status"].get("containerStatuses", [])
    ready = sum(bool(each.get("ready")) for each in statuses)
    wide = {"IP": ".status.podIP", "Node": ".spec.nodeName", "Nominated Node": ".status.nominatedNodeName"}
    return {
        "Ready": f"{ready}/{len(obj['spec']['containers'])}",
        "Status": pod_state(obj),
        "Restarts": str(sum(each.get("restartCount", 0) for each in statuses)),
        "Readiness Gates": "<none>",
        **{name: at(obj, path) or "<none>" for name, path in wide.items()},
    }


def pod_state(pod: Object) -> str:
    """Return the STATUS of a pod: its phase, or a more specific reason."""
    status = pod["status"]
    state = str(status.get("reason") or status.get("phase", "Unknown"))
    if at(pod, '.status.conditions[?(@.type=="PodScheduled")].reason') == "SchedulingGated":
        state = "SchedulingGated"
    for each in reversed(status.get("containerStatuses", [])):
        ended = each.get("state", {}).get("terminated")
        reason = each.get("state", {}).get("waiting", {}).get("reason")
        if ended is not None:
            reason = ended.get("reason") or f"ExitCode:{ended.get('exitCode', 0)}"
        state = reason or state
    if "deletionTimestamp" in pod["metadata"] and status.get("phase") not in ("Succeeded", "Failed"):
        return "Terminating"
    return state


def of_node(obj: Object, _: datetime) -> Mapping[str, Any]:
    state = {"": "Unknown", "True": "Ready"}.get(_condition(obj, "Ready"), "NotReady")
    prefix = "node-role.kubernetes.io/"
    roles = sorted(key.removeprefix(prefix) for key in obj["metadata"].get("labels", {}) if key.startswith(prefix))
    addresses = {each["type"]: each["address"] for each in obj["status"].get("addresses", [])}
    info = obj["status"].get("nodeInfo", {})
    return {
        "Status": state + (",SchedulingDisabled" if obj["spec"].get("unschedulable") else ""),
        "Roles": ",".join(roles) or "<none>",
        "Version": info.get("kubeletVersion", ""),
        "Internal-IP": addresses.get("InternalIP", "<none>"),
        "External-IP": addresses.get("ExternalIP", "<none>"),
        "OS-Image": info.get("osImage") or "<unknown>",
        "Kernel-Version": info.get("kernelVersion") or "<unknown>",
        "Container-Runtime": info.get("containerRuntimeVersion") or "<unknown>",
    }


def of_service(obj: Object, _: datetime) -> Mapping[str, Any]:
    ports = ",".join(f"{port['port']}/{port['protocol']}" for port in obj["spec"].get("ports", []))
    return {"External-IP": "<none>", "Port(s)": ports or "<none>", "Selector": _pairs(obj["spec"].get("selector", {}))}


def _pairs(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "<none>"


def of_event(obj: Object, now: datetime) -> Mapping[str, Any]:
    about, source = obj["involvedObject"], obj.get("source") or {}
    first = obj.get("firstTimestamp") or obj.get("eventTime")
    return {
        "Last Seen": age((obj.get("series") or {}).get("lastObservedTime") or obj.get("lastTimestamp") or first, now),
        "Object": f"{about.get('kind', '').lower()}/{about.get('name', '')}",
        "Source": ", ".join(filter(None, [source.get("component") or obj["reportingComponent"], source.get("host")])),
        "Message": obj.get("message", "").strip(),
        "First Seen": age(first, now),
        "Count": (obj.get("series") or {}).get("count") or obj.get("count") or 1,
    }


def of_job(obj: Object, now: datetime) -> Mapping[str, Any]:
    spec, status = obj["spec"], obj.get("status", {})
    end = status.get("completionTime")
    until = datetime.fromisoformat(end).astimezone(UTC) if end else now
    wanted = spec.get("completions") or (f"1 of {spec['parallelism']}" if spec["parallelism"] > 1 else 1)
    return {
        "Status": _job_state(obj),
        "Completions": f"{status.get('succeeded', 0)}/{wanted}",
        "Duration": age(status.get("startTime"), until, missing=""),
        **of_template(obj, now),
    }


def _job_state(obj: Object) -> str:
    states = ["Complete", "Failed", "Terminating", "Suspended", "FailureTarget", "SuccessCriteriaMet"]
    true = {kind for kind in states if _condition(obj, kind) == "True"}
    true |= {"Terminating"} if "deletionTimestamp" in obj["metadata"] else set()
    return next((kind for kind in states if kind in true), "Running")


def of_template(obj: Object, _: datetime) -> Mapping[str, Any]:
    spec = obj["spec"]
    containers, status = spec["template"]["spec"]["containers"], obj.get("status", {})
    return {
        "Ready": f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        "Containers": ",".join(container["name"] for container in containers),
        "Images": ",".join(container["image"] for container in containers),
        "Selector": _pairs(spec.get("selector", {}).get("matchLabels", {})),
    }


def of_counts(obj: Object, _: datetime) -> Mapping[str, Any]:
    return {"Data": len(obj.get("data", {})) + len(obj.get("binaryData", {})), "Secrets": len(obj.get("secrets", []))}


def nothing_computed(_: Object, __: datetime) -> Mapping[str, Any]:
    return {}
