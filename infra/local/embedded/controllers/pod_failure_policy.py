"""A Job's podFailurePolicy: the effect of a failed pod on its Job (pure; pod_failure_policy.go)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra.local.clients.conditions import of
from infra.local.clients.objects import Object


@dataclass(frozen=True, slots=True)
class Match:
    """`action`: FailJob, Ignore or Count (FailIndex is not covered)."""

    action: str
    message: str


def match(job: Object, pod: Object) -> Match | None:
    """Return the first rule that matches a pod in phase Failed."""
    if pod["status"]["phase"] != "Failed":
        return None
    policy = job["spec"].get("podFailurePolicy") or {}
    for index, rule in enumerate(policy.get("rules") or ()):
        found = next(_matches(rule, pod), None)
        if found is not None:
            return Match(rule["action"], f"{found} matching {rule['action']} rule at index {index}")
    return None


def _matches(rule: Mapping[str, Any], pod: Object) -> Iterator[str]:
    name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    if asked := rule.get("onExitCodes"):
        for container, code in _exit_codes(pod, asked.get("containerName")):
            if (code in asked["values"]) == (asked["operator"] == "In"):
                yield f"Container {container} for pod {name} failed with exit code {code}"
    for asked in rule.get("onPodConditions") or ():
        for condition in of(pod):
            if (condition["type"], condition["status"]) == (asked["type"], asked.get("status", "True")):
                yield f"Pod {name} has condition {condition['type']}"


def _exit_codes(pod: Object, only: str | None) -> Iterator[tuple[str, int]]:
    """Yield the failed containers with their exit codes."""
    for status in pod["status"].get("containerStatuses") or ():
        code = status["state"].get("terminated", {}).get("exitCode", 0)
        if code != 0 and only in (None, status["name"]):
            yield status["name"], code
