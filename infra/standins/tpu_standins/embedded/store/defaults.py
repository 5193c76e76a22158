"""The API server's defaults for fields that are left out, written into the object (pkg/apis/*/v1/defaults.go; pure)."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from tpu_standins.embedded.store.kinds import Object

_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_POD_SPEC = {"dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "restartPolicy": "Always"}
_SERVICE = {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"}
_JOB = {"parallelism": 1, "completionMode": "NonIndexed", "suspend": False, "manualSelector": False}
_WEBHOOK = {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10}


def fill(target: Object, defaults: Mapping[str, Any]) -> None:
    for key, value in defaults.items():
        if isinstance(target.setdefault(key, value), dict) and isinstance(value, dict):
            fill(target[key], value)


def filling(**usual: Any) -> Callable[[Object], None]:
    """Return what fills in these fields, each time anew."""
    return lambda obj: fill(obj, deepcopy(usual))


def containers(spec: Object) -> list[Object]:
    """Return all containers of a pod spec, init containers first."""
    return [*spec.get("initContainers", []), *spec.get("containers", [])]


def _container(container: Object) -> None:
    image = container.get("image", "")
    moving = "@" not in image and (":" not in image.rpartition("/")[2] or image.endswith(":latest"))
    fill(container, _CONTAINER | {"imagePullPolicy": "Always" if moving else "IfNotPresent", "resources": {}})
    _as_quantities(container["resources"], "limits", "requests")
    for port in container.get("ports", []):
        port.setdefault("protocol", "TCP")


def _as_quantities(holder: Object, *fields: str) -> None:
    """Make the amounts of some ResourceLists texts, as quantities are stored."""
    for field in holder.keys() & fields:
        holder[field] = {name: str(amount) for name, amount in holder[field].items()}


def _pod_spec(spec: Object) -> None:
    fill(spec, _POD_SPEC | {"terminationGracePeriodSeconds": 30, "securityContext": {}})
    for container in containers(spec):
        _container(container)


def pod(obj: Object) -> None:
    spec, quality = obj.setdefault("spec", {}), "BestEffort"
    _pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for container in containers(spec):  # only in pods, not in templates
        resources = container["resources"]
        if resources.get("limits"):
            resources["requests"] = resources["limits"] | resources.get("requests", {})
        if {"cpu", "memory"} & resources.get("requests", {}).keys():
            quality = "Burstable"
    obj["status"] = {**obj.get("status", {}), "qosClass": quality}


def job(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    fill(spec, _JOB | {"backoffLimit": 2**31 - 1 if "backoffLimitPerIndex" in spec else 6})
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    for rule in spec.get("podFailurePolicy", {}).get("rules", []):
        for condition in rule.get("onPodConditions", []):
            condition.setdefault("status", "True")
    fill(spec.setdefault("template", {}), {"metadata": {}, "spec": {}})
    _pod_spec(spec["template"]["spec"])


def service(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    fill(spec, _SERVICE | {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]})
    fill(spec, {"clusterIPs": [spec["clusterIP"]]} if "clusterIP" in spec else {})
    for port in spec.get("ports", []):
        fill(port, {"protocol": "TCP", "targetPort": port["port"]})


def namespace(obj: Object) -> None:
    metadata = obj["metadata"]
    metadata["labels"] = metadata.get("labels", {}) | {"kubernetes.io/metadata.name": metadata.get("name", "")}
    obj.setdefault("spec", {"finalizers": ["kubernetes"]})


def node(obj: Object) -> None:
    """Fill in spec and status; what a node offers defaults to what it has."""
    fill(obj, {"spec": {}, "status": {}})
    _as_quantities(obj["status"], "capacity", "allocatable")
    fill(obj["status"], {"allocatable": obj["status"]["capacity"]} if "capacity" in obj["status"] else {})


def event(obj: Object) -> None:
    fill(obj, {"source": {}, "reportingComponent": "", "reportingInstance": "", "involvedObject": {}})
    fill(obj, dict.fromkeys(("firstTimestamp", "lastTimestamp", "eventTime")))


def binding(obj: Object) -> None:
    group = "rbac.authorization.k8s.io"
    obj.setdefault("roleRef", {}).setdefault("apiGroup", group)
    for subject in obj.get("subjects", []):
        if subject["kind"] != "ServiceAccount":
            subject.setdefault("apiGroup", group)


def definition(obj: Object) -> None:
    """Fill in a CustomResourceDefinition; it is established at once."""
    spec = obj.setdefault("spec", {})
    names = spec.setdefault("names", {})
    fill(names, {"singular": names["kind"].lower(), "listKind": f"{names['kind']}List"})
    spec.setdefault("conversion", {"strategy": "None"})
    since = {"status": "True", "lastTransitionTime": obj["metadata"]["creationTimestamp"], "message": ""}
    reasons = {"NamesAccepted": "NoConflicts", "Established": "InitialNamesAccepted"}
    conditions = [{"type": kind, "reason": reason} | since for kind, reason in reasons.items()]
    stored = [version["name"] for version in spec.get("versions", []) if version.get("storage")]
    obj["status"] = {"conditions": conditions, "acceptedNames": names, "storedVersions": stored}


def webhooks(obj: Object) -> None:
    for webhook in obj.get("webhooks", []):
        fill(webhook, _WEBHOOK | {"namespaceSelector": {}, "objectSelector": {}})
