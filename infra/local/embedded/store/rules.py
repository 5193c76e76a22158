"""What objects must be, and what of them may change, beyond pods and Jobs (pkg/apis/*/validation; pure)."""

import re
from collections.abc import Iterator

from infra.local.embedded.store import pod_rules
from infra.local.embedded.store.errors import FieldError, choice, not_implemented, prohibited, required, wrong
from infra.local.embedded.store.kinds import Kind, Object
from infra.local.embedded.store.names import annotation_errors, is_qualified_name, label_errors

_HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_MAX_CONFIG_BYTES = 1024 * 1024


def metadata(kind: Kind, obj: Object) -> Iterator[FieldError]:
    """Yield the errors of names, labels, annotations, finalizers and owner references."""
    said = obj["metadata"]
    name, generated = said.get("name", ""), said.get("generateName", "")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    else:
        path = "metadata.generateName" if generated and name.startswith(generated[:58]) else "metadata.name"
        yield from (wrong(path, name, why) for why in kind.is_name(name))
    yield from label_errors(said.get("labels", {}), "metadata.labels")
    yield from annotation_errors(said.get("annotations", {}), "metadata.annotations")
    for index, finalizer in enumerate(said.get("finalizers", [])):
        yield from (wrong(f"metadata.finalizers[{index}]", finalizer, why) for why in is_qualified_name(finalizer))
    references = said.get("ownerReferences", [])
    for index, reference in enumerate(references):
        for key in ("apiVersion", "kind", "name", "uid"):
            if not reference.get(key):
                yield wrong(f"metadata.ownerReferences[{index}].{key}", "", "must not be empty")
    if sum(1 for reference in references if reference.get("controller")) > 1:
        why = "Only one reference can have Controller set to true"
        yield wrong("metadata.ownerReferences", "object", why)


def metadata_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield the error of new finalizers on an object that is being deleted."""
    added = set(new["metadata"].get("finalizers", [])) - set(old["metadata"].get("finalizers", []))
    if "deletionTimestamp" in old["metadata"] and added:
        why = f"no new finalizers can be added if the object is being deleted, found {sorted(added)}"
        yield prohibited("metadata.finalizers", why)


def node(obj: Object) -> Iterator[FieldError]:
    for index, taint in enumerate(obj["spec"].get("taints", [])):
        path = f"spec.taints[{index}]"
        yield from (wrong(f"{path}.key", taint["key"], why) for why in is_qualified_name(taint["key"]))
        yield from choice(f"{path}.effect", taint.get("effect", ""), pod_rules.EFFECTS)


def node_update(old: Object, new: Object) -> Iterator[FieldError]:
    known = old["spec"].get("providerID")
    if known and new["spec"].get("providerID") != known:
        yield prohibited("spec.providerID", 'node updates may not change providerID except from "" to valid')


def service(obj: Object) -> Iterator[FieldError]:
    if obj["spec"].get("clusterIP") != "None":
        raise not_implemented("services other than headless ones (spec.clusterIP: None)")
    for index, port in enumerate(obj["spec"].get("ports", [])):
        if not 0 < port["port"] < 65536:
            yield wrong(f"spec.ports[{index}].port", port["port"], "must be between 1 and 65535, inclusive")


def event(obj: Object) -> Iterator[FieldError]:
    namespace, about = obj["metadata"]["namespace"], obj["involvedObject"].get("namespace", "")
    own = {"default", "kube-system"} if obj.get("eventTime") else {"default"}
    if (not about and namespace not in own) or (about and about != namespace):
        yield wrong("involvedObject.namespace", about, "does not match event.namespace")
    if not obj.get("eventTime"):
        return
    for key, path in (
        ("reportingComponent", "reportingController"),
        *((k, k) for k in ("reportingInstance", "action", "reason")),
    ):
        if not obj.get(key):
            yield required(path)
        elif len(obj[key]) > 128:
            yield wrong(path, "", "can have at most 128 bytes")
    if len(obj.get("message", "")) > 1024:
        yield wrong("message", "", "can have at most 1024 bytes")


def config(obj: Object) -> Iterator[FieldError]:
    data, binary = obj.get("data", {}), obj.get("binaryData", {})
    for path, values in (("data", data), ("binaryData", binary)):
        for key in values:
            if not re.fullmatch(r"[-._a-zA-Z0-9]+", key):
                yield wrong(f"{path}[{key}]", key, "a valid config key has alphanumeric characters, '-', '_' or '.'")
    yield from (wrong(f"data[{key}]", key, "duplicate of key present in binaryData") for key in data.keys() & binary)
    if sum(len(value.encode()) for values in (data, binary) for value in values.values()) > _MAX_CONFIG_BYTES:
        yield FieldError("", "FieldValueTooLong", f"Too long: may not be more than {_MAX_CONFIG_BYTES} bytes")


def config_update(old: Object, new: Object) -> Iterator[FieldError]:
    for key in ("immutable", "data", "binaryData"):
        if old.get("immutable") and old.get(key) != new.get(key):
            yield prohibited(key, "field is immutable when `immutable` is set")
    if old.get("type") != new.get("type"):
        yield wrong("type", new.get("type"), "field is immutable")


def claim(obj: Object) -> Iterator[FieldError]:
    amount = obj["spec"].get("resources", {}).get("requests", {})
    yield from _storage(obj["spec"], amount, "spec.resources[storage]")


def volume(obj: Object) -> Iterator[FieldError]:
    yield from _storage(obj["spec"], obj["spec"].get("capacity", {}), "spec.capacity")


def _storage(spec: Object, amount: Object, path: str) -> Iterator[FieldError]:
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    for mode in spec.get("accessModes", []):
        yield from choice("spec.accessModes", mode, _ACCESS_MODES)
    if "storage" not in amount:
        yield required(path)


def claim_update(old: Object, new: Object) -> Iterator[FieldError]:
    free = {"resources", "volumeAttributesClassName"} | (set() if old["spec"].get("volumeName") else {"volumeName"})
    before, after = ({k: v for k, v in each["spec"].items() if k not in free} for each in (old, new))
    if before != after:
        yield prohibited(
            "spec",
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        )


def workload(obj: Object) -> Iterator[FieldError]:
    spec = obj["spec"]
    labels = spec["template"].get("metadata", {}).get("labels", {})
    if not spec.get("selector"):
        yield required("spec.selector")
    elif any(labels.get(key) != value for key, value in spec["selector"].get("matchLabels", {}).items()):
        yield wrong("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    if spec.get("replicas", 0) < 0:
        yield wrong("spec.replicas", spec["replicas"], "must be greater than or equal to 0")
    yield from pod_rules.template(spec["template"]["spec"], "spec.template.spec")
    yield from choice("spec.template.spec.restartPolicy", spec["template"]["spec"]["restartPolicy"], ("Always",))


def workload_update(old: Object, new: Object) -> Iterator[FieldError]:
    if old["spec"].get("selector") != new["spec"].get("selector"):
        yield wrong("spec.selector", "object", "field is immutable")


def lease(obj: Object) -> Iterator[FieldError]:
    for key, least in (("leaseDurationSeconds", 1), ("leaseTransitions", 0)):
        if obj["spec"].get(key, least) < least:
            yield wrong(f"spec.{key}", obj["spec"][key], f"must be greater than or equal to {least}")


def priority_class(obj: Object) -> Iterator[FieldError]:
    name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
    if name.startswith("system-"):
        if SYSTEM_CLASSES.get(name) != value:
            yield prohibited(
                "metadata.name", "priority class names with 'system-' prefix are reserved for system use only"
            )
    elif value > _HIGHEST_USER_PRIORITY:
        yield prohibited("value", f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}")
    yield from choice("preemptionPolicy", obj["preemptionPolicy"], ("PreemptLowerPriority", "Never"))


def priority_class_update(old: Object, new: Object) -> Iterator[FieldError]:
    for key in ("value", "preemptionPolicy"):
        if old.get(key) != new.get(key):
            yield prohibited(key, "may not be changed in an update.")


def role(obj: Object) -> Iterator[FieldError]:
    yield from _role(obj, namespaced=True)


def cluster_role(obj: Object) -> Iterator[FieldError]:
    if "aggregationRule" in obj:
        raise not_implemented("aggregated ClusterRoles")
    yield from _role(obj, namespaced=False)


def _role(obj: Object, *, namespaced: bool) -> Iterator[FieldError]:
    for index, rule in enumerate(obj.get("rules") or []):
        path, urls = f"rules[{index}]", rule.get("nonResourceURLs")
        if not rule.get("verbs"):
            yield required(f"{path}.verbs", "verbs must contain at least one value")
        if urls and namespaced:
            yield wrong(f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
        for key in () if urls else ("apiGroups", "resources"):
            if not rule.get(key):
                yield required(f"{path}.{key}", f"resource rules must supply at least one of {key}")


def binding(obj: Object) -> Iterator[FieldError]:
    yield from _binding(obj, ("Role", "ClusterRole"))


def cluster_binding(obj: Object) -> Iterator[FieldError]:
    yield from _binding(obj, ("ClusterRole",))
    for index, subject in enumerate(obj.get("subjects", [])):
        if subject["kind"] == "ServiceAccount" and not subject.get("namespace"):
            yield required(f"subjects[{index}].namespace")


def _binding(obj: Object, roles: tuple[str, ...]) -> Iterator[FieldError]:
    yield from choice("roleRef.kind", obj["roleRef"].get("kind", ""), roles)
    if not obj["roleRef"].get("name"):
        yield required("roleRef.name")
    for index, subject in enumerate(obj.get("subjects", [])):
        yield from choice(f"subjects[{index}].kind", subject["kind"], ("ServiceAccount", "User", "Group"))
        if not subject.get("name"):
            yield required(f"subjects[{index}].name")


def binding_update(old: Object, new: Object) -> Iterator[FieldError]:
    if old["roleRef"] != new["roleRef"]:
        yield wrong("roleRef", "object", "cannot change roleRef")


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


def definition_update(old: Object, new: Object) -> Iterator[FieldError]:
    for path in ("group", "scope"):
        if old["spec"][path] != new["spec"][path]:
            yield wrong(f"spec.{path}", new["spec"][path], "field is immutable")


def webhooks(obj: Object) -> Iterator[FieldError]:
    for index, webhook in enumerate(obj.get("webhooks", [])):
        path = f"webhooks[{index}]"
        if "url" not in webhook.get("clientConfig", {}):
            raise not_implemented("webhooks without clientConfig.url")
        if webhook.get("matchConditions"):
            raise not_implemented("matchConditions of webhooks")
        yield from choice(f"{path}.failurePolicy", webhook["failurePolicy"], ("Fail", "Ignore"))
        if "v1" not in webhook.get("admissionReviewVersions", []):
            yield required(f"{path}.admissionReviewVersions", "must specify one of v1")
