"""The API server's defaults for fields that are left out (pure; written into the object).

Facts: pkg/apis/core/v1/defaults.go, pkg/apis/batch/v1/defaults.go, JobSet's CRD and mutating webhook
(pkg/webhooks/jobset_webhook.go). Volumes get no defaults here: nothing in the local stack mounts them.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from infra.local.cluster import rbac_validation
from infra.local.cluster.kueue_api import defaults as queueing

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_POD_SPEC = {
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "enableServiceLinks": True,
}
_HEADLESS_SERVICE = {
    "type": "ClusterIP",
    "sessionAffinity": "None",
    "internalTrafficPolicy": "Cluster",
    "ipFamilies": ["IPv4"],
    "ipFamilyPolicy": "SingleStack",
}


def fill(target: dict[str, Any], defaults: Mapping[str, Any]) -> None:
    for key, value in defaults.items():
        target.setdefault(key, value)


def containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all containers of a pod spec, init containers first."""
    return [*spec.get("initContainers", []), *spec.get("containers", [])]


def _container(container: dict[str, Any]) -> None:
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
    for port in container.get("ports", []):
        port.setdefault("protocol", "TCP")
    for probe in _PROBES:
        if probe in container:
            fill(container[probe], _PROBE)


def pod_spec(spec: dict[str, Any]) -> None:
    fill(spec, _POD_SPEC | {"restartPolicy": "Always", "securityContext": {}})
    for container in containers(spec):
        _container(container)


def _pod(pod: dict[str, Any]) -> None:
    spec = pod.setdefault("spec", {})
    pod_spec(spec)
    # Only in pods, not in templates: requests default to the limits (SetDefaults_Pod).
    for container in containers(spec):
        resources = container["resources"]
        if resources.get("limits"):
            resources["requests"] = resources["limits"] | resources.get("requests", {})


def _job(job: dict[str, Any]) -> None:
    spec = job.setdefault("spec", {})
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
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    pod_spec(template.setdefault("spec", {}))


def _jobset(jobset: dict[str, Any]) -> None:
    """Fill in the defaults of the CRD's schema, which apply on every write."""
    spec = jobset.setdefault("spec", {})
    for replicated in spec.get("replicatedJobs", []):
        fill(replicated, {"groupName": "default", "replicas": 1})
        for container in containers(_jobset_pod(replicated)):
            for port in container.get("ports", []):
                port.setdefault("protocol", "TCP")
    if "failurePolicy" in spec:
        spec["failurePolicy"].setdefault("restartStrategy", "Recreate")


def _new_jobset(jobset: dict[str, Any]) -> None:
    """Fill in the defaults of JobSet's mutating webhook, which since 0.8.2 apply only on creation.

    An update that leaves out a defaulted field of replicatedJobs is therefore refused as a change.
    """
    spec = jobset["spec"]
    fill(
        spec,
        {
            "successPolicy": {"operator": "All"},
            "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
        },
    )
    fill(spec.setdefault("network", {}), {"enableDNSHostnames": True, "publishNotReadyAddresses": True})
    for replicated in spec.get("replicatedJobs", []):
        job = replicated.setdefault("template", {}).setdefault("spec", {})
        job.setdefault("completionMode", "Indexed")
        job.setdefault("template", {}).setdefault("spec", {}).setdefault("restartPolicy", "OnFailure")
    for index, rule in enumerate(spec.get("failurePolicy", {}).get("rules", [])):
        rule["name"] = rule.get("name") or f"failurePolicyRule{index}"
    queueing.suspend_if_queued(jobset)


def _jobset_pod(replicated: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = replicated.get("template", {}).get("spec", {}).get("template", {}).get("spec", {})
    return pod


def _service(service: dict[str, Any]) -> None:
    spec = service.setdefault("spec", {})
    fill(spec, _HEADLESS_SERVICE)
    if "clusterIP" in spec:
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
    for port in spec.get("ports", []):
        fill(port, {"protocol": "TCP", "targetPort": port["port"]})


def _namespace(namespace: dict[str, Any]) -> None:
    metadata = namespace["metadata"]
    if metadata.get("name"):
        labels = metadata.get("labels", {})
        metadata["labels"] = labels | {"kubernetes.io/metadata.name": metadata["name"]}
    namespace.setdefault("spec", {"finalizers": ["kubernetes"]})


def _node(node: dict[str, Any]) -> None:
    node.setdefault("spec", {})


def _event(event: dict[str, Any]) -> None:
    fill(event, {"source": {}, "reportingComponent": "", "reportingInstance": ""})
    for unset in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(unset, None)


DEFAULTS: Mapping[str, Callable[[dict[str, Any]], None]] = MappingProxyType(
    {
        "namespaces": _namespace,
        "nodes": _node,
        "pods": _pod,
        "services": _service,
        "events": _event,
        "jobs": _job,
        "jobsets": _jobset,
        **rbac_validation.DEFAULTS,
        **queueing.DEFAULTS,
    }
)
"""By plural name of the resource."""

CREATION_DEFAULTS: Mapping[str, Callable[[dict[str, Any]], None]] = MappingProxyType({"jobsets": _new_jobset})
"""Defaults that apply only on creation, after DEFAULTS."""
