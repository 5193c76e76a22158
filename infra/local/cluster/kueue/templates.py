"""What admission adds to a JobSet's pod templates, and their restoration (pure).

Source: pkg/podset/podset.go, pkg/controller/jobframework/reconciler.go (getPodSetsInfoFromStatus).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from infra.local.cluster.kueue_api.keys import CLUSTER_QUEUE, LOCAL_QUEUE, POD_SET, WORKLOAD
from infra.local.cluster.names import is_dns_label
from infra.local.cluster.objects import Object

_METADATA = ("labels", "annotations")
_SPEC = ("nodeSelector", "tolerations", "schedulingGates")


class ConflictError(Exception):
    """A key has two values, so that the JobSet can never be started."""


def started(jobset: Object, workload: Object, flavors: Mapping[str, Object]) -> Object:
    """Return a JobSet, resumed on its Workload's flavors. Raise ConflictError, or KeyError if a flavor is gone."""
    assigned = workload["status"]["admission"]["podSetAssignments"]
    replicated = [
        _with_template(job, _admitted(_template(job), workload, pod_set, flavors))
        for job, pod_set in zip(jobset["spec"]["replicatedJobs"], assigned, strict=True)
    ]
    return jobset | {"spec": jobset["spec"] | {"suspend": False, "replicatedJobs": replicated}}


def stopped(jobset: Object, workload: Object | None) -> Object:
    """Return a JobSet, suspended and with the user's original templates, which its Workload keeps."""
    replicated = jobset["spec"]["replicatedJobs"]
    pod_sets = [] if workload is None else workload["spec"]["podSets"]
    if len(pod_sets) == len(replicated):
        replicated = [
            _with_template(job, _restored(_template(job), pod_set["template"]))
            for job, pod_set in zip(replicated, pod_sets, strict=True)
        ]
    return jobset | {"spec": jobset["spec"] | {"suspend": True, "replicatedJobs": replicated}}


def same_pods(jobset_pods: Sequence[Object], workload: Object) -> bool:
    """Return whether the podSets that a JobSet would have now equal those of its Workload.

    Kueue compares counts, containers and, until admission adds to them, tolerations (pkg/util/equality).
    """
    admitted = "admission" in workload.get("status", {})
    keys = ("containers", "initContainers", *(() if admitted else ("tolerations",)))
    return [_compared(one, keys) for one in jobset_pods] == [
        _compared(one, keys) for one in workload["spec"]["podSets"]
    ]


def _compared(pod_set: Object, keys: Iterable[str]) -> list[Any]:
    return [pod_set["count"], *(pod_set["template"]["spec"].get(key, []) for key in keys)]


def _admitted(template: Object, workload: Object, assigned: Object, flavors: Mapping[str, Object]) -> Object:
    queue = workload["status"]["admission"]["clusterQueue"]
    labels = {POD_SET: assigned["name"], LOCAL_QUEUE: workload["spec"].get("queueName", "")}
    if not is_dns_label(queue):
        labels[CLUSTER_QUEUE] = queue
    specs = [flavors[name]["spec"] for name in sorted(set(assigned.get("flavors", {}).values()))]
    selector = _merged("nodeSelector", *(spec.get("nodeLabels", {}) for spec in specs))
    tolerations = [one for spec in specs for one in spec.get("tolerations", [])]
    metadata, pod = template.get("metadata", {}), template["spec"]
    added = {
        "labels": _merged("labels", metadata.get("labels", {}), labels),
        "annotations": _merged(
            "annotations", metadata.get("annotations", {}), {WORKLOAD: workload["metadata"]["name"]}
        ),
    }
    chosen = {
        "nodeSelector": _merged("nodeSelector", pod.get("nodeSelector", {}), selector),
        "tolerations": _joined(pod.get("tolerations", []), tolerations),
    }
    return template | {"metadata": metadata | added, "spec": pod | {key: one for key, one in chosen.items() if one}}


def _merged(what: str, *maps: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in maps:
        for key, value in one.items():
            if found.setdefault(key, value) != value:
                raise ConflictError(
                    f"invalid admission check PodSetUpdate: conflict for {what}: "
                    f"conflict for key={key}, value1={found[key]}, value2={value}"
                )
    return found


def _joined(first: Iterable[Object], more: Iterable[Object]) -> list[Object]:
    kept = list(first)
    kept += [one for one in more if one not in kept]
    return kept


def _restored(template: Object, original: Object) -> Object:
    metadata = _like(template.get("metadata", {}), original.get("metadata", {}), _METADATA)
    bare = {key: value for key, value in template.items() if key != "metadata"}
    return (
        bare | {"spec": _like(template["spec"], original["spec"], _SPEC)} | ({"metadata": metadata} if metadata else {})
    )


def _like(changed: Object, original: Object, keys: Iterable[str]) -> Object:
    kept = {key: value for key, value in changed.items() if key not in keys}
    return kept | {key: original[key] for key in keys if key in original}


def _template(replicated: Object) -> Object:
    template: Object = replicated["template"]["spec"]["template"]
    return template


def _with_template(replicated: Object, template: Object) -> Object:
    job = replicated["template"]
    return replicated | {"template": job | {"spec": job["spec"] | {"template": template}}}
