"""What pods and Jobs must be, and what of them may change (pkg/apis/{core,batch}/validation; pure)."""

from collections.abc import Iterator

from infra.local.embedded.store.errors import FieldError, choice, prohibited, required, wrong
from infra.local.embedded.store.kinds import Object
from infra.local.embedded.store.names import annotation_errors, is_label, label_errors
from infra.local.embedded.store.quantities import ONE, is_extended, quantity
from infra.local.embedded.store.rules import EFFECTS

_OPEN_IN_PODS = {"activeDeadlineSeconds", "tolerations", "schedulingGates", "terminationGracePeriodSeconds"}
_OPEN_IN_SUSPENDED_JOBS = {"nodeSelector", "tolerations", "schedulingGates", "affinity"}
_ENDS = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}
"""The final conditions of Jobs, each with the one that must come before."""


def _template(spec: Object, path: str) -> Iterator[FieldError]:
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    names: list[str] = []
    for kind in ("initContainers", "containers"):
        for index, each in enumerate(spec.get(kind, [])):
            yield from _container(each, f"{path}.{kind}[{index}]")
            if each.get("name") in names:
                where = f"{path}.{kind}[{index}].name"
                yield FieldError(where, "FieldValueDuplicate", f'Duplicate value: "{each["name"]}"')
            names.append(each.get("name", ""))
    yield from label_errors(spec.get("nodeSelector", {}), f"{path}.nodeSelector")
    for index, toleration in enumerate(spec.get("tolerations", [])):
        where, operator = f"{path}.tolerations[{index}]", toleration.get("operator", "Equal")
        yield from choice(f"{where}.operator", operator, ("Equal", "Exists"))
        if operator == "Exists" and toleration.get("value"):
            yield wrong(f"{where}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
        if not toleration.get("key") and operator != "Exists":
            yield wrong(f"{where}.operator", operator, "operator must be Exists when `key` is empty")
        yield from choice(f"{where}.effect", toleration.get("effect") or EFFECTS[0], EFFECTS)


def _container(container: Object, path: str) -> Iterator[FieldError]:
    yield from (required(f"{path}.{key}") for key in ("name", "image") if not container.get(key))
    name, resources = container.get("name"), container.get("resources", {})
    yield from (wrong(f"{path}.name", name, why) for why in (is_label(name) if name else ()))
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for of, listed in (("limits", limits), ("requests", requests)):
        for resource, text in listed.items():
            if quantity(text) < 0 or (is_extended(resource) and quantity(text) % ONE):
                yield wrong(f"{path}.resources.{of}[{resource}]", text, "must be an integer, or not negative")
    for resource in filter(is_extended, requests):  # extended resources cannot be overcommitted
        if quantity(limits.get(resource, -1)) != quantity(requests[resource]):
            yield required(f"{path}.resources.limits", f"the limit of {resource} must be set, and equal to its request")


def pod(obj: Object) -> Iterator[FieldError]:
    yield from _template(obj["spec"], "spec")
    yield from choice("spec.restartPolicy", obj["spec"]["restartPolicy"], ("Always", "OnFailure", "Never"))


def pod_update(old: Object, new: Object) -> Iterator[FieldError]:
    before, after, gates = old["spec"], new["spec"], old["spec"].get("schedulingGates", [])
    kept = [_without(toleration, {"tolerationSeconds"}) for toleration in after.get("tolerations", [])]
    if any(_without(each, {"tolerationSeconds"}) not in kept for each in before.get("tolerations", [])):
        yield prohibited("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
    if any(gate not in gates for gate in after.get("schedulingGates", [])):
        yield prohibited("spec.schedulingGates", "only deletion is allowed, but found new scheduling gates")
    free = _OPEN_IN_PODS | ({"nodeSelector"} if gates else set())  # a gated pod's node selector may be narrowed
    if _fixed(before, free) != _fixed(after, free):
        yield prohibited("spec", "pod updates may not change fields other than images, deadline, tolerations and gates")


def _fixed(spec: Object, free: set[str]) -> Object:
    images = {
        kind: [_without(each, {"image"}) for each in spec.get(kind, [])] for kind in ("containers", "initContainers")
    }
    return _without(spec, free) | images


def _without(obj: Object, fields: set[str]) -> Object:
    return {key: value for key, value in obj.items() if key not in fields}


def job(obj: Object) -> Iterator[FieldError]:
    spec, name = obj["spec"], obj["metadata"]["name"]
    for key in ("parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished", "activeDeadlineSeconds"):
        if spec.get(key, 0) < 0:
            yield wrong(f"spec.{key}", spec[key], "must be greater than or equal to 0")
    yield from choice("spec.completionMode", spec["completionMode"], ("Indexed", "NonIndexed"))
    if spec["completionMode"] == "Indexed":
        yield from [] if "completions" in spec else [required("spec.completions", "when completion mode is Indexed")]
        host = f"{name}-{max(spec.get('completions', 1) - 1, 0)}"  # the pods' host names are <job>-<index>
        yield from (wrong("metadata.name", name, why) for why in is_label(host))
    metadata, pods, path = spec["template"]["metadata"], spec["template"]["spec"], "spec.template.spec"
    yield from label_errors(metadata.get("labels", {}), "spec.template.labels")
    yield from annotation_errors(metadata.get("annotations", {}), "spec.template.annotations")
    yield from _template(pods, path)
    allowed = ("Never",) if "podFailurePolicy" in spec else ("OnFailure", "Never")
    yield from choice(f"{path}.restartPolicy", pods["restartPolicy"], allowed)


def job_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield the errors of changes; a suspended Job's template is open where Kueue needs it (KEP-2926)."""
    before, after = old["spec"], new["spec"]
    elastic = after["completionMode"] == "Indexed" and after.get("completions") == after.get("parallelism")
    if before.get("completions") != after.get("completions") and not elastic:
        yield wrong(
            "spec.completions", after.get("completions"), "can only be modified in tandem with spec.parallelism"
        )
    for key in ("selector", "completionMode", "managedBy", "podFailurePolicy", "backoffLimitPerIndex"):
        if before.get(key) != after.get(key):
            yield wrong(f"spec.{key}", "object", "field is immutable")
    opened = before["suspend"] and "startTime" not in old.get("status", {})
    if _closed(before["template"], opened=opened) != _closed(after["template"], opened=opened):
        yield wrong("spec.template", "object", "field is immutable")
    if old.get("status") != new.get("status"):
        yield from _job_status(new.get("status", {}))


def _closed(pods: Object, *, opened: bool) -> Object:
    metadata, spec = (
        _without(pods["metadata"], {"labels", "annotations"}),
        _without(pods["spec"], _OPEN_IN_SUSPENDED_JOBS),
    )
    return {"metadata": metadata, "spec": spec} if opened else pods


def _job_status(status: Object) -> Iterator[FieldError]:
    conditions = {each["type"] for each in status.get("conditions", []) if each["status"] == "True"}
    if status.get("ready", 0) > status.get("active", 0):
        yield wrong("status.ready", status["ready"], "cannot set more ready pods than active")
    if ("Complete" in conditions) != ("completionTime" in status):
        yield required("status.completionTime", "completionTime is for Complete jobs, which need it")
    for final in conditions & _ENDS.keys():
        if _ENDS[final] not in conditions:
            yield wrong("status.conditions", "object", f"cannot set {final}=True without {_ENDS[final]}=True")
        yield from [] if "startTime" in status else [required("status.startTime", "for finished job")]
        left = (key for key in ("active", "terminating") if status.get(key, 0) > 0)
        yield from (wrong(f"status.{key}", status[key], f"{key}>0 is invalid for finished job") for key in left)
