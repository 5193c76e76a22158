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
    found = []
    for priority, listed in enumerate((shown, wide)):
        for name, _, path in (text.partition("=") for text in listed.split(", ") if text):
            found.append(Column(name, path or known.get(name, ""), priority, "date" if name == "Age" else "string"))
    return tuple(found)


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
    """Return the time since a metav1.Time as k8s.io/apimachinery/pkg/util/duration.HumanDuration: 59s, 3m4s, 2h, 5d."""
    if not stamp:
        return missing
    total = max(int((now - datetime.fromisoformat(stamp).astimezone(UTC)).total_seconds()), 0)
    if total < 600:
        return f"{total}s" if total < 120 or not total % 60 else f"{total // 60}m{total % 60}s"
    return f"{total // 60}m" if total < 10800 else f"{total // 3600}h" if total < 172800 else f"{total // 86400}d"


def _condition(obj: Object, kind: str) -> str:
    return str(at(obj, f'.status.conditions[?(@.type=="{kind}")].status') or "")


def of_pod(obj: Object, _: datetime) -> Mapping[str, Any]:
    statuses = obj["status"].get("containerStatuses", [])
    wide = {"IP": ".status.podIP", "Node": ".spec.nodeName", "Nominated Node": ".status.nominatedNodeName"}
    return {
        "Ready": f"{sum(bool(each.get('ready')) for each in statuses)}/{len(obj['spec']['containers'])}",
        "Status": _pod_state(obj),
        "Restarts": str(sum(each.get("restartCount", 0) for each in statuses)),
        "Readiness Gates": "<none>",
        **{name: at(obj, path) or "<none>" for name, path in wide.items()},
    }


def _pod_state(pod: Object) -> str:
    """Return the STATUS of a pod: its phase, or a more specific reason."""
    status = pod["status"]
    state = str(status.get("reason") or status.get("phase", "Unknown"))
    if at(pod, '.status.conditions[?(@.type=="PodScheduled")].reason') == "SchedulingGated":
        state = "SchedulingGated"
    for each in reversed(status.get("containerStatuses", [])):
        state = at(each, ".state.waiting.reason") or at(each, ".state.terminated.reason") or state
    ending = "deletionTimestamp" in pod["metadata"] and status.get("phase") not in ("Succeeded", "Failed")
    return "Terminating" if ending else state


def of_node(obj: Object, _: datetime) -> Mapping[str, Any]:
    state = {"": "Unknown", "True": "Ready"}.get(_condition(obj, "Ready"), "NotReady")
    return {
        "Status": state + (",SchedulingDisabled" if obj["spec"].get("unschedulable") else ""),
        "Roles": "<none>",
        "Version": at(obj, ".status.nodeInfo.kubeletVersion") or "",
        "Internal-IP": at(obj, '.status.addresses[?(@.type=="InternalIP")].address') or "<none>",
    }


def of_event(obj: Object, now: datetime) -> Mapping[str, Any]:
    about, series = obj["involvedObject"], obj.get("series") or {}
    first = obj.get("firstTimestamp") or obj.get("eventTime")
    return {
        "Last Seen": age(series.get("lastObservedTime") or obj.get("lastTimestamp") or first, now),
        "Object": f"{about.get('kind', '').lower()}/{about.get('name', '')}",
        "Source": at(obj, ".source.component") or obj["reportingComponent"],
        "Count": series.get("count") or obj.get("count") or 1,
    }


def of_job(obj: Object, now: datetime) -> Mapping[str, Any]:
    spec, status = obj["spec"], obj.get("status", {})
    end = status.get("completionTime")
    states = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")
    return {
        "Status": next((kind for kind in states if _condition(obj, kind) == "True"), "Running"),
        "Completions": f"{status.get('succeeded', 0)}/{spec.get('completions', spec['parallelism'])}",
        "Duration": age(status.get("startTime"), datetime.fromisoformat(end) if end else now, missing=""),
        "Containers": ",".join(container["name"] for container in spec["template"]["spec"]["containers"]),
        "Images": ",".join(container["image"] for container in spec["template"]["spec"]["containers"]),
    }


def of_counts(obj: Object, _: datetime) -> Mapping[str, Any]:
    return {"Data": len(obj.get("data", {})) + len(obj.get("binaryData", {})), "Secrets": 0}
