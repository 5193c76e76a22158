"""The priority of a JobSet's Workload (pure).

Source: pkg/controller/jobframework/reconciler.go (ExtractPriority), pkg/util/priority.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from infra.local.cluster.kueue_api.keys import POD_PRIORITY_CLASS, PRIORITY_CLASS, WORKLOAD_PRIORITY_CLASS
from infra.local.cluster.objects import Object


class MissingClassError(Exception):
    """A JobSet names a class, of this `kind` and `name`, that does not exist."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f'{kind} "{name}" not found')
        self.kind = kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Priorities:
    """Values by name of WorkloadPriorityClasses and of PriorityClasses; `default`: the global default's name."""

    of_workloads: Mapping[str, int]
    of_pods: Mapping[str, int]
    default: str = ""

    @classmethod
    def known(cls, workload_classes: Iterable[Object], pod_classes: Iterable[Object]) -> Self:
        pods = list(pod_classes)
        default = next((one["metadata"]["name"] for one in pods if one.get("globalDefault")), "")
        return cls(of_workloads=_values(workload_classes), of_pods=_values(pods), default=default)

    def of(self, jobset: Object) -> Object:
        """Return the priority fields of a Workload's spec: by the label's class, else by the first pods' with one."""
        named = jobset["metadata"].get("labels", {}).get(PRIORITY_CLASS, "")
        if named:
            return _spec(WORKLOAD_PRIORITY_CLASS, "WorkloadPriorityClass", named, self.of_workloads)
        jobs = (replicated["template"]["spec"]["template"] for replicated in jobset["spec"].get("replicatedJobs", []))
        names = (template["spec"].get("priorityClassName") for template in jobs)
        name = next(filter(None, names), self.default)
        return _spec(POD_PRIORITY_CLASS, "PriorityClass", name, self.of_pods) if name else {"priority": 0}


def _values(classes: Iterable[Object]) -> dict[str, int]:
    return {one["metadata"]["name"]: one["value"] for one in classes}


def _spec(source: str, kind: str, name: str, values: Mapping[str, int]) -> Object:
    if name not in values:
        raise MissingClassError(kind, name)
    return {"priority": values[name], "priorityClassName": name, "priorityClassSource": source}
