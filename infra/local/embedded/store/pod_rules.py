"""What pods and Jobs must be, and what of them may change (pkg/apis/{core,batch}/validation; pure)."""

from collections.abc import Iterator

from infra.local.embedded.store.columns import at
from infra.local.embedded.store.errors import FieldError, choice, prohibited, required, wrong
from infra.local.embedded.store.kinds import Object
from infra.local.embedded.store.names import annotation_errors, is_label, label_errors
from infra.local.embedded.store.quantities import ONE, is_extended, quantity
from infra.local.embedded.store.rules import EFFECTS

_OPEN_IN_PODS = {"activeDeadlineSeconds", "tolerations", "schedulingGates", "terminationGracePeriodSeconds"}
_OPEN_IN_SUSPENDED_JOBS = {"nodeSelector", "tolerations", "schedulingGates", "affinity"}
_ENDS = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}
"""The final conditions of Jobs, each with the one that must come before."""


def template(spec: Object, path: str) -> Iterator[FieldError]:
    """Yield the errors of a pod spec."""
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    for kind in ("initContainers", "containers"):
        for index, each in enumerate(spec.get(kind, [])):
            yield from _container(each, f"{path}.{kind}[{index}]")
    names = [each.get("name") for each in spec.get("containers", [])]
    for index in (index for index, name in enumerate(names) if name in names[:index]):
        yield FieldError(
            f"{path}.containers[{index}].name", "FieldValueDuplicate", f'Duplicate value: "{names[index]}"'
        )
    yield from label_errors(spec.get("nodeSelector", {}), f"{path}.nodeSelector")
    for index, toleration in enumerate(spec.get("tolerations", [])):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")


def _container(container: Object, path: str) -> Iterator[FieldError]:
    yield from (required(f"{path}.{key}") for key in ("name", "image") if not container.get(key))
    name = container.get("name")
    yield from (wrong(f"{path}.name", name, why) for why in (is_label(name) if name else ()))
    resources = container.get("resources", {})
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for of, name, text in [("limits", *item) for item in limits.items()] + [("requests", *i) for i in requests.items()]:
        where, amount = f"{path}.resources.{of}[{name}]", quantity(text)
        if amount < 0:
            yield wrong(where, text, "must be greater than or equal to 0")
        if is_extended(name) and amount % ONE:
            yield wrong(where, text, "must be an integer")
    for name in filter(is_extended, requests):  # extended resources cannot be overcommitted
        if name not in limits:
            yield required(f"{path}.resources.limits", "Limit must be set for non overcommitable resources")
        elif quantity(limits[name]) != quantity(requests[name]):
            yield wrong(
                f"{path}.resources.requests", requests[name], f"must be equal to {name} limit of {limits[name]}"
            )


def _toleration(toleration: Object, path: str) -> Iterator[FieldError]:
    operator = toleration.get("operator", "Equal")
    yield from choice(f"{path}.operator", operator, ("Equal", "Exists"))
    if operator == "Exists" and toleration.get("value"):
        yield wrong(f"{path}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
    if not toleration.get("key") and operator != "Exists":
        yield wrong(f"{path}.operator", operator, "operator must be Exists when `key` is empty")
    yield from choice(f"{path}.effect", toleration.get("effect") or EFFECTS[0], EFFECTS)


def pod(obj: Object) -> Iterator[FieldError]:
    yield from template(obj["spec"], "spec")
    yield from choice("spec.restartPolicy", obj["spec"]["restartPolicy"], ("Always", "OnFailure", "Never"))


def pod_update(old: Object, new: Object) -> Iterator[FieldError]:
    before, after = old["spec"], new["spec"]
    kept = [_forever(toleration) for toleration in after.get("tolerations", [])]
    if any(_forever(toleration) not in kept for toleration in before.get("tolerations", [])):
        yield prohibited("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
    gates = before.get("schedulingGates", [])
    if any(gate not in gates for gate in after.get("schedulingGates", [])):
        yield prohibited("spec.schedulingGates", "only deletion is allowed, but found new scheduling gates")
    free = _OPEN_IN_PODS | ({"nodeSelector"} if gates else set())  # a gated pod's node selector may be narrowed
    if _fixed(before, free) != _fixed(after, free):
        yield prohibited("spec", "pod updates may not change fields other than images, deadline, tolerations and gates")


def _forever(toleration: Object) -> Object:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _fixed(spec: Object, free: set[str]) -> Object:
    fixed = {key: value for key, value in spec.items() if key not in free}
    for kind in {"containers", "initContainers"} & fixed.keys():
        fixed[kind] = [{key: value for key, value in each.items() if key != "image"} for each in fixed[kind]]
    return fixed


def job(obj: Object) -> Iterator[FieldError]:
    spec, name = obj["spec"], obj["metadata"]["name"]
    for key in ("parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished", "activeDeadlineSeconds"):
        if spec.get(key, 0) < 0:
            yield wrong(f"spec.{key}", spec[key], "must be greater than or equal to 0")
    yield from choice("spec.completionMode", spec["completionMode"], ("Indexed", "NonIndexed"))
    if spec["completionMode"] == "Indexed":
        if "completions" not in spec:
            yield required("spec.completions", "when completion mode is Indexed")
        host = f"{name}-{max(spec.get('completions', 1) - 1, 0)}"  # the pods' host names are <job>-<index>
        yield from (wrong("metadata.name", name, why) for why in is_label(host))
    metadata, pods, path = spec["template"]["metadata"], spec["template"]["spec"], "spec.template.spec"
    yield from label_errors(metadata.get("labels", {}), "spec.template.labels")
    yield from annotation_errors(metadata.get("annotations", {}), "spec.template.annotations")
    yield from template(pods, path)
    if pods["restartPolicy"] == "Always":
        yield required(f"{path}.restartPolicy", 'valid values: "OnFailure", "Never"')
    else:
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
        yield from _job_status(new)


def _closed(pods: Object, *, opened: bool) -> Object:
    metadata = {k: v for k, v in pods["metadata"].items() if k not in ("labels", "annotations")}
    spec = {k: v for k, v in pods["spec"].items() if k not in _OPEN_IN_SUSPENDED_JOBS}
    return {"metadata": metadata, "spec": spec} if opened else pods


def _job_status(obj: Object) -> Iterator[FieldError]:
    status = obj.get("status", {})
    conditions = {each["type"] for each in at(obj, ".status.conditions") or () if each["status"] == "True"}
    if status.get("ready", 0) > status.get("active", 0):
        yield wrong("status.ready", status["ready"], "cannot set more ready pods than active")
    if ("Complete" in conditions) != ("completionTime" in status):
        yield required("status.completionTime", "completionTime is for Complete jobs, which need it")
    for final in conditions & _ENDS.keys():
        if _ENDS[final] not in conditions:
            yield wrong("status.conditions", "object", f"cannot set {final}=True without {_ENDS[final]}=True")
        if "startTime" not in status:
            yield required("status.startTime", "startTime is required for finished job")
        for key in ("active", "terminating"):
            if status.get(key, 0) > 0:
                yield wrong(f"status.{key}", status[key], f"{key}>0 is invalid for finished job")
