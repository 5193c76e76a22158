"""What pods and Jobs must be, and what of them may change (pkg/apis/{core,batch}/validation; pure)."""

from collections.abc import Iterator
from typing import Any

from infra.local.embedded.store.columns import at
from infra.local.embedded.store.defaults import containers
from infra.local.embedded.store.errors import FieldError, choice, prohibited, required, wrong
from infra.local.embedded.store.kinds import Object
from infra.local.embedded.store.names import annotation_errors, is_label, label_errors
from infra.local.embedded.store.quantities import ONE, is_extended, quantity

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPEN_IN_PODS = {"activeDeadlineSeconds", "tolerations", "schedulingGates", "terminationGracePeriodSeconds"}
_OPEN_IN_SUSPENDED_JOBS = {"nodeSelector", "tolerations", "schedulingGates", "affinity"}
POD_UPDATE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def template(spec: Object, path: str) -> Iterator[FieldError]:
    """Yield the errors of a pod spec."""
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    for kind in ("initContainers", "containers"):
        for index, each in enumerate(spec.get(kind, [])):
            yield from _container(each, f"{path}.{kind}[{index}]")
    names = [each["name"] for each in containers(spec) if "name" in each]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield FieldError(f"{path}.containers", "FieldValueDuplicate", f'Duplicate value: "{name}"')
    yield from label_errors(spec.get("nodeSelector", {}), f"{path}.nodeSelector")
    for index, toleration in enumerate(spec.get("tolerations", [])):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")


def _container(container: Object, path: str) -> Iterator[FieldError]:
    if not container.get("name"):
        yield required(f"{path}.name")
    else:
        yield from (wrong(f"{path}.name", container["name"], why) for why in is_label(container["name"]))
    if not container.get("image"):
        yield required(f"{path}.image")
    resources = container.get("resources", {})
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for of, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            yield from _amount(text, f"{path}.resources.{of}[{name}]", extended=is_extended(name))
    for name, text in requests.items():
        if is_extended(name) and name not in limits:  # extended resources cannot be overcommitted
            yield required(f"{path}.resources.limits", "Limit must be set for non overcommitable resources")
        elif is_extended(name) and str(limits[name]) != str(text):
            yield wrong(f"{path}.resources.requests", text, f"must be equal to {name} limit of {limits[name]}")


def _amount(text: Any, path: str, *, extended: bool) -> Iterator[FieldError]:
    amount = quantity(text)
    if amount < 0:
        yield wrong(path, text, "must be greater than or equal to 0")
    if extended and amount % ONE:
        yield wrong(path, text, "must be an integer")


def _toleration(toleration: Object, path: str) -> Iterator[FieldError]:
    operator = toleration.get("operator", "Equal")
    yield from choice(f"{path}.operator", operator, ("Equal", "Exists"))
    if operator == "Exists" and toleration.get("value"):
        yield wrong(f"{path}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
    if not toleration.get("key") and operator != "Exists":
        yield wrong(f"{path}.operator", operator, "operator must be Exists when `key` is empty")
    if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
        yield wrong(f"{path}.effect", toleration.get("effect", ""), "must be 'NoExecute' with `tolerationSeconds`")
    if toleration.get("effect"):
        yield from choice(f"{path}.effect", toleration["effect"], EFFECTS)


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
    if _fixed(before, gated=bool(gates)) != _fixed(after, gated=bool(gates)):
        yield prohibited("spec", POD_UPDATE)


def _forever(toleration: Object) -> Object:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _fixed(spec: Object, *, gated: bool) -> Object:
    """Return the part of the spec that may not change; a gated pod's node selector may."""
    fixed = {
        key: value for key, value in spec.items() if key not in _OPEN_IN_PODS | ({"nodeSelector"} if gated else set())
    }
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
    metadata, pods = spec["template"].get("metadata", {}), spec["template"]["spec"]
    yield from label_errors(metadata.get("labels", {}), "spec.template.labels")
    yield from annotation_errors(metadata.get("annotations", {}), "spec.template.annotations")
    yield from template(pods, "spec.template.spec")
    path, policy = "spec.template.spec.restartPolicy", pods["restartPolicy"]
    if policy == "Always":
        yield required(path, 'valid values: "OnFailure", "Never"')
    else:
        yield from choice(path, policy, ("OnFailure", "Never"))
    if "podFailurePolicy" in spec and policy != "Never":
        yield wrong("spec.template.spec.restartPolicy", policy, 'only "Never" is supported with podFailurePolicy')


def job_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield the errors of changes; a suspended Job's template is open where Kueue needs it (KEP-2926)."""
    before, after = old["spec"], new["spec"]
    if before.get("completions") != after.get("completions"):
        elastic = after["completionMode"] == "Indexed" and after.get("completions") == after.get("parallelism")
        if not elastic:
            why = "can only be modified in tandem with spec.parallelism"
            yield wrong("spec.completions", after.get("completions"), why)
    for key in ("selector", "completionMode", "managedBy", "podFailurePolicy", "backoffLimitPerIndex"):
        if before.get(key) != after.get(key):
            yield wrong(f"spec.{key}", "object", "field is immutable")
    open_template = before["suspend"] and "startTime" not in old.get("status", {})
    if _closed(before["template"], open_template) != _closed(after["template"], open_template):
        yield wrong("spec.template", "object", "field is immutable")
    if old.get("status") != new.get("status"):
        yield from _job_status(new)


def _closed(pods: Object, suspended: bool) -> Object:  # noqa: FBT001 - the Job's state decides
    if not suspended:
        return pods
    metadata = {k: v for k, v in pods.get("metadata", {}).items() if k not in ("labels", "annotations")}
    return {"metadata": metadata, "spec": {k: v for k, v in pods["spec"].items() if k not in _OPEN_IN_SUSPENDED_JOBS}}


def _job_status(obj: Object) -> Iterator[FieldError]:
    status = obj.get("status", {})
    true = {kind: at(obj, f'.status.conditions[?(@.type=="{kind}")].status') == "True" for kind in _JOB_ENDS}
    if status.get("ready", 0) > status.get("active", 0):
        yield wrong("status.ready", status["ready"], "cannot set more ready pods than active")
    if true["Complete"] != ("completionTime" in status):
        yield required("status.completionTime", "completionTime is for Complete jobs, which need it")
    for final, first in (("Complete", "SuccessCriteriaMet"), ("Failed", "FailureTarget")):
        if true[final] and not true[first]:
            yield wrong("status.conditions", "object", f"cannot set {final}=True without {first}=True")
        if true[final] and "startTime" not in status:
            yield required("status.startTime", "startTime is required for finished job")
        for key in ("active", "terminating") if true[final] else ():
            if status.get(key, 0) > 0:
                yield wrong(f"status.{key}", status[key], f"{key}>0 is invalid for finished job")


_JOB_ENDS = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")
