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
        found = computed[self.name] if self.name in computed else at(obj, self.path)
        if self.type == "date":
            return age(found, now)
        return str(found).lower() if isinstance(found, bool) else found


def columns(shown: str, wide: str = "") -> tuple[Column, ...]:
    """Return the columns of a list such as `Name, Status=.status.phase, Age`, then those of `-o wide`."""
    known = {"Name": ".metadata.name", "Age": ".metadata.creationTimestamp"}
    texts = [(text.partition("="), wider) for wider, listed in enumerate((shown, wide)) for text in listed.split(", ")]
    return tuple(
        Column(name, path or known.get(name, ""), wider, "date" if name == "Age" else "string")
        for (name, _, path), wider in texts
        if name
    )


def at(obj: Any, path: str) -> Any:
    """Return the value at a JSONPath of fields, indexes and `[?(@.type=="Ready")]`, or None."""
    found = obj if path else None
    for step in _STEP.finditer(path):
        if isinstance(found, list):
            by, index = step["by"], int(step["index"] or 0)
            rest = [each for each in found if each.get(by) == step["value"]] if by else found[index:]
            found = rest[0] if rest else None
        else:
            name = (step["field"] or step["key"] or "").replace("\\", "")
            found = found.get(name) if isinstance(found, dict) else None
    return found


def age(stamp: str | None, now: datetime, missing: str = "<unknown>") -> str:
    """Return the time since a metav1.Time, about as HumanDuration of k8s.io/apimachinery: 59s, 3m4s, 2h, 5d."""
    if not stamp:
        return missing
    total = max(int((now - datetime.fromisoformat(stamp).astimezone(UTC)).total_seconds()), 0)
    if total < 600:
        return f"{total}s" if total < 120 or not total % 60 else f"{total // 60}m{total % 60}s"
    return f"{total // 60}m" if total < 10800 else f"{total // 3600}h" if total < 172800 else f"{total // 86400}d"


def of_pod(obj: Object, _: datetime) -> Mapping[str, Any]:
    status, statuses = obj["status"], obj["status"].get("containerStatuses", [])
    state = str(status.get("reason") or status.get("phase", "Unknown"))
    if at(obj, '.status.conditions[?(@.type=="PodScheduled")].reason') == "SchedulingGated":
        state = "SchedulingGated"
    for each in reversed(statuses):
        state = at(each, ".state.waiting.reason") or at(each, ".state.terminated.reason") or state
    ending = "deletionTimestamp" in obj["metadata"] and status.get("phase") not in ("Succeeded", "Failed")
    wide = {"IP": ".status.podIP", "Node": ".spec.nodeName", "Nominated Node": ".status.nominatedNodeName"}
    return {
        "Ready": f"{sum(bool(each.get('ready')) for each in statuses)}/{len(obj['spec']['containers'])}",
        "Status": "Terminating" if ending else state,
        "Restarts": str(sum(each.get("restartCount", 0) for each in statuses)),
        **{name: at(obj, path) or "<none>" for name, path in wide.items()},
    }


def of_data(obj: Object, _: datetime) -> Mapping[str, Any]:
    return {"Data": len(obj.get("data", {})) + len(obj.get("binaryData", {}))}


def of_node(obj: Object, _: datetime) -> Mapping[str, Any]:
    ready = at(obj, '.status.conditions[?(@.type=="Ready")].status')
    state = {None: "Unknown", "True": "Ready"}.get(ready, "NotReady")
    return {
        "Status": state + (",SchedulingDisabled" if obj["spec"].get("unschedulable") else ""),
        "Roles": "<none>",
        "Version": at(obj, ".status.nodeInfo.kubeletVersion") or "",
        "Internal-IP": at(obj, '.status.addresses[?(@.type=="InternalIP")].address') or "<none>",
    }


def of_event(obj: Object, now: datetime) -> Mapping[str, Any]:
    about, series = obj["involvedObject"], obj.get("series") or {}
    last = series.get("lastObservedTime") or obj.get("lastTimestamp") or obj.get("eventTime")
    name, count = f"{about.get('kind', '').lower()}/{about.get('name', '')}", series.get("count") or obj.get("count")
    return {"Last Seen": age(last, now), "Object": name, "Source": obj["reportingComponent"], "Count": count or 1}


def of_job(obj: Object, now: datetime) -> Mapping[str, Any]:
    spec, status = obj["spec"], obj.get("status", {})
    end, states = status.get("completionTime"), ("Complete", "Failed", "Suspended", "FailureTarget")
    true = {each["type"] for each in status.get("conditions", []) if each["status"] == "True"}
    return {
        "Status": next((state for state in states if state in true), "Running"),
        "Completions": f"{status.get('succeeded', 0)}/{spec.get('completions', spec['parallelism'])}",
        "Duration": age(status.get("startTime"), datetime.fromisoformat(end) if end else now, missing=""),
        "Images": ",".join(container["image"] for container in spec["template"]["spec"]["containers"]),
    }
