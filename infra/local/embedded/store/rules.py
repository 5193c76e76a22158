"""What objects must be, and what of them may change, beyond pods and Jobs (pkg/apis/*/validation; pure)."""

from collections.abc import Iterator

from infra.local.embedded.store.errors import FieldError, choice, not_implemented, prohibited, required, wrong
from infra.local.embedded.store.kinds import Kind, Object
from infra.local.embedded.store.names import annotation_errors, is_qualified_name, label_errors

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


def service(obj: Object) -> tuple[()]:
    if obj["spec"].get("clusterIP") != "None":
        raise not_implemented("services other than headless ones (spec.clusterIP: None)")
    return ()


def event(obj: Object) -> Iterator[FieldError]:
    namespace, about = obj["metadata"]["namespace"], obj["involvedObject"].get("namespace", "")
    if (about or namespace) != namespace or (not about and namespace not in ("default", "kube-system")):
        yield wrong("involvedObject.namespace", about, "does not match event.namespace")
    wanted = ("reportingComponent", "reportingInstance", "action", "reason") if obj.get("eventTime") else ()
    yield from (required(key) for key in wanted if not obj.get(key))


def claim(obj: Object) -> Iterator[FieldError]:
    """Yield the errors of a PersistentVolume or of a claim."""
    spec = obj["spec"]
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    if "storage" not in spec.get("capacity", spec.get("resources", {}).get("requests", {})):
        yield required("spec.capacity" if "capacity" in spec else "spec.resources[storage]")


def priority_class(obj: Object) -> Iterator[FieldError]:
    name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
    if name.startswith("system-") and SYSTEM_CLASSES.get(name) != value:
        yield prohibited("metadata.name", "priority class names with 'system-' prefix are reserved for system use only")
    elif value > 10**9 and name not in SYSTEM_CLASSES:
        yield prohibited("value", "maximum allowed value of a user defined priority is 1000000000")


def priority_class_update(old: Object, new: Object) -> Iterator[FieldError]:
    changed = (key for key in ("value", "preemptionPolicy") if old.get(key) != new.get(key))
    yield from (prohibited(key, "may not be changed in an update.") for key in changed)


def role(obj: Object) -> Iterator[FieldError]:
    if "aggregationRule" in obj:
        raise not_implemented("aggregated ClusterRoles")
    for index, rule in enumerate(obj.get("rules") or []):
        wanted = ("verbs",) if rule.get("nonResourceURLs") else ("verbs", "apiGroups", "resources")
        yield from (required(f"rules[{index}].{key}") for key in wanted if not rule.get(key))


def binding(obj: Object) -> Iterator[FieldError]:
    roles = ("Role", "ClusterRole") if obj["kind"] == "RoleBinding" else ("ClusterRole",)
    yield from choice("roleRef.kind", obj["roleRef"].get("kind", ""), roles)
    for index, subject in enumerate(obj.get("subjects", [])):
        yield from choice(f"subjects[{index}].kind", subject["kind"], ("ServiceAccount", "User", "Group"))


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


def webhooks(obj: Object) -> Iterator[FieldError]:
    for index, webhook in enumerate(obj.get("webhooks", [])):
        if "url" not in webhook.get("clientConfig", {}) or webhook.get("matchConditions"):
            raise not_implemented("webhooks without clientConfig.url, or with matchConditions")
        yield from choice(f"webhooks[{index}].failurePolicy", webhook["failurePolicy"], ("Fail", "Ignore"))
