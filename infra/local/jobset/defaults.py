"""What a new JobSet gets: the defaults of the CRD's schema and those of JobSet's mutating webhook (pure).

Facts: pkg/webhooks/jobset_webhook.go (Default). Upstream's webhook decodes a new JobSet into Go's structs and encodes
it again, an update's not: quantities become canonical, and structs that are left out become empty objects. The same
manifest applied again is therefore another generation.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from infra.local.clients.quantities import canonical

Json = dict[str, Any]

_AMOUNTS = ("limits", "requests")


def with_defaults(jobset: Json) -> Json:
    """Return the new JobSet as it is stored. `jobset` itself is changed, too. Raise ValueError for a wrong quantity."""
    spec = jobset.setdefault("spec", {})
    _fill(spec, {"successPolicy": {"operator": "All"}, "startupPolicy": {"startupPolicyOrder": "AnyOrder"}})
    _fill(spec.setdefault("network", {}), {"enableDNSHostnames": True, "publishNotReadyAddresses": True})
    for replicated in spec.get("replicatedJobs") or ():
        _template(replicated.setdefault("template", {}))
    for index, rule in enumerate((spec.get("failurePolicy") or {}).get("rules") or ()):
        rule["name"] = rule.get("name") or f"failurePolicyRule{index}"
    return with_schema_defaults(jobset)


def with_schema_defaults(jobset: Json) -> Json:
    """Return a JobSet with the defaults of the schema, as a server that heeds it already has. It is changed, too."""
    spec = jobset["spec"]
    for replicated in spec.get("replicatedJobs") or ():
        _fill(replicated, {"groupName": "default", "replicas": 1})
        pod = replicated.get("template", {}).get("spec", {}).get("template", {}).get("spec", {})
        for container in _containers(pod):
            for port in container.get("ports") or ():
                port.setdefault("protocol", "TCP")
    if spec.get("failurePolicy") is not None:
        spec["failurePolicy"].setdefault("restartStrategy", "Recreate")
    return jobset


def _template(template: Json) -> None:
    template.setdefault("metadata", {})
    job = template.setdefault("spec", {})
    job.setdefault("completionMode", "Indexed")
    pod = job.setdefault("template", {})
    pod.setdefault("metadata", {})
    pod.setdefault("spec", {}).setdefault("restartPolicy", "OnFailure")
    for container in _containers(pod["spec"]):
        resources = container.setdefault("resources", {})
        for kind in _AMOUNTS:
            if kind in resources:
                resources[kind] = {name: canonical(amount) for name, amount in resources[kind].items()}


def _containers(pod: Json) -> Iterator[Json]:
    yield from pod.get("initContainers") or ()
    yield from pod.get("containers") or ()


def _fill(target: Json, defaults: Mapping[str, Any]) -> None:
    for key, value in defaults.items():
        target.setdefault(key, value)
