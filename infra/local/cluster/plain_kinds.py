"""Kinds that are only stored: no controller acts on them here (pure).

PersistentVolumes and claims, ConfigMaps, Deployments, DaemonSets, Leases and PriorityClasses: their defaults and
validation. The finalizers that protect volumes in use are not set, because nothing would remove them.
Facts and error messages: pkg/apis/{core,apps,coordination,scheduling}/{v1/defaults.go,validation} of Kubernetes.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from infra.local.cluster.defaults import fill, pod_spec
from infra.local.cluster.errors import FieldError
from infra.local.cluster.names import invalid_value
from infra.local.cluster.validation import pod_spec_errors, required

Object = dict[str, Any]

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_CONFIG_KEY = r"[-._a-zA-Z0-9]+"
_MAX_CONFIG_BYTES = 1024 * 1024
HIGHEST_USER_PRIORITY = 1_000_000_000
_SYSTEM_PREFIX = "system-"
SYSTEM_CLASSES: Mapping[str, int] = MappingProxyType(
    {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
)


def _claim(claim: Object) -> None:
    claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _volume(volume: Object) -> None:
    fill(volume.setdefault("spec", {}), {"volumeMode": "Filesystem", "persistentVolumeReclaimPolicy": "Retain"})


def _template(workload: Object) -> Object:
    spec: Object = workload.setdefault("spec", {})
    pod_spec(spec.setdefault("template", {}).setdefault("spec", {}))
    return spec


def _deployment(deployment: Object) -> None:
    spec = _template(deployment)
    fill(spec, {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, "strategy": {}})
    strategy = spec["strategy"]
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), {"maxUnavailable": "25%", "maxSurge": "25%"})


def _daemon_set(daemons: Object) -> None:
    spec = _template(daemons)
    fill(spec, {"revisionHistoryLimit": 10, "updateStrategy": {}})
    strategy = spec["updateStrategy"]
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), {"maxUnavailable": 1, "maxSurge": 0})


def _priority_class(priority: Object) -> None:
    priority.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _nothing(_: Object) -> None:
    return


DEFAULTS: Mapping[str, Callable[[Object], None]] = MappingProxyType(
    {
        "persistentvolumeclaims": _claim,
        "persistentvolumes": _volume,
        "configmaps": _nothing,
        "deployments": _deployment,
        "daemonsets": _daemon_set,
        "leases": lambda lease: fill(lease, {"spec": {}}),
        "priorityclasses": _priority_class,
    }
)
"""By plural name of the resource."""


def _storage_errors(spec: Object, amount: Object, path: str) -> Iterator[FieldError]:
    modes = spec.get("accessModes", [])
    if not modes:
        yield required("spec.accessModes", "at least 1 access mode is required")
    for mode in modes:
        if mode not in _ACCESS_MODES:
            listed = ", ".join(f'"{one}"' for one in _ACCESS_MODES)
            message = f'Unsupported value: "{mode}": supported values: {listed}'
            yield FieldError("spec.accessModes", "FieldValueNotSupported", message)
    if "storage" not in amount:
        yield required(path)


def _claim_errors(claim: Object) -> Iterator[FieldError]:
    spec = claim["spec"]
    requests = spec.get("resources", {}).get("requests", {})
    yield from _storage_errors(spec, requests, "spec.resources[storage]")


def _volume_errors(volume: Object) -> Iterator[FieldError]:
    spec = volume["spec"]
    yield from _storage_errors(spec, spec.get("capacity", {}), "spec.capacity")


def _config_errors(config: Object) -> Iterator[FieldError]:
    data, binary = config.get("data", {}), config.get("binaryData", {})
    for path, values in (("data", data), ("binaryData", binary)):
        for key in values:
            if not re.fullmatch(_CONFIG_KEY, key):
                rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
                example = (
                    f"(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '{_CONFIG_KEY}')"
                )
                yield invalid_value(f"{path}[{key}]", key, f"{rule} {example}")
    for key in data.keys() & binary.keys():
        yield invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")
    if sum(len(str(value).encode()) for values in (data, binary) for value in values.values()) > _MAX_CONFIG_BYTES:
        yield FieldError("", "FieldValueTooLong", f"Too long: may not be more than {_MAX_CONFIG_BYTES} bytes")


def _workload_errors(workload: Object) -> Iterator[FieldError]:
    spec = workload["spec"]
    labels = spec["template"].get("metadata", {}).get("labels", {})
    wanted = spec.get("selector", {}).get("matchLabels", {})
    if not spec.get("selector"):
        yield required("spec.selector")
    elif any(labels.get(key) != value for key, value in wanted.items()):
        yield invalid_value("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    if spec.get("replicas", 0) < 0:
        yield invalid_value("spec.replicas", spec["replicas"], "must be greater than or equal to 0")
    yield from pod_spec_errors(spec["template"]["spec"], "spec.template.spec")
    policy = spec["template"]["spec"]["restartPolicy"]
    if policy != "Always":
        message = f'Unsupported value: "{policy}": supported values: "Always"'
        yield FieldError("spec.template.spec.restartPolicy", "FieldValueNotSupported", message)


def _lease_errors(lease: Object) -> Iterator[FieldError]:
    spec = lease["spec"]
    if spec.get("leaseDurationSeconds", 1) <= 0:
        yield invalid_value("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0")
    if spec.get("leaseTransitions", 0) < 0:
        yield invalid_value("spec.leaseTransitions", spec["leaseTransitions"], "must be greater than or equal to 0")


def _priority_errors(priority: Object) -> Iterator[FieldError]:
    name, value = priority["metadata"].get("name", ""), priority["value"]
    if name.startswith(_SYSTEM_PREFIX):
        if SYSTEM_CLASSES.get(name) != value:
            why = f"Forbidden: priority class names with '{_SYSTEM_PREFIX}' prefix are reserved for system use only"
            yield FieldError("metadata.name", "FieldValueForbidden", why)
    elif value > HIGHEST_USER_PRIORITY:
        why = f"Forbidden: maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        yield FieldError("value", "FieldValueForbidden", why)
    policy = priority["preemptionPolicy"]
    if policy not in ("PreemptLowerPriority", "Never"):
        message = f'Unsupported value: "{policy}": supported values: "Never", "PreemptLowerPriority"'
        yield FieldError("preemptionPolicy", "FieldValueNotSupported", message)


OBJECT_RULES: Mapping[str, Callable[[Object], Iterator[FieldError]]] = MappingProxyType(
    {
        "persistentvolumeclaims": _claim_errors,
        "persistentvolumes": _volume_errors,
        "configmaps": _config_errors,
        "deployments": _workload_errors,
        "daemonsets": _workload_errors,
        "leases": _lease_errors,
        "priorityclasses": _priority_errors,
    }
)
"""The validation of an object by itself, by plural name."""


def update_errors(plural: str, old: Object, new: Object) -> Iterator[FieldError]:
    """Yield the errors of an update: changes of immutable fields."""
    if plural in ("deployments", "daemonsets") and old["spec"].get("selector") != new["spec"].get("selector"):
        yield invalid_value("spec.selector", "object", "field is immutable")
    if plural == "configmaps" and old.get("immutable"):
        for field in ("immutable", "data", "binaryData"):
            if old.get(field) != new.get(field):
                why = "Forbidden: field is immutable when `immutable` is set"
                yield FieldError(field, "FieldValueForbidden", why)
    if plural == "priorityclasses":
        for field in ("value", "preemptionPolicy"):
            if old[field] != new[field]:
                yield FieldError(field, "FieldValueForbidden", "Forbidden: may not be changed in an update.")
    if plural == "persistentvolumeclaims" and _fixed(old["spec"], old) != _fixed(new["spec"], old):
        why = "Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName"
        yield FieldError("spec", "FieldValueForbidden", f"{why} for bound claims")


def _fixed(spec: Object, old: Object) -> Object:
    """Return the immutable part of a claim's spec: a volume's name may be set once."""
    free = {"resources", "volumeAttributesClassName"} | (set() if old["spec"].get("volumeName") else {"volumeName"})
    return {key: value for key, value in spec.items() if key not in free}
