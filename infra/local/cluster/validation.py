"""Validation of core kinds, and of the metadata of any kind (pure).

Facts and error messages: pkg/apis/core/validation, pkg/apis/batch/validation, apimachinery's api/validation.
Only what can be wrong in this project's objects is checked; fields and their types are checked in `schema`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from infra.local.cluster.defaults import containers
from infra.local.cluster.errors import FieldError
from infra.local.cluster.names import (
    annotation_errors,
    invalid_value,
    is_dns_1035_label,
    is_dns_label,
    is_dns_subdomain,
    is_qualified_name,
    label_errors,
)
from infra.local.cluster.rbac_validation import is_path_segment
from infra.local.cluster.resources import Resource

_NAME_RULES: Mapping[str, Callable[[str], list[str]]] = {
    "namespaces": is_dns_label,
    "services": is_dns_1035_label,
    "clusterroles": is_path_segment,
    "clusterrolebindings": is_path_segment,
    "roles": is_path_segment,
    "rolebindings": is_path_segment,
}
_TOLERATION_EFFECTS = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")
POD_UPDATE = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)


def required(path: str, why: str = "") -> FieldError:
    return FieldError(path, "FieldValueRequired", f"Required value: {why}" if why else "Required value")


def metadata_errors(resource: Resource, metadata: dict[str, Any]) -> list[FieldError]:
    """Return the errors of names, labels, annotations, finalizers and owner references."""
    name, generated = metadata.get("name", ""), metadata.get("generateName", "")
    found: list[FieldError] = []
    if not name:
        found.append(required("metadata.name", "name or generateName is required"))
    else:
        rule = _NAME_RULES.get(resource.plural, is_dns_subdomain)
        path = "metadata.generateName" if generated and name.startswith(generated[:58]) else "metadata.name"
        found += [invalid_value(path, name, why) for why in rule(name)]
    found += label_errors(metadata.get("labels", {}), "metadata.labels")
    found += annotation_errors(metadata.get("annotations", {}), "metadata.annotations")
    for index, finalizer in enumerate(metadata.get("finalizers", [])):
        path = f"metadata.finalizers[{index}]"
        found += [invalid_value(path, finalizer, why) for why in is_qualified_name(finalizer)]
    references = metadata.get("ownerReferences", [])
    if sum(1 for reference in references if reference.get("controller")) > 1:
        why = "Only one reference can have Controller set to true"
        found.append(invalid_value("metadata.ownerReferences", "object", why))
    return found


def finalizer_errors(old: dict[str, Any], new: dict[str, Any]) -> Iterator[FieldError]:
    """Yield the error of new finalizers on an object that is being deleted."""
    added = [f for f in new.get("finalizers", []) if f not in old.get("finalizers", [])]
    if "deletionTimestamp" in old and added:
        listed = ", ".join(f'"{finalizer}"' for finalizer in added)
        why = (
            f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
        )
        yield FieldError("metadata.finalizers", "FieldValueForbidden", f"Forbidden: {why}")


def pod_spec_errors(spec: dict[str, Any], path: str) -> Iterator[FieldError]:
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    names = [container["name"] for container in containers(spec) if "name" in container]
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind, [])):
            yield from _container_errors(container, f"{path}.{kind}[{index}]")
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield FieldError(f"{path}.containers", "FieldValueDuplicate", f'Duplicate value: "{name}"')
    yield from label_errors(spec.get("nodeSelector", {}), f"{path}.nodeSelector")
    for index, toleration in enumerate(spec.get("tolerations", [])):
        yield from _toleration_errors(toleration, f"{path}.tolerations[{index}]")


def _container_errors(container: dict[str, Any], path: str) -> Iterator[FieldError]:
    if not container.get("name"):
        yield required(f"{path}.name")
    else:
        yield from (invalid_value(f"{path}.name", container["name"], w) for w in is_dns_label(container["name"]))
    if not container.get("image"):
        yield required(f"{path}.image")
    resources = container.get("resources", {})
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for name, wanted in requests.items():
        # Extended resources cannot be overcommitted: ValidateResourceRequirements.
        if "/" in name and name not in limits:
            yield required(f"{path}.resources.limits", "Limit must be set for non overcommitable resources")
        elif "/" in name and limits[name] != wanted:
            why = f"must be equal to {name} limit of {limits[name]}"
            yield invalid_value(f"{path}.resources.requests", wanted, why)


def _toleration_errors(toleration: dict[str, Any], path: str) -> Iterator[FieldError]:
    operator = toleration.get("operator", "Equal")
    if operator not in ("Equal", "Exists"):
        message = f'Unsupported value: "{operator}": supported values: "Equal", "Exists"'
        yield FieldError(f"{path}.operator", "FieldValueNotSupported", message)
    if operator == "Exists" and toleration.get("value"):
        yield invalid_value(f"{path}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
    if not toleration.get("key") and operator != "Exists":
        yield invalid_value(
            f"{path}.operator",
            operator,
            'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        )
    effect = toleration.get("effect", "")
    if effect not in _TOLERATION_EFFECTS:
        listed = ", ".join(f'"{one}"' for one in sorted(_TOLERATION_EFFECTS[1:]))
        message = f'Unsupported value: "{effect}": supported values: {listed}'
        yield FieldError(f"{path}.effect", "FieldValueNotSupported", message)


def _pod(pod: dict[str, Any]) -> Iterator[FieldError]:
    yield from pod_spec_errors(pod["spec"], "spec")
    policy = pod["spec"]["restartPolicy"]
    if policy not in ("Always", "OnFailure", "Never"):
        message = f'Unsupported value: "{policy}": supported values: "Always", "OnFailure", "Never"'
        yield FieldError("spec.restartPolicy", "FieldValueNotSupported", message)


def _job(job: dict[str, Any]) -> Iterator[FieldError]:
    spec = job["spec"]
    for key in ("parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished"):
        if spec.get(key, 0) < 0:
            yield invalid_value(f"spec.{key}", spec[key], "must be greater than or equal to 0")
    if spec["completionMode"] == "Indexed":
        if "completions" not in spec:
            yield required("spec.completions", "when completion mode is Indexed")
        # The pods' host names are <job>-<index>.
        host = f"{job['metadata']['name']}-{max(spec.get('completions', 1) - 1, 0)}"
        yield from (invalid_value("metadata.name", job["metadata"]["name"], w) for w in is_dns_label(host))
    elif spec["completionMode"] != "NonIndexed":
        message = f'Unsupported value: "{spec["completionMode"]}": supported values: "Indexed", "NonIndexed"'
        yield FieldError("spec.completionMode", "FieldValueNotSupported", message)
    template = spec["template"]
    yield from label_errors(template.get("metadata", {}).get("labels", {}), "spec.template.labels")
    yield from pod_spec_errors(template["spec"], "spec.template.spec")
    policy = template["spec"]["restartPolicy"]
    if policy not in ("OnFailure", "Never"):
        path, valid = "spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"'
        if policy == "Always":
            yield required(path, valid)
        else:
            message = f'Unsupported value: "{policy}": supported values: "OnFailure", "Never"'
            yield FieldError(path, "FieldValueNotSupported", message)


def _event(event: dict[str, Any]) -> Iterator[FieldError]:
    namespace = event["metadata"]["namespace"]
    involved = event.get("involvedObject", {}).get("namespace", "")
    allowed = {"default", "kube-system"} if event.get("eventTime") else {"default"}
    if (not involved and namespace not in allowed) or (involved and involved != namespace):
        yield invalid_value("involvedObject.namespace", involved, "does not match event.namespace")
    if not event.get("eventTime"):
        return
    for key, path in (
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
        ("action", "action"),
        ("reason", "reason"),
    ):
        if not event.get(key):
            yield required(path)
        elif len(event[key]) > 128:
            yield invalid_value(path, "", "can have at most 128 characters")
    if len(event.get("message", "")) > 1024:
        yield invalid_value("message", "", "can have at most 1024 characters")


def _node(node: dict[str, Any]) -> Iterator[FieldError]:
    for index, taint in enumerate(node["spec"].get("taints", [])):
        path = f"spec.taints[{index}]"
        yield from (invalid_value(f"{path}.key", taint["key"], why) for why in is_qualified_name(taint["key"]))
        if taint["effect"] not in _TOLERATION_EFFECTS[1:]:
            listed = ", ".join(f'"{one}"' for one in sorted(_TOLERATION_EFFECTS[1:]))
            message = f'Unsupported value: "{taint["effect"]}": supported values: {listed}'
            yield FieldError(f"{path}.effect", "FieldValueNotSupported", message)


def _nothing(_: dict[str, Any]) -> Iterable[FieldError]:
    return ()


OBJECT_RULES: Mapping[str, Callable[[dict[str, Any]], Iterable[FieldError]]] = MappingProxyType(
    {
        "namespaces": _nothing,
        "nodes": _node,
        "pods": _pod,
        "services": _nothing,
        "events": _event,
        "jobs": _job,
    }
)
"""The validation of an object by itself, by plural name."""


def pod_update_errors(old: dict[str, Any], new: dict[str, Any]) -> Iterator[FieldError]:
    """Yield the errors of an update of immutable fields in a pod's spec. A Binding may set the first node name."""
    before, after = old["spec"], new["spec"]
    kept = after.get("tolerations", [])
    if any(toleration not in kept for toleration in before.get("tolerations", [])):
        yield FieldError(
            "spec.tolerations",
            "FieldValueForbidden",
            "Forbidden: existing toleration can not be modified except its tolerationSeconds",
        )
    gates = before.get("schedulingGates", [])
    if any(gate not in gates for gate in after.get("schedulingGates", [])):
        yield FieldError(
            "spec.schedulingGates",
            "FieldValueForbidden",
            "Forbidden: only deletion is allowed, but found new scheduling gates",
        )
    if _fixed(before, before) != _fixed(after, before):
        yield FieldError("spec", "FieldValueForbidden", POD_UPDATE)


def _fixed(spec: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """Return the immutable part of the spec."""
    free = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    if not old.get("nodeName"):
        free.add("nodeName")
    if old.get("schedulingGates"):
        free.add("nodeSelector")  # a gated pod's node selector may be narrowed: KEP-3838
    fixed = {key: value for key, value in spec.items() if key not in free}
    for kind in ("containers", "initContainers"):
        if kind in fixed:
            fixed[kind] = [{k: v for k, v in c.items() if k != "image"} for c in fixed[kind]]
    return fixed


def job_update_errors(old: dict[str, Any], new: dict[str, Any]) -> Iterator[FieldError]:
    """Yield the errors of an update of immutable fields; a suspended Job's template is mutable where Kueue needs it."""
    before, after = old["spec"], new["spec"]
    for key in ("completions", "selector", "completionMode", "managedBy"):
        scales = key == "completions" and after.get("completionMode") == "Indexed"
        elastic = scales and after.get("completions") == after.get("parallelism")
        if before.get(key) != after.get(key) and not elastic:
            yield invalid_value(f"spec.{key}", after.get(key, ""), "field is immutable")
    open_template = before.get("suspend", False) and "startTime" not in old.get("status", {})
    same = before["template"] == after["template"]
    if open_template:
        same = _closed_template(before["template"]) == _closed_template(after["template"])
    if not same:
        yield invalid_value("spec.template", "object", "field is immutable")


def _closed_template(template: dict[str, Any]) -> dict[str, Any]:
    metadata = template.get("metadata", {})
    mutable = ("nodeSelector", "tolerations", "schedulingGates", "affinity")
    return {
        "metadata": {k: v for k, v in metadata.items() if k not in ("labels", "annotations")},
        "spec": {k: v for k, v in template["spec"].items() if k not in mutable},
    }
