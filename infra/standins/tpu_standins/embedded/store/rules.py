"""What objects must be, and what of them may change (pkg/apis/*/validation; pure)."""

from base64 import b64decode
from collections.abc import Callable, Iterator

from tpu_standins.clients.quantities import ONE, is_extended, quantity
from tpu_standins.embedded.store.errors import FieldError, choice, not_implemented, prohibited, required, wrong
from tpu_standins.embedded.store.kinds import Kind, Object
from tpu_standins.embedded.store.labels import annotation_errors, is_label, is_qualified_name, label_errors

_OPEN_IN_PODS = {"activeDeadlineSeconds", "tolerations", "schedulingGates", "terminationGracePeriodSeconds"}
_OPEN_IN_SUSPENDED = {"nodeSelector", "tolerations", "schedulingGates", "affinity"}
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
        where, exists = f"{path}.tolerations[{index}]", toleration.get("operator") == "Exists"
        yield from choice(f"{where}.operator", toleration.get("operator", "Equal"), ("Equal", "Exists"))
        yield from choice(f"{where}.effect", toleration.get("effect") or EFFECTS[0], EFFECTS)
        if toleration.get("value") if exists else not toleration.get("key"):
            yield wrong(f"{where}.operator", exists, "Exists has no value, and is needed when `key` is empty")


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
    return _without(spec, free) | {"containers": [_without(each, {"image"}) for each in spec["containers"]]}


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
    if after.get("completions") not in (before.get("completions"), after.get("parallelism")):
        yield wrong("spec.completions", "object", "can only be modified in tandem with spec.parallelism")
    for key in ("selector", "completionMode", "managedBy", "podFailurePolicy", "backoffLimitPerIndex"):
        if before.get(key) != after.get(key):
            yield wrong(f"spec.{key}", "object", "field is immutable")
    opened = before["suspend"] and "startTime" not in old.get("status", {})
    if _closed(before["template"], opened=opened) != _closed(after["template"], opened=opened):
        yield wrong("spec.template", "object", "field is immutable")
    if old.get("status") != new.get("status"):
        yield from _job_status(new.get("status", {}))


def _closed(pods: Object, *, opened: bool) -> Object:
    metadata, spec = _without(pods["metadata"], {"labels", "annotations"}), _without(pods["spec"], _OPEN_IN_SUSPENDED)
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


EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def metadata(kind: Kind, old: Object | None, obj: Object) -> Iterator[FieldError]:
    """Yield the errors of names, labels, annotations, finalizers and owner references."""
    of, name = obj["metadata"], obj["metadata"].get("name", "")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    path = "metadata.generateName" if name.startswith(of.get("generateName", "/")[:58]) else "metadata.name"
    yield from (wrong(path, name, why) for why in (kind.is_name(name) if name else ()))
    yield from label_errors(of.get("labels", {}), "metadata.labels")
    yield from annotation_errors(of.get("annotations", {}), "metadata.annotations")
    for index, finalizer in enumerate(of.get("finalizers", [])):
        yield from (wrong(f"metadata.finalizers[{index}]", finalizer, why) for why in is_qualified_name(finalizer))
    references = of.get("ownerReferences", [])
    for index, reference in enumerate(references):
        empty = (key for key in ("apiVersion", "kind", "name", "uid") if not reference.get(key))
        yield from (wrong(f"metadata.ownerReferences[{index}].{key}", "", "must not be empty") for key in empty)
    if sum(1 for reference in references if reference.get("controller")) > 1:
        yield wrong("metadata.ownerReferences", "object", "Only one reference can have Controller set to true")
    if old and "deletionTimestamp" in old["metadata"]:
        added = set(of.get("finalizers", [])) - set(old["metadata"].get("finalizers", []))
        why = f"no new finalizers can be added if the object is being deleted, found {sorted(added)}"
        yield from [prohibited("metadata.finalizers", why)] if added else []


def node(obj: Object) -> Iterator[FieldError]:
    for index, taint in enumerate(obj["spec"].get("taints", [])):
        path = f"spec.taints[{index}]"
        yield from (wrong(f"{path}.key", taint["key"], why) for why in is_qualified_name(taint["key"]))
        yield from choice(f"{path}.effect", taint.get("effect", ""), EFFECTS)


def node_update(old: Object, new: Object) -> Iterator[FieldError]:
    if old["spec"].get("providerID", new["spec"].get("providerID")) != new["spec"].get("providerID"):
        yield prohibited("spec.providerID", 'node updates may not change providerID except from "" to valid')


def secret(obj: Object) -> tuple[()]:
    if obj["type"].startswith("kubernetes.io/") or obj.keys() & {"immutable", "stringData"}:
        raise not_implemented("immutable Secrets, stringData, and types of kubernetes.io")
    for text in obj.get("data", {}).values():
        b64decode(text, validate=True)
    return ()


def service(obj: Object) -> tuple[()]:
    if obj["spec"].get("clusterIP") == "None":
        return ()
    raise not_implemented("services other than headless ones (spec.clusterIP: None)")


def event(obj: Object) -> Iterator[FieldError]:
    namespace, about = obj["metadata"]["namespace"], obj["involvedObject"].get("namespace", "")
    if (about or namespace) != namespace or (not about and namespace not in ("default", "kube-system")):
        yield wrong("involvedObject.namespace", about, "does not match event.namespace")


def binding(obj: Object) -> Iterator[FieldError]:
    allowed = ("ClusterRole",) if obj["kind"] == "ClusterRoleBinding" else ("Role", "ClusterRole")
    yield from choice("roleRef.kind", obj.get("roleRef", {"kind": "ClusterRole"}).get("kind", ""), allowed)


def fixed(field: str) -> Callable[[Object, Object], Iterator[FieldError]]:
    """Return the rule of a field that must not change."""

    def check(old: Object, new: Object) -> Iterator[FieldError]:
        if old.get(field) != new.get(field):
            yield wrong(field, "object", f"field is immutable: cannot change {field}")

    return check


def definition(obj: Object) -> Iterator[FieldError]:
    spec, name = obj["spec"], obj["metadata"]["name"]
    wanted = f"{spec['names'].get('plural')}.{spec.get('group')}"
    if name != wanted:
        yield wrong("metadata.name", name, f'must be spec.names.plural+"."+spec.group, which is {wanted}')
    yield from choice("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced"))
    if sum(bool(version.get("storage")) for version in spec.get("versions", [])) != 1:
        yield wrong("spec.versions", "object", "must have exactly one version marked as storage version")
    if spec["conversion"].get("strategy") != "None":
        raise not_implemented("conversion of custom resources by webhooks")


def webhooks(obj: Object) -> Iterator[FieldError]:
    for index, webhook in enumerate(obj.get("webhooks", [])):
        if "url" not in webhook.get("clientConfig", {}) or webhook.get("matchConditions"):
            raise not_implemented("webhooks without clientConfig.url, or with matchConditions")
        yield from choice(f"webhooks[{index}].failurePolicy", webhook["failurePolicy"], ("Fail", "Ignore"))
