"""The API server's defaults for fields that are left out, written into the object (pure).

Facts: pkg/apis/{core,batch,apps,rbac,scheduling,admissionregistration}/v1/defaults.go.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from infra.local.embedded.store.kinds import Object

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def fill(target: Object, defaults: Mapping[str, Any]) -> None:
    for key, value in defaults.items():
        target.setdefault(key, value)


def containers(spec: Object) -> list[Object]:
    """Return all containers of a pod spec, init containers first."""
    return [*spec.get("initContainers", []), *spec.get("containers", [])]


def as_quantities(amounts: Mapping[str, Any]) -> Object:
    """Return a ResourceList as it is stored: quantities are strings."""
    return {name: str(amount) for name, amount in amounts.items()}


def _container(container: Object) -> None:
    image = container.get("image", "")
    moving = "@" not in image and (":" not in image.rpartition("/")[2] or image.endswith(":latest"))
    fill(
        container,
        {
            "imagePullPolicy": "Always" if moving else "IfNotPresent",
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "resources": {},
        },
    )
    resources = container["resources"]
    for of in {"limits", "requests"} & resources.keys():
        resources[of] = as_quantities(resources[of])
    for port in container.get("ports", []):
        port.setdefault("protocol", "TCP")
    for probe in _PROBES:
        if probe in container:
            fill(container[probe], _PROBE)


def pod_spec(spec: Object) -> None:
    fill(
        spec,
        {
            "dnsPolicy": "ClusterFirst",
            "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 30,
            "restartPolicy": "Always",
            "securityContext": {},
        },
    )
    if "serviceAccountName" in spec:
        spec["serviceAccount"] = spec["serviceAccountName"]
    for container in containers(spec):
        _container(container)


def pod(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for container in containers(spec):  # only in pods, not in templates
        resources = container["resources"]
        if resources.get("limits"):
            resources["requests"] = resources["limits"] | resources.get("requests", {})
    cpu_or_memory = any({"cpu", "memory"} & each["resources"].get("requests", {}).keys() for each in containers(spec))
    obj["status"] = {**obj.get("status", {}), "qosClass": "Burstable" if cpu_or_memory else "BestEffort"}


def job(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    fill(
        spec,
        {
            "parallelism": 1,
            "completionMode": "NonIndexed",
            "backoffLimit": 2**31 - 1 if "backoffLimitPerIndex" in spec else 6,
            "suspend": False,
            "manualSelector": False,
            "podReplacementPolicy": "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed",
        },
    )
    for rule in spec.get("podFailurePolicy", {}).get("rules", []):
        for condition in rule.get("onPodConditions", []):
            condition.setdefault("status", "True")
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    pod_spec(template.setdefault("spec", {}))


def _workload(obj: Object, strategy: str, usual: Mapping[str, Any]) -> None:
    spec = obj.setdefault("spec", {})
    pod_spec(spec.setdefault("template", {}).setdefault("spec", {}))
    fill(spec, {"revisionHistoryLimit": 10, **usual, strategy: {}})
    spec[strategy].setdefault("type", "RollingUpdate")


def deployment(obj: Object) -> None:
    _workload(obj, "strategy", {"replicas": 1, "progressDeadlineSeconds": 600})


def daemon_set(obj: Object) -> None:
    _workload(obj, "updateStrategy", {})


def service(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    usual = {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"}
    fill(spec, usual | {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"})
    if "clusterIP" in spec:
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
    for port in spec.get("ports", []):
        fill(port, {"protocol": "TCP", "targetPort": port["port"]})


def namespace(obj: Object) -> None:
    metadata = obj["metadata"]
    if metadata.get("name"):
        metadata["labels"] = metadata.get("labels", {}) | {"kubernetes.io/metadata.name": metadata["name"]}
    obj.setdefault("spec", {"finalizers": ["kubernetes"]})


def node(obj: Object) -> None:
    """Fill in spec and status; what a node offers defaults to what it has."""
    status = obj.setdefault("status", {})
    fill(obj, {"spec": {}})
    for of in {"capacity", "allocatable"} & status.keys():
        status[of] = as_quantities(status[of])
    if "capacity" in status:
        status.setdefault("allocatable", status["capacity"])


def event(obj: Object) -> None:
    fill(obj, {"source": {}, "reportingComponent": "", "reportingInstance": "", "involvedObject": {}})
    fill(obj, dict.fromkeys(("firstTimestamp", "lastTimestamp", "eventTime")))


def secret(obj: Object) -> None:
    obj.setdefault("type", "Opaque")
    for key, text in obj.pop("stringData", {}).items():
        obj.setdefault("data", {})[key] = b64encode(text.encode()).decode()


def claim(obj: Object) -> None:
    obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def volume(obj: Object) -> None:
    fill(obj.setdefault("spec", {}), {"volumeMode": "Filesystem", "persistentVolumeReclaimPolicy": "Retain"})


def lease(obj: Object) -> None:
    obj.setdefault("spec", {})


def priority_class(obj: Object) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def role(obj: Object) -> None:
    obj.setdefault("rules", None)


def binding(obj: Object) -> None:
    group = "rbac.authorization.k8s.io"
    reference = obj.setdefault("roleRef", {})
    reference["apiGroup"] = reference.get("apiGroup") or group
    for subject in obj.get("subjects", []):
        known = subject.pop("apiGroup", "") or ("" if subject["kind"] == "ServiceAccount" else group)
        subject.update({"apiGroup": known} if known else {})


def definition(obj: Object) -> None:
    """Fill in a CustomResourceDefinition; it is established at once."""
    spec = obj.setdefault("spec", {})
    names = spec.setdefault("names", {})
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})
    since = {"status": "True", "lastTransitionTime": obj["metadata"]["creationTimestamp"], "message": ""}
    accepted = {"type": "NamesAccepted", "reason": "NoConflicts"} | since
    obj["status"] = {
        "conditions": [accepted, {"type": "Established", "reason": "InitialNamesAccepted"} | since],
        "acceptedNames": names,
        "storedVersions": [version["name"] for version in spec.get("versions", []) if version.get("storage")],
    }


def webhooks(obj: Object) -> None:
    usual = {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10}
    for webhook in obj.get("webhooks", []):
        fill(webhook, usual | {"namespaceSelector": {}, "objectSelector": {}})
        for rule in webhook.get("rules", []):
            rule.setdefault("scope", "*")
